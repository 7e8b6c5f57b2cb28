"""Beacons as a client writes them: the lines of a CSV file, and the fields of one."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from ingest.api import spreadsheet
from ingest.api.problems import Problem
from ingest.api.readers import read_all
from ingest.api.schema_fields import ResponseBody
from ingest.errors import Fault
from ingest.rules import request_parameters
from ingest.rules.positions import Position, doubts
from ingest.rules.request_parameters import MAX_METRES, MAX_TEXT
from ingest.storage.beacons import Beacon

MAX_LINES = 2000
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


_READERS = {
    "mac": request_parameters.beacon,
    "level": request_parameters.printable,
    "location": request_parameters.printable,
    "x": request_parameters.metres,
    "y": request_parameters.metres,
}
COLUMNS = list(_READERS)


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
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    found: dict[str, Beacon] = {}
    errors: list[BadLine] = []
    lines = bad_lines = 0
    try:
        if next(reader, []) != COLUMNS:
            reason = f"the columns must be {','.join(COLUMNS)}"
            return ParsedFile([], [BadLine(1, "header", reason)], 1)
        for row in reader:
            lines += bool(row)
            if lines > MAX_LINES:
                raise _too_many()
            if row and (wrong := _parse_row(row, reader.line_num, found)):
                bad_lines += 1
                errors += wrong
            if bad_lines == MAX_ERRORS:
                break
    except csv.Error as error:
        bad_lines += 1
        errors.append(BadLine(reader.line_num, "line", str(error)))
    return ParsedFile(list(found.values()), errors[:MAX_ERRORS], bad_lines)


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
    return out.getvalue()


def _too_many() -> Problem:
    return Problem("too_large", f"more than {MAX_LINES} beacons; send them in parts")


def _parse_row(row: list[str], number: int, found: dict[str, Beacon]) -> list[BadLine]:
    """Add the beacon of a row to those found, or return what is wrong with it."""
    if len(row) != len(COLUMNS):
        return [BadLine(number, "line", f"{len(row)} columns instead of {len(COLUMNS)}")]
    parsed, faults = beacon(dict(zip(COLUMNS, map(spreadsheet.text, row), strict=True)))
    if parsed is None:
        return [BadLine(number, *fault) for fault in faults]
    if parsed.mac in found:
        return [BadLine(number, "mac", f"{parsed.mac} stands in an earlier line too")]
    found[parsed.mac] = parsed
    return []
