"""The directory of beacons: the file is checked, and loading it twice changes nothing."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.errors import PyMongoError
from pymongo.uri_parser import parse_uri

from ingest import create_app
from ingest.config import Config
from mongo.directory import DirectoryError, Loaded, load, parse, read
from tests import everyday

HEADER = "mac,level,location,x,y"
ROW = "C2A628384B08,4,Lobby B,1.5,2"
PLAIN = {"registered_at": 0}  # without it


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
        ([HEADER, "XYZ,4,Lobby B,,"], "line 2: mac 'XYZ' must be a MAC address of 12"),
        ([HEADER, ROW, ROW], "line 3: mac C2A628384B08 stands in an earlier line too"),
        ([HEADER, "", f"C2A628384B08,4,{'x' * 65},,"], "line 3: location 'xxx"),
        ([HEADER, "C2A628384B08,4,Lobby,nan,1"], "line 2: x 'nan' must be metres from -1000000 to"),
    ],
)
def test_a_bad_line_is_named(lines: list[str], message: str) -> None:
    with pytest.raises(DirectoryError) as caught:
        parse(lines)
    assert str(caught.value).startswith(message)


@pytest.fixture
def api(mongod: str, tmp_path: Path) -> Iterator[FlaskClient]:
    app = create_app(Config(mongodb_uri=mongod, spool_file=str(tmp_path / "spool.db")))
    yield app.test_client()
    app.extensions["context"].close()


def with_field(column: int, text: str) -> str:
    """Return the good row with another text in one column."""
    fields = ROW.split(",")
    return ",".join([*fields[:column], text, *fields[column + 1 :]])


TEXTS = [
    "",
    " ",
    " 4 ",
    "x" * 64,
    "x" * 65,
    " " * 256 + "4",
    "caf\u00e9",
    "a\u2028b",
    "a\x0cb",
    "\0",
]
TEXTS += ["a\\b", '"a ""b"" c"', '"a, b"', '"a\nb"', '"a" b', '"a', "'", "\U0001f600", "\ud7ff"]
MACS = ["c2:a6:28:38:4b:08", "c2-a628384b08 ", "C2A628384B0G", "C2A628384B0", "\ufb00A628384B08"]
MACS += ["00:00:00:00:00:00", "f" * 12]
QUOTED = ["'=1+1", "'-2", "'@a", "'\uff0ba", "' a", "''a", "'a", "=1+1"]  # by an export
NUMBERS = ["1_0", "1e6", "1e7", "-1e6", "nan", "-inf", "0x1", "\u0661", "+1.", ".5", "1,5", " 7 "]
FILES = [
    *(f"{HEADER}\n{with_field(n, text)}\n" for n in range(5) for text in TEXTS),
    *(f"{HEADER}\n{with_field(0, text)}" for text in MACS),
    *(f"{HEADER}\n{with_field(n, text)}" for n in (1, 2) for text in QUOTED),
    *(f"{HEADER}\n{with_field(n, text)}" for n in (3, 4) for text in NUMBERS),
    *(f"{HEADER}{end}{end}{ROW}{end}" for end in ("\n", "\r\n", "\r", "\x0b", "\u2028")),
    *("", "\n", HEADER, HEADER.upper(), f"\ufeff{HEADER}\n{ROW}", f"\ufeff\ufeff{HEADER}\n{ROW}"),
    *(f"{HEADER}\n{ROW},", f"{HEADER}\n{ROW}\nC2", f"{HEADER}\n \n{ROW}", f'"{HEADER}"\n{ROW}'),
    f"{HEADER}\n{ROW}\n\nc2a628384b08,1,a,,",
    *everyday.FILES,
    *everyday.REFUSED,
    HEADER + "".join(f"\n{n:012X},4,Lobby,," for n in range(1, 2001)),
    HEADER + "".join(f"\n{n:012X},4,Lobby,," for n in range(1, 2002)),
]


def read_or_refuse(file: Path) -> list[dict[str, Any]] | str:
    try:
        return read(file)
    except DirectoryError as error:
        return str(error)


def test_its_rules_are_those_of_the_api(
    api: FlaskClient, beacons: Collection[dict[str, Any]], tmp_path: Path
) -> None:
    kinds = Counter[int]()
    file = tmp_path / "beacons.csv"
    for text in [*(file.encode() for file in FILES), f"{HEADER}\n{ROW},\xe9".encode("latin-1")]:
        file.write_bytes(text)
        beacons.delete_many({})
        answer = api.post("/api/v1/beacons/import", data=text, content_type="text/csv")
        kinds[answer.status_code] += 1
        found = read_or_refuse(file)
        if isinstance(found, str):
            assert answer.status_code in (400, 413), (text, found)
            for bad in [bad for bad in answer.get_json().get("errors", ()) if "line" in bad][:1]:
                assert found.startswith(f"line {bad['line']}: "), (text, found)
                assert found.endswith(bad["reason"]), (text, found)
        else:
            assert answer.status_code == 200, (text, answer.text)
            assert list(beacons.find({}, PLAIN).sort("_id", 1)) == sorted(
                found, key=itemgetter("_id")
            )
    assert kinds[200] > 20
    assert kinds[400] > 50
    assert kinds[413] == 1


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


def test_a_load_is_all_or_nothing(beacons: Collection[dict[str, Any]]) -> None:
    revisions = beacons.database["directory"]
    good, bad = parse([HEADER, ROW, "C2A628384B09,4,Lobby A,,"])
    load([good], beacons)
    before = revisions.find_one("beacons")
    bad["too long"] = "x" * 2**24  # the database refuses the last one
    with pytest.raises(PyMongoError):
        load([good | {"level": "5"}, bad], beacons)
    assert list(beacons.find({}, PLAIN)) == [good]
    assert revisions.find_one("beacons") == before


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
    message = f"{file}: line 2: mac 'C2' must be a MAC address of 12 hexadecimal digits\n"
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
