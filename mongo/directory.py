"""The directory of beacons as a CSV file: check it, and load it into MongoDB.

python -m mongo.directory check mongo/directory.csv
python -m mongo.directory load mongo/directory.csv [--uri mongodb://...]
"""

import argparse
import csv
import itertools
import math
import re
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from common.schema import DATABASE
from mongo.secrets import APP_USER

COLUMNS = ["mac", "level", "location", "x", "y"]
# The rules of `/api/v1/beacons/import`; a test feeds both the same files.
MAX_BEACONS = 2000
MAX_RAW = 256
MAX_TEXT = 64
MAX_METRES = 1e6
_MAC = re.compile(r"[0-9A-F]{12}")
_NO_MACS = ("0" * 12, "F" * 12)
# How other programs call the columns, the better name first.
_NAMES = {
    "mac": ("mac", "mac address", "macaddress", "beacon address", "beacon", "address"),
    "level": ("level", "floor", "floor name", "storey", "etage"),
    "location": ("location", "location name", "room", "place", "name", "alias"),
    "x": ("x",),
    "y": ("y",),
}
_DELIMITERS = ",;\t"
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)
_BLANK = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_JOINERS = "\u200c\u200d"
_UNSEEN = re.compile(f"[\u00ad\u200b\u200e\u200f\u2060\ufeff]|(?<![^\\x00-\\x7f])[{_JOINERS}]")
# The quote before what a spreadsheet would take for a formula, in a file that Waymark wrote.
_QUOTE = re.compile("^'(?=[-=+@\uff1d\uff0b\uff0d\uff20 ])")

Beacon = dict[str, Any]


class DirectoryError(ValueError):
    """The file is not a directory of beacons; the text names the line and the column."""


class NoPassword(OSError):
    """The file with the password of the services' user cannot be read."""


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


def read(path: Path) -> list[Beacon]:
    """Return the beacons of a file as documents. Raises DirectoryError, OSError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return parse(lines)
    except UnicodeDecodeError:
        raise DirectoryError("is not UTF-8") from None


def parse(lines: Iterable[str]) -> list[Beacon]:
    """Return the beacons as documents; raise DirectoryError at the first bad line."""
    rest = iter(lines)
    head = next(rest, "")
    delimiter = _delimiter(head)
    reader = csv.reader(itertools.chain([head], rest), delimiter=delimiter, strict=True)
    try:
        return _parse_rows(reader, delimiter)
    except (csv.Error, _BadRowError) as error:
        raise DirectoryError(f"line {reader.line_num or 1}: {error}") from None


class _BadRowError(ValueError):
    """What is wrong with a row."""


def _parse_rows(rows: Iterator[list[str]], delimiter: str) -> list[Beacon]:
    head = next(rows, [])
    columns = _columns(head)
    if not columns:
        there = ", ".join(head)[:MAX_TEXT]
        names = ",".join(COLUMNS)
        raise _BadRowError(f"the columns must be {names}, x and y both or neither: {there!a}")
    beacons: dict[str, Beacon] = {}
    for row in filter(None, rows):
        if len(beacons) == MAX_BEACONS:
            raise _BadRowError(f"more than {MAX_BEACONS} beacons; load them in parts")
        if len(row) != len(head):
            raise _BadRowError(f"{len(row)} columns instead of {len(head)}")
        fields = dict.fromkeys(COLUMNS, "")
        fields |= {name: _QUOTE.sub("", row[at]) for name, at in columns.items()}
        for axis in "xy":
            if delimiter != "," and _DECIMAL_COMMA.fullmatch(fields[axis]):
                fields[axis] = fields[axis].replace(",", ".")
        beacon = _beacon(fields)
        if beacon["mac"] in beacons:
            raise _BadRowError(f"mac {beacon['mac']} stands in an earlier line too")
        beacons[beacon["mac"]] = beacon
    return list(beacons.values())


def _delimiter(head: str) -> str:
    """Return what parts the columns of a header, a comma if nothing makes one of it."""
    for delimiter in _DELIMITERS:
        if _columns(next(csv.reader([head], delimiter=delimiter), [])):
            return delimiter
    return ","


def _columns(head: list[str]) -> dict[str, int]:
    """Return where a file has each field, nothing where it lacks one that is needed."""
    names = [" ".join(_folded(name).casefold().replace("_", " ").split()) for name in head]
    found = {
        field: names.index(name)
        for field, known in _NAMES.items()
        if (name := next((one for one in known if one in names), None))
    }
    is_whole = {"mac", "level", "location"} <= found.keys() and ("x" in found) == ("y" in found)
    return found if is_whole else {}


def _folded(text: str) -> str:
    return _BLANK.sub(" ", unicodedata.normalize("NFC", _UNSEEN.sub("", text))).strip()


def _beacon(row: dict[str, str]) -> Beacon:
    mac = _text(row, "mac").replace(":", "").replace("-", "").upper()
    if not _MAC.fullmatch(mac):
        raise _BadRowError(f"mac {row['mac']!r} must be a MAC address of 12 hexadecimal digits")
    if mac in _NO_MACS:
        reason = f"must be the MAC address of a beacon: {mac} stands for none"
        raise _BadRowError(f"mac {row['mac']!r} {reason}")
    beacon: Beacon = {"_id": mac, "mac": mac}
    for column in ("level", "location"):
        beacon[column] = _folded(_text(row, column))
        for one in beacon[column]:
            if not one.isprintable() and one not in _JOINERS:
                reason = f"must be printable: U+{ord(one):04X} is not"
                raise _BadRowError(f"{column} {row[column]!r} {reason}")
        if not 1 <= len(beacon[column]) <= MAX_TEXT:
            reason = f"must be 1 to {MAX_TEXT} printable characters"
            raise _BadRowError(f"{column} {row[column]!r} {reason}")
    position = {axis: _metres(row, axis) for axis in ("x", "y") if row[axis]}
    if len(position) == 1:
        raise _BadRowError("x must be given together with y, or neither")
    return beacon | {"position": position} if position else beacon


def _text(row: dict[str, str], column: str) -> str:
    if not row[column]:
        raise _BadRowError(f"{column} is missing")
    if len(row[column]) > MAX_RAW:
        raise _BadRowError(f"{column} must be at most {MAX_RAW} characters")
    return row[column].strip()


def _metres(row: dict[str, str], axis: str) -> float:
    text = _text(row, axis)
    try:
        metres = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        metres = math.nan
    if not abs(metres) <= MAX_METRES:
        limits = f"must be metres from -{MAX_METRES:.0f} to {MAX_METRES:.0f}"
        raise _BadRowError(f"{axis} {row[axis]!r} {limits}")
    return metres


def load(beacons: list[Beacon], collection: Collection[Beacon]) -> Loaded:
    """Make the collection hold all of these beacons, or change nothing; others in it stay."""
    revisions = collection.database["directory"]
    only = {"_id": "beacons"}

    def work(session: ClientSession) -> Loaded:
        # First, since it makes other writers wait. The services read all again when it grew.
        revisions.update_one(only, {"$inc": {"revision": 1}}, session=session)
        stored = {beacon["_id"]: beacon for beacon in collection.find(session=session)}
        known = [beacon["_id"] for beacon in beacons if beacon["_id"] in stored]
        for beacon in stored.values():
            beacon.pop("registered_at", None)
        write = [beacon for beacon in beacons if beacon != stored.get(beacon["_id"])]
        if write:
            # `level` is the shard key: on another level it is another shard's document.
            old = {"_id": {"$in": [beacon["_id"] for beacon in write]}}
            collection.delete_many(old, session=session)
            now = {"registered_at": int(time.time())}
            collection.insert_many([beacon | now for beacon in write], session=session)
        added, unchanged = len(beacons) - len(known), len(beacons) - len(write)
        return Loaded(added, len(write) - added, unchanged, len(stored) - len(known))

    # Not in the transaction: that may not make a collection on a sharded cluster.
    revisions.update_one(only, {"$setOnInsert": {"revision": 0}}, upsert=True)
    with collection.database.client.start_session() as session:
        return session.with_transaction(work)


def load_file(path: Path, uri: str, password_file: Path) -> Loaded:
    """Check and load a file as the services' user. Raises DirectoryError, PyMongoError, OSError."""
    beacons = read(path)
    try:
        password = password_file.read_text().strip()
    except OSError as error:
        raise NoPassword(
            f"{password_file}: {error.strerror or error}. Name the file with --password-file: a"
            " stack that was started with --data DIR has DIR/secrets/app_password"
        ) from error
    with MongoClient[Beacon](
        uri,
        username=APP_USER,
        password=password,
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
            print(f"{len(read(options.file))} beacons, all good")
        else:
            print(load_file(options.file, options.uri, options.password_file))
    except NoPassword as error:
        sys.exit(str(error))
    except (DirectoryError, OSError, PyMongoError) as error:
        sys.exit(f"{options.file}: {error}")


if __name__ == "__main__":
    main()
