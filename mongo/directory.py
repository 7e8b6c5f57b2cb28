"""The directory of beacons as a CSV file: check it, and load it into MongoDB.

python -m mongo.directory check mongo/directory.csv
python -m mongo.directory load mongo/directory.csv [--uri mongodb://...]
"""

import argparse
import csv
import math
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from mongo.secrets import APP_USER

DATABASE = "ICT3102"
COLUMNS = ["mac", "level", "location", "x", "y"]
MAX_TEXT = 64
_MAC = re.compile(r"[0-9A-F]{12}")
# Quotes and backslashes would have to be escaped wherever JSON is joined from text.
_TEXT = re.compile(r"""[^\x00-\x1f\x7f"\\]+""")

Beacon = dict[str, Any]


class DirectoryError(ValueError):
    """The file is not a directory of beacons; the text names the line and the column."""


class Loaded(NamedTuple):
    """What a load did, in beacons. `others` are in the database but not in the file."""

    added: int
    changed: int
    unchanged: int
    others: int

    def __str__(self) -> str:
        """Return one line for people."""
        text = f"{self.added} added, {self.changed} changed, {self.unchanged} unchanged"
        return f"{text}, {self.others} not in the file and left alone" if self.others else text


def parse(lines: Iterable[str]) -> list[Beacon]:
    """Return the beacons as documents; raise DirectoryError at the first bad line."""
    reader = csv.reader(lines)
    header = next(reader, [])
    if header != COLUMNS:
        raise DirectoryError(f"line 1: the columns must be {','.join(COLUMNS)}")
    beacons: dict[str, Beacon] = {}
    for row in reader:
        if not row:
            continue
        line = f"line {reader.line_num}"
        if len(row) != len(COLUMNS):
            raise DirectoryError(f"{line}: {len(row)} columns instead of {len(COLUMNS)}")
        beacon = _beacon(line, dict(zip(COLUMNS, (text.strip() for text in row), strict=True)))
        if beacon["mac"] in beacons:
            raise DirectoryError(f"{line}: mac {beacon['mac']} stands in an earlier line too")
        beacons[beacon["mac"]] = beacon
    return list(beacons.values())


def _beacon(line: str, row: dict[str, str]) -> Beacon:
    mac = row["mac"].replace(":", "").replace("-", "").upper()
    if not _MAC.fullmatch(mac):
        raise DirectoryError(f"{line}: mac {row['mac']!r} is not 12 hexadecimal digits")
    for column in ("level", "location"):
        if len(row[column]) > MAX_TEXT or not _TEXT.fullmatch(row[column]):
            reason = f"must be 1 to {MAX_TEXT} characters without quotes and backslashes"
            raise DirectoryError(f"{line}: {column} {row[column]!r} {reason}")
    beacon: Beacon = {"_id": mac, "mac": mac, "level": row["level"], "location": row["location"]}
    if row["x"] or row["y"]:
        beacon["position"] = {axis: _metres(line, axis, row[axis]) for axis in ("x", "y")}
    return beacon


def _metres(line: str, axis: str, text: str) -> float:
    try:
        metres = float(text)
    except ValueError:
        metres = math.nan
    if not math.isfinite(metres):
        raise DirectoryError(f"{line}: {axis} {text!r} is not a number of metres")
    return metres


def load(beacons: list[Beacon], collection: Collection[Beacon]) -> Loaded:
    """Make the collection hold these beacons; beacons that it holds besides stay."""
    stored = {beacon["_id"]: beacon for beacon in collection.find()}
    added = [beacon for beacon in beacons if beacon["_id"] not in stored]
    known = [beacon for beacon in beacons if beacon["_id"] in stored]
    changed = [beacon for beacon in known if beacon != stored[beacon["_id"]]]
    if added:
        collection.insert_many(added)
    for beacon in changed:
        _replace(collection, stored[beacon["_id"]], beacon)
    if added or changed:  # the services look at this number, and read all again when it grew
        revisions = collection.database["directory"]
        revisions.update_one({"_id": "beacons"}, {"$inc": {"revision": 1}}, upsert=True)
    others = len(stored) - len(known)
    return Loaded(len(added), len(changed), len(known) - len(changed), others)


def _replace(collection: Collection[Beacon], old: Beacon, new: Beacon) -> None:
    key = {"_id": old["_id"], "level": old["level"]}
    if old["level"] == new["level"]:
        collection.replace_one(key, new)
    else:  # `level` is the shard key: on another level it is another shard's document
        collection.delete_one(key)
        collection.insert_one(new)


def load_file(path: Path, uri: str, password_file: Path) -> Loaded:
    """Check and load a file as the services' user. Raises DirectoryError, PyMongoError, OSError."""
    beacons = parse(path.read_text(encoding="utf-8").splitlines())
    with MongoClient[Beacon](
        uri,
        username=APP_USER,
        password=password_file.read_text().strip(),
        authSource=DATABASE,
        timeoutMS=20_000,
    ) as client:
        return load(beacons, client[DATABASE]["beacons"])


def main() -> None:
    """Run the command; a bad file or database ends it with one line and status 1."""
    parser = argparse.ArgumentParser(prog="python -m mongo.directory", description=__doc__)
    parser.add_argument("action", choices=["check", "load"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--uri", default="mongodb://127.0.0.1:27117/?replicaSet=embedded")
    parser.add_argument("--password-file", type=Path, default=Path("data/secrets/app_password"))
    options = parser.parse_args()
    try:
        if options.action == "check":
            print(f"{len(parse(options.file.read_text('utf-8').splitlines()))} beacons, all good")
        else:
            print(load_file(options.file, options.uri, options.password_file))
    except (DirectoryError, OSError, UnicodeDecodeError, PyMongoError) as error:
        sys.exit(f"{options.file}: {error}")


if __name__ == "__main__":
    main()
