"""The order of levels, by a table of buildings, and of names."""

import random
from pathlib import Path

import pytest

from ingest.rules.floors import by_level, by_name

BUILDINGS = [
    line.split("\t")
    for line in Path(__file__).with_name("floors.tsv").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize("levels", BUILDINGS, ids=lambda levels: levels[0])
def test_levels_lie_in_the_order_of_the_building(levels: list[str]) -> None:
    assert sorted(random.Random(7).sample(levels, len(levels)), key=by_level) == levels


@pytest.mark.parametrize(
    "name", ["", " ", "\u0663", "9" * 64, "-", "²", "Küche", "1e400", "a\u0130b"]
)
def test_any_name_has_a_place_before_unknown(name: str) -> None:
    assert sorted(["unknown", name, "1"], key=by_level)[-1] == "unknown"


def test_names_are_in_the_order_of_their_numbers_whatever_the_case() -> None:
    names = ["Ärzte", "kitchen", "Room 2", "room 3", "Room 10", "Übung", "Vault"]
    assert sorted(random.Random(7).sample(names, len(names)), key=by_name) == names
