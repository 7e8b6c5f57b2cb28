"""The directory of beacons: the file is checked, and loading it twice changes nothing."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import PyMongoError
from pymongo.uri_parser import parse_uri

from common.beacon import Beacon
from common.beacon_id import NOT_AN_ID
from common.directory import Changed, Moved
from mongo.directory import DirectoryError, load, parse

HEADER = "mac,level,location,x,y"
ROW = "C2A628384B08,4,Lobby B,1.5,2"
PLAIN = {"registered_at": 0}  # without it


@pytest.fixture
def database(mongod: str) -> Iterator[Database[dict[str, Any]]]:
    with MongoClient[dict[str, Any]](mongod) as client:
        client["ICT3102"]["beacons"].delete_many({})
        yield client["ICT3102"]


def parsed(*lines: str) -> list[Beacon]:
    return parse("\n".join(lines))


def test_a_row_becomes_a_beacon() -> None:
    (beacon,) = parsed(HEADER, "c2:a6:28:38:4b:08, 4 ,Lobby B,1.5,2", "")
    assert beacon == Beacon("C2A628384B08", "4", "Lobby B", 1.5, 2.0)
    assert beacon.document() == {
        "_id": "C2A628384B08",
        "mac": "C2A628384B08",
        "level": "4",
        "location": "Lobby B",
        "position": {"x": 1.5, "y": 2.0},
    }
    (nowhere,) = parsed(HEADER, "C2A628384B08,4,Lobby B,,")
    assert "position" not in nowhere.document()


def test_what_a_spreadsheet_was_kept_from_running_is_read_as_it_was() -> None:
    (beacon,) = parsed(HEADER, "C2A628384B08,'=1+1,'\tLobby,,")
    assert (beacon.level, beacon.location) == ("=1+1", "Lobby")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: the columns must be mac,level,location,x,y"),
        (["mac,level", ROW], "line 1: the columns must be"),
        ([f"{HEADER}\n" + "\n" * 4001], "more than 2000 beacons; load them in parts"),
        ([HEADER, ROW, "C2A628384B09,4"], "line 3: 2 columns instead of 5"),
        ([HEADER, "XYZ,4,Lobby B,,"], "line 2: mac 'XYZ' must be a MAC address of 12"),
        ([HEADER, ROW, ROW], "line 3: mac C2A628384B08 stands in an earlier line too"),
        ([HEADER, "", f"C2A628384B08,4,{'x' * 65},,"], "line 3: location 'xxx"),
        ([HEADER, "C2A628384B08,4,Lobby,nan,1"], "line 2: x 'nan' must be metres from -1000000 to"),
    ],
)
def test_a_bad_line_is_named(lines: list[str], message: str) -> None:
    with pytest.raises(DirectoryError) as caught:
        parsed(*lines)
    assert str(caught.value).startswith(message)


def test_the_sample_campus(root: Path) -> None:
    beacons = parse((root / "mongo" / "directory.csv").read_text())
    team = next(beacon for beacon in beacons if beacon.mac == "C2A628384B08")
    assert (team.level, team.location) == ("unknown", "Team 6 Beacon 1")
    for level in range(1, 8):
        spots = [beacon for beacon in beacons if beacon.level == str(level)]
        names = [spot.location for spot in spots]
        assert {"Lobby A", "Lobby B"} < set(names)
        across = {spot.location: spot.x for spot in spots if spot.x is not None}
        rooms = [x for name, x in across.items() if name.startswith("Room")]
        assert across["Lobby A"] < min(rooms) < max(rooms) < across["Lobby B"]
        assert len(rooms) >= 2


def test_loading_converges(database: Database[dict[str, Any]]) -> None:
    first = parsed(HEADER, ROW, "C2A628384B09,4,Lobby A,,")
    assert str(load(first, database)) == "2 added, 0 changed, 0 unchanged"
    assert str(load(first, database)) == "0 added, 0 changed, 2 unchanged"
    more = parsed(HEADER, "C2A628384B08,5,Lobby B,1.5,2", "C2A628384B0A,1,Room,,")
    done = load(more, database)
    moves = [Moved(first[0], more[0])]
    assert done == Changed(added=1, moves=moves, unchanged=0, others=1, beacons=more, gone=[])
    assert str(done) == "1 added, 1 changed, 0 unchanged, 1 not in the file and left alone"
    renamed = parsed(HEADER, "C2A628384B08,5,Lobby C,1.5,2")
    assert len(load(renamed, database).moves) == 1
    stored = {
        beacon["mac"]: (beacon["level"], beacon["location"])
        for beacon in database["beacons"].find()
    }
    expected = {"C2A628384B08": ("5", "Lobby C"), "C2A628384B09": ("4", "Lobby A")}
    assert stored == expected | {"C2A628384B0A": ("1", "Room")}


def test_a_file_without_aliases_takes_none_and_one_with_ids_of_others_is_refused(
    database: Database[dict[str, Any]],
) -> None:
    load(parsed(f"{HEADER},aliases", f"{ROW},C2A628384B09 AABBCCDDEEFF"), database)
    (moved,) = parsed(HEADER, "C2A628384B08,5,Roof,,")
    [after] = load([moved], database, keeps_aliases=True).beacons
    assert after == moved.with_aliases(["C2A628384B09", "AABBCCDDEEFF"])
    with pytest.raises(DirectoryError, match="is another id of the beacon C2A628384B08"):
        load(parsed(HEADER, "C2A628384B09,4,Lobby A,,"), database)
    assert database["beacons"].find_one({}, PLAIN) == after.document()


def revision(database: Database[dict[str, Any]]) -> int:
    document = database["directory"].find_one("beacons")
    return int(document["revision"]) if document else 0


def test_a_restored_directory_comes_to_no_known_revision(
    database: Database[dict[str, Any]],
) -> None:
    beacons = parsed(HEADER, ROW)
    load(beacons, database)
    backup = database["directory"].find_one("beacons")
    known = set()
    for _ in range(3):
        load(beacons, database)
        known.add(revision(database))
        database["directory"].replace_one({"_id": "beacons"}, backup or {})
    assert len(known) == 3
    assert min(known) > revision(database)


def test_a_load_is_all_or_nothing(database: Database[dict[str, Any]]) -> None:
    good, other = parsed(HEADER, ROW, "C2A628384B09,4,Lobby A,,")
    load([good], database)
    before = revision(database)
    bad = other._replace(location="x" * 2**24)  # the database refuses the last one
    with pytest.raises(PyMongoError):
        load([good._replace(level="5"), bad], database)
    assert list(database["beacons"].find({}, PLAIN)) == [good.document()]
    assert revision(database) == before


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mongo.directory", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("database")
def test_the_command(tmp_path: Path, mongod: str) -> None:
    file = tmp_path / "beacons.csv"
    file.write_text(f"{HEADER}\n{ROW}\n")
    address = parse_uri(mongod)
    (tmp_path / "password").write_text(address["password"])
    host, port = address["nodelist"][0]
    uri = f"mongodb://{host}:{port}/?replicaSet=embedded"
    login = ("--uri", uri, "--password-file", tmp_path / "password")
    assert run("check", file).stdout == "1 beacons, all good\n"
    assert run("load", file, *login).stdout == "1 added, 0 changed, 0 unchanged\n"
    file.write_text(f"{HEADER}\nC2,4,Lobby,,\n")
    bad = run("load", file, *login)
    message = f"{file}: line 2: mac 'C2' {NOT_AN_ID}\n"
    assert (bad.returncode, bad.stderr) == (1, message)
    assert run("check", tmp_path / "none.csv").returncode == 1


def test_a_missing_password_is_not_told_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "beacons.csv").write_text(f"{HEADER}\n{ROW}\n")
    missing = tmp_path / "secrets" / "app_password"
    done = run("load", tmp_path / "beacons.csv", "--password-file", missing)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"{missing}: No such file or directory. Name the file with --pass"
    )
    assert "beacons.csv" not in done.stderr
