"""Beacons as a client writes them: the lines of a CSV file, and the fields of one."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from ingest.api import spreadsheet
from ingest.api.problems import Problem
from ingest.api.readers import read_all
from ingest.api.schema_fields import ResponseBody
from ingest.errors import Fault
from ingest.rules import request_parameters
from ingest.rules.positions import Position, doubts
from ingest.rules.request_parameters import MAX_METRES, MAX_TEXT, folded
from ingest.storage.beacons import Beacon

MAX_LINES = 2000
# Characters: a longer line names no columns, and the csv module takes no field of 131,073.
MAX_HEADER = 10_000
# Bad lines beyond these are not looked for.
MAX_ERRORS = 100

Name = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]


_Coordinate = Annotated[
    Annotated[float, Meta(ge=-MAX_METRES, le=MAX_METRES)]
    | Annotated[str, Meta(extra_json_schema={"pattern": r"^(-?[0-9]{1,6}(\.[0-9]{1,9})?)?$"})],
    Meta(description="Metres on the plan of the level; both or neither"),
]


class PlaceInput(Struct):
    """Where a beacon hangs; fields of other names are ignored."""

    level: Annotated[Name | float, Meta(description="Level")]
    location: Annotated[Name | float, Meta(description="Name of the spot")]
    x: _Coordinate | UnsetType | None = UNSET
    y: _Coordinate | UnsetType | None = UNSET


class BadLine(ResponseBody):
    """What is wrong with a line of a file."""

    line: Annotated[int, Meta(description="Line of the file, the header is 1")]
    field: Annotated[str, Meta(description="Column")]
    reason: Annotated[str, Meta(description="What is wrong")]


class ParsedFile(NamedTuple):
    """The beacons of a file, and what is wrong with its lines."""

    beacons: list[Beacon]
    errors: list[BadLine]  # of the first lines
    bad_lines: int
    columns: dict[str, str]  # of the file, by field


_READERS = {
    "mac": request_parameters.beacon,
    "level": request_parameters.place_name,
    "location": request_parameters.place_name,
    "x": request_parameters.metres,
    "y": request_parameters.metres,
}
COLUMNS = list(_READERS)
# How other programs call them, the better name first; `mongo/directory.py` has the same.
_NAMES = {
    "mac": ("mac", "mac address", "macaddress", "beacon address", "beacon", "address"),
    "level": ("level", "floor", "floor name", "storey", "etage"),
    "location": ("location", "location name", "room", "place", "name", "alias"),
    "x": ("x",),
    "y": ("y",),
}
_DELIMITERS = ",;\t"
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)


def beacon(fields: Mapping[str, Any]) -> tuple[Beacon | None, list[Fault]]:
    """Return a beacon, or everything that is wrong with it."""
    values, faults = read_all(_READERS, fields)
    if not faults and (values["x"] is None) != (values["y"] is None):
        faults.append(Fault("x", "must be given together with y, or neither"))
    return (None, faults) if faults else (Beacon(**values), [])


def parse_file(text: str) -> ParsedFile:
    """Return what a file holds. Raises Problem at the first line beyond the limit.

    After the first MAX_ERRORS bad lines nobody needs to know of more.
    """
    if max(text.count("\n"), text.count("\r")) > 2 * MAX_LINES:  # empty ones do not count
        raise _too_many()
    text = text.removeprefix("\ufeff")
    delimiter = _delimiter(text[:MAX_HEADER].splitlines()[0] if text else "")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    columns: dict[str, int] = {}
    head: list[str] = []
    found: dict[str, Beacon] = {}
    errors: list[BadLine] = []
    lines = bad_lines = 0
    try:
        head = next(reader, [])
        columns = _columns(head)
        if not columns:
            there = ", ".join(head)[:MAX_TEXT]
            reason = f"the columns must be {','.join(COLUMNS)}, x and y both or neither: {there!a}"
            return ParsedFile([], [BadLine(1, "header", reason)], 1, {})
        for row in reader:
            lines += bool(row)
            if lines > MAX_LINES:
                raise _too_many()
            if len(row) != len(head) and row:
                wrong = [
                    BadLine(reader.line_num, "line", f"{len(row)} columns instead of {len(head)}")
                ]
            else:
                fields = _fields(row, columns, delimiter)
                wrong = _parse_row(fields, reader.line_num, found) if row else []
            if wrong:
                bad_lines += 1
                errors += wrong
            if bad_lines == MAX_ERRORS:
                break
    except csv.Error as error:
        bad_lines += 1
        errors.append(BadLine(reader.line_num, "line", str(error)))
    named = {field: folded(head[at])[:MAX_TEXT] for field, at in columns.items()}
    return ParsedFile(list(found.values()), errors[:MAX_ERRORS], bad_lines, named)


def _delimiter(head: str) -> str:
    """Return what parts the columns of a header, a comma if nothing makes one of it."""
    for delimiter in _DELIMITERS:
        if _columns(next(csv.reader([head], delimiter=delimiter), [])):
            return delimiter
    return ","


def _columns(head: Sequence[str]) -> dict[str, int]:
    """Return where a file has each field, nothing where it lacks one that is needed."""
    names = [" ".join(folded(name).casefold().replace("_", " ").split()) for name in head]
    found = {
        field: names.index(name)
        for field, known in _NAMES.items()
        if (name := next((one for one in known if one in names), None))
    }
    is_whole = {"mac", "level", "location"} <= found.keys() and ("x" in found) == ("y" in found)
    return found if is_whole else {}


def _fields(row: Sequence[str], columns: Mapping[str, int], delimiter: str) -> dict[str, str]:
    fields = {field: spreadsheet.text(row[at]) for field, at in columns.items() if row}
    if delimiter != ",":
        for axis in "xy":
            if _DECIMAL_COMMA.fullmatch(fields.get(axis, "")):
                fields[axis] = fields[axis].replace(",", ".")
    return fields


def doubts_of(beacons: Iterable[Beacon], directory: Iterable[Beacon]) -> dict[str, str]:
    """Return by MAC what looks wrong with the positions of beacons, among the others."""
    every = {one.mac: one for one in (*directory, *beacons)}
    levels: dict[str, dict[str, Position]] = {}
    for one in every.values():
        if one.x is not None and one.y is not None:
            levels.setdefault(one.level, {})[one.mac] = (one.x, one.y)
    found = {}
    for one in beacons:
        there = levels.get(one.level, {})
        if one.mac in there:
            others = [at for mac, at in there.items() if mac != one.mac]
            found[one.mac] = doubts(there[one.mac], others)
    return {mac: doubt for mac, doubt in found.items() if doubt}


def write_file(beacons: Iterable[Beacon]) -> str:
    """Return a file that `parse_file` reads, and a spreadsheet shows as it is."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows([COLUMNS, *(map(spreadsheet.cell, one) for one in beacons)])
    return spreadsheet.marked(out.getvalue())


def _too_many() -> Problem:
    return Problem("too_large", f"more than {MAX_LINES} beacons; send them in parts")


def _parse_row(fields: dict[str, str], number: int, found: dict[str, Beacon]) -> list[BadLine]:
    """Add the beacon of a row to those found, or return what is wrong with it."""
    parsed, faults = beacon(fields)
    if parsed is None:
        return [BadLine(number, *fault) for fault in faults]
    if parsed.mac in found:
        return [BadLine(number, "mac", f"{parsed.mac} stands in an earlier line too")]
    found[parsed.mac] = parsed
    return []
