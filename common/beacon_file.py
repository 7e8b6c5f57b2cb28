"""A file of beacons in CSV: `/api/v1/beacons/import` and `mongo.directory` read it."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from common import beacon, beacon_id, names, spreadsheet
from common.beacon import Beacon

COLUMNS = list(Beacon._fields)
MAX_BEACONS = 2000
# Characters of a field: what is longer is not looked at.
MAX_RAW = 256
# Characters: a longer line names no columns, and the csv module takes no field of 131,073.
MAX_HEADER = 10_000
# Bad lines beyond these are not looked for.
MAX_ERRORS = 100
MISSING = "is missing"
# Fields of a BadLine that are no columns.
LINE, HEADER = "line", "header"
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


class BadLine(NamedTuple):
    """What is wrong with a line; `text` is what its field holds, where that helps."""

    line: int
    field: str
    reason: str
    text: str = ""

    def __str__(self) -> str:
        """Return one line for people."""
        if self.field in (LINE, HEADER):
            return f"line {self.line}: {self.reason}"
        shown = f" {self.text!r}" if self.text else ""
        return f"line {self.line}: {self.field}{shown} {self.reason}"


class TooManyBeacons(ValueError):
    """A file has more than MAX_BEACONS."""


class BeaconFile(NamedTuple):
    """The beacons of a file, and what is wrong with its lines."""

    beacons: list[Beacon]
    errors: list[BadLine]  # of the first bad lines
    bad_lines: int
    columns: dict[str, str]  # of the file, by field


def read(text: str) -> BeaconFile:
    """Return what a file holds. Raises TooManyBeacons at the first line beyond the limit.

    After the first MAX_ERRORS bad lines nobody needs to know of more.
    """
    if max(text.count("\n"), text.count("\r")) > 2 * MAX_BEACONS:  # empty ones do not count
        raise TooManyBeacons
    text = text.removeprefix("\ufeff")
    delimiter = _delimiter(text[:MAX_HEADER].splitlines()[0] if text else "")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    columns: dict[str, int] = {}
    head: list[str] = []
    beacons: dict[str, Beacon] = {}
    errors: list[BadLine] = []
    lines = bad_lines = 0
    try:
        head = next(reader, [])
        columns = _columns(head)
        if not columns:
            there = ", ".join(head)[: names.MAX_TEXT]
            reason = f"the columns must be {','.join(COLUMNS)}, x and y both or neither: {there!a}"
            return BeaconFile([], [BadLine(1, HEADER, reason)], 1, {})
        for row in filter(None, reader):
            lines += 1
            if lines > MAX_BEACONS:
                raise TooManyBeacons
            number = reader.line_num
            if len(row) != len(head):
                wrong = [BadLine(number, LINE, f"{len(row)} columns instead of {len(head)}")]
            else:
                wrong = list(_add(_fields(row, columns, delimiter), number, beacons))
            if wrong:
                bad_lines += 1
                errors += wrong
            if bad_lines == MAX_ERRORS:
                break
    except csv.Error as error:
        bad_lines += 1
        errors.append(BadLine(reader.line_num, LINE, str(error)))
    named = {field: names.folded(head[at])[: names.MAX_TEXT] for field, at in columns.items()}
    return BeaconFile(list(beacons.values()), errors[:MAX_ERRORS], bad_lines, named)


def _delimiter(head: str) -> str:
    """Return what parts the columns of a header, a comma if nothing makes one of it."""
    for delimiter in _DELIMITERS:
        if _columns(next(csv.reader([head], delimiter=delimiter), [])):
            return delimiter
    return ","


def _columns(head: Sequence[str]) -> dict[str, int]:
    """Return where a file has each field, nothing where it lacks one that is needed."""
    titles = [" ".join(names.folded(name).casefold().replace("_", " ").split()) for name in head]
    columns = {
        field: titles.index(title)
        for field, known in _NAMES.items()
        if (title := next((name for name in known if name in titles), None))
    }
    is_whole = {"mac", "level", "location"} <= columns.keys()
    return columns if is_whole and ("x" in columns) == ("y" in columns) else {}


def _fields(row: Sequence[str], columns: dict[str, int], delimiter: str) -> dict[str, str]:
    fields = {field: spreadsheet.text(row[at]) for field, at in columns.items()}
    if delimiter != ",":
        for axis in "xy":
            if _DECIMAL_COMMA.fullmatch(fields.get(axis, "")):
                fields[axis] = fields[axis].replace(",", ".")
    return fields


def _add(fields: dict[str, str], number: int, beacons: dict[str, Beacon]) -> Iterator[BadLine]:
    """Add the beacon of a row to the others, or yield what is wrong with it."""
    values: dict[str, Any] = {}
    is_bad = False
    for field in COLUMNS:
        text = fields.get(field, "")
        values[field], reason = _value(field, text)
        if reason:
            is_bad = True
            is_told = len(text) <= MAX_RAW and not beacon_id.may_be_key(text)
            yield BadLine(number, field, reason, text if is_told else "")
    if is_bad:
        return
    if (values["x"] is None) != (values["y"] is None):
        yield BadLine(number, "x", beacon.ONE_AXIS)
    elif values["mac"] in beacons:
        yield BadLine(number, "mac", f"{values['mac']} stands in an earlier line too")
    else:
        beacons[values["mac"]] = Beacon(**values)


def _value(field: str, text: str) -> tuple[Any, str]:
    """Return the value of a field, and what is wrong with it ("": nothing)."""
    if not text:
        return None, "" if field in "xy" else MISSING
    if len(text) > MAX_RAW:
        return None, f"must be at most {MAX_RAW} characters"
    if field == "mac":
        identified, reason = beacon_id.read(text.strip())
        return identified, reason or beacon_id.fault(identified)
    if field in "xy":
        number = beacon.metres(text.strip())
        return number, beacon.NOT_METRES if number is None else ""
    name = names.folded(text.strip())
    return name, names.fault(name)
