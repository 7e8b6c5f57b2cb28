"""Beacons as a client writes them: the lines of a CSV file, and the fields of one."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ingest.api.problems import Problem
from ingest.errors import ParameterError
from ingest.rules import parameters as parsing
from ingest.storage.beacons import Beacon

MAX_LINES = 2000
COLUMNS = ["mac", "level", "location", "x", "y"]


class Line(NamedTuple):
    """What is wrong with a line of a file."""

    line: int
    field: str
    reason: str


def read(text: str) -> tuple[list[Beacon], list[Line]]:
    """Return the beacons of a file and what is wrong with its lines."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    found: dict[str, Beacon] = {}
    wrong: list[Line] = []
    try:
        if next(reader, []) != COLUMNS:
            return [], [Line(1, "header", f"the columns must be {','.join(COLUMNS)}")]
        for row in reader:
            if row:
                wrong += _read_row(row, reader.line_num, found)
    except csv.Error as error:
        wrong.append(Line(reader.line_num, "line", str(error)))
    if len(found) > MAX_LINES:
        raise Problem("too_large", f"{len(found)} beacons; at most {MAX_LINES} at once")
    return list(found.values()), wrong


def _read_row(row: list[str], number: int, found: dict[str, Beacon]) -> Iterable[Line]:
    if len(row) != len(COLUMNS):
        return [Line(number, "line", f"{len(row)} columns instead of {len(COLUMNS)}")]
    parsed, errors = beacon(dict(zip(COLUMNS, row, strict=True)))
    if parsed is None:
        return [Line(number, error.parameter, error.reason) for error in errors]
    if parsed.mac in found:
        return [Line(number, "mac", f"{parsed.mac} stands in an earlier line too")]
    found[parsed.mac] = parsed
    return []


def beacon(fields: Mapping[str, Any]) -> tuple[Beacon | None, list[ParameterError]]:
    """Return a beacon, or everything that is wrong with it."""
    values: dict[str, Any] = {}
    errors: list[ParameterError] = []
    for name, read in _READERS.items():
        try:
            values[name] = read(fields, name)
        except ParameterError as error:
            errors.append(error)
    if not errors and (values["x"] is None) != (values["y"] is None):
        errors.append(ParameterError("x", "must be given together with y, or neither"))
    return (None, errors) if errors else (Beacon(**values), [])


_READERS = {
    "mac": parsing.mac,
    "level": parsing.printable,
    "location": parsing.printable,
    "x": parsing.metres,
    "y": parsing.metres,
}
