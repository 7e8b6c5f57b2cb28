"""The list of survivors goes with the code: ./scripts/mutate itself takes minutes."""

import csv
from pathlib import Path

import pytest

from scripts.processes import ROOT
from tests.tools.mutation.targets import INGEST, TARGETS

with Path(__file__).with_name("survivors.tsv").open(newline="") as file:
    ROWS = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
SOURCES = {target.module: " ".join(target.source.split()) for target in TARGETS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_what_may_survive_is_still_there_and_has_a_reason(row: list[str]) -> None:
    module, before, _, why = row
    assert before in SOURCES[module]
    assert why


def test_every_rule_is_a_target() -> None:
    rules = (ROOT / INGEST / "ingest/rules").glob("[!_]*.py")
    assert {f"ingest.rules.{rule.stem}" for rule in rules} <= SOURCES.keys()
