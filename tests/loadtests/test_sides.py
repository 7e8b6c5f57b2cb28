"""The old architecture is what it is compared as, and the command line reaches each form of it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from loadtests.generator import generate
from loadtests.sides import DURABLE, SIDES, UNOPTIMISED
from scripts.native.layout import ROOT

Seen = dict[str, Any]


def profiled(side: str, plan: str, rows: Path, *arguments: str) -> list[Seen]:
    """Run a plan; return what mongod was asked, as its profiler noted it."""
    with (
        SIDES[side](limited=False) as stack,
        MongoClient[Seen](f"mongodb://127.0.0.1:{stack.mongod_port}/") as client,
    ):
        database = client["ICT3102"]
        database.command("profile", 2)
        arguments = ("--ramp", "0.3", "--pages", "0", *arguments)
        assert generate(stack.url, plan, arguments, rows=rows) == 0
        return [one["command"] for one in database["system.profile"].find({"ns": "ICT3102.staff"})]


@pytest.mark.parametrize(("side", "ranged"), [("old", True), (UNOPTIMISED, False)])
def test_the_query(side: str, *, ranged: bool, tmp_path: Path) -> None:
    seen = profiled(side, "PERF-RT-2", tmp_path / "rows.csv", "--only", "600")
    finds = [one for one in seen if "find" in one]
    assert finds
    for one in finds:
        assert ("timestamp" in one["filter"]) == ranged
        assert ("projection" in one) == ranged
        assert one["sort"] == {"timestamp": -1}


@pytest.mark.parametrize(("side", "on_disk"), [("old", False), (DURABLE, True)])
def test_what_an_insert_waits_for(side: str, *, on_disk: bool, tmp_path: Path) -> None:
    seen = profiled(side, "PERF-TP-1", tmp_path / "rows.csv", "--only", "210")
    inserts = [one for one in seen if "insert" in one]
    assert inserts
    assert {one.get("writeConcern", {}).get("j", False) for one in inserts} == {on_disk}


@pytest.mark.parametrize(
    ("option", "side"), [("--old", "old"), ("--unoptimised", UNOPTIMISED), ("--durable", DURABLE)]
)
def test_the_command_line_reaches_it(option: str, side: str) -> None:
    command = [f"{ROOT}/scripts/load", "run", "PERF-TP-1", "--old", option, "--no-limits"]
    command += ["--ramp", "0.3", "--only", "210", "--services", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == f"{side}, services: 1, without limits"
