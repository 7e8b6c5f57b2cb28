"""The directory of beacons: the file is checked, and loading it twice changes nothing."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.uri_parser import parse_uri

from mongo.directory import DirectoryError, Loaded, load, parse

HEADER = "mac,level,location,x,y"
ROW = "C2A628384B08,4,Lobby B,1.5,2"


@pytest.fixture
def beacons(mongod: str) -> Iterator[Collection[dict[str, Any]]]:
    with MongoClient[dict[str, Any]](mongod) as client:
        client["ICT3102"]["beacons"].delete_many({})
        yield client["ICT3102"]["beacons"]


def test_a_row_becomes_a_beacon() -> None:
    (beacon,) = parse([HEADER, "c2:a6:28:38:4b:08, 4 ,Lobby B,1.5,2", ""])
    assert beacon == {
        "_id": "C2A628384B08",
        "mac": "C2A628384B08",
        "level": "4",
        "location": "Lobby B",
        "position": {"x": 1.5, "y": 2.0},
    }
    assert "position" not in parse([HEADER, "C2A628384B08,4,Lobby B,,"])[0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: the columns must be mac,level,location,x,y"),
        (["mac,level", ROW], "line 1: the columns must be"),
        ([HEADER, ROW, "C2A628384B09,4"], "line 3: 2 columns instead of 5"),
        ([HEADER, "XYZ,4,Lobby B,,"], "line 2: mac 'XYZ' is not 12 hexadecimal digits"),
        ([HEADER, ROW, ROW], "line 3: mac C2A628384B08 stands in an earlier line too"),
        ([HEADER, "C2A628384B08,,Lobby B,,"], "line 2: level ''"),
        ([HEADER, f"C2A628384B08,4,{'x' * 65},,"], "line 2: location"),
        ([HEADER, "C2A628384B08,4,Lob\\by,,"], "line 2: location"),
        ([HEADER, "C2A628384B08,4,Lobby,1,"], "line 2: y '' is not a number of metres"),
        ([HEADER, "C2A628384B08,4,Lobby,nan,1"], "line 2: x 'nan' is not a number"),
    ],
)
def test_a_bad_line_is_named(lines: list[str], message: str) -> None:
    with pytest.raises(DirectoryError) as caught:
        parse(lines)
    assert str(caught.value).startswith(message)


def test_the_sample_campus(root: Path) -> None:
    beacons = parse((root / "mongo" / "directory.csv").read_text().splitlines())
    team = next(beacon for beacon in beacons if beacon["mac"] == "C2A628384B08")
    assert (team["level"], team["location"]) == ("unknown", "Team 6 Beacon 1")
    for level in range(1, 8):
        spots = [beacon for beacon in beacons if beacon["level"] == str(level)]
        names = [spot["location"] for spot in spots]
        assert {"Lobby A", "Lobby B"} < set(names)
        across = {spot["location"]: spot["position"]["x"] for spot in spots}
        rooms = [x for name, x in across.items() if name.startswith("Room")]
        assert across["Lobby A"] < min(rooms) < max(rooms) < across["Lobby B"]
        assert len(rooms) >= 2


def test_loading_converges(beacons: Collection[dict[str, Any]]) -> None:
    first = parse([HEADER, ROW, "C2A628384B09,4,Lobby A,,"])
    assert load(first, beacons) == Loaded(added=2, changed=0, unchanged=0, others=0)
    assert load(first, beacons) == Loaded(added=0, changed=0, unchanged=2, others=0)
    moved = parse([HEADER, "C2A628384B08,5,Lobby B,1.5,2", "C2A628384B0A,1,Room,,"])
    assert load(moved, beacons) == Loaded(added=1, changed=1, unchanged=0, others=1)
    renamed = parse([HEADER, "C2A628384B08,5,Lobby C,1.5,2"])
    assert load(renamed, beacons).changed == 1
    stored = {found["mac"]: (found["level"], found["location"]) for found in beacons.find()}
    expected = {"C2A628384B08": ("5", "Lobby C"), "C2A628384B09": ("4", "Lobby A")}
    assert stored == expected | {"C2A628384B0A": ("1", "Room")}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mongo.directory", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command(tmp_path: Path, mongod: str, beacons: Collection[dict[str, Any]]) -> None:
    file = tmp_path / "beacons.csv"
    file.write_text(f"{HEADER}\n{ROW}\n")
    parsed = parse_uri(mongod)
    (tmp_path / "password").write_text(parsed["password"])
    host, port = parsed["nodelist"][0]
    uri = f"mongodb://{host}:{port}/?replicaSet=embedded"
    login = ("--uri", uri, "--password-file", tmp_path / "password")
    assert run("check", file).stdout == "1 beacons, all good\n"
    assert run("load", file, *login).stdout == "1 added, 0 changed, 0 unchanged\n"
    file.write_text(f"{HEADER}\nC2,4,Lobby,,\n")
    bad = run("load", file, *login)
    message = f"{file}: line 2: mac 'C2' is not 12 hexadecimal digits\n"
    assert (bad.returncode, bad.stderr) == (1, message)
    assert run("check", tmp_path / "none.csv").returncode == 1
