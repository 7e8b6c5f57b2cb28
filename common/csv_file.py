"""A file in CSV as people and their programs write it: columns in any order, by usual names."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from common import names, spreadsheet

# Characters of a field: what is longer is not looked at.
MAX_RAW = 256
# Characters: a longer line names no columns, and the csv module takes no field of 131,073.
MAX_HEADER = 10_000
# Bad lines beyond these are not looked for.
MAX_ERRORS = 100
MISSING = "is missing"
TOO_LONG = f"must be at most {MAX_RAW} characters"
# Fields of a BadLine that are no columns.
LINE, HEADER = "line", "header"
_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n|\Z)")
_DELIMITERS = ",;\t"
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)


class Columns(NamedTuple):
    """The columns that a file may have, and how many rows at most."""

    # By field: how other programs call it, the better name first.
    names: Mapping[str, Sequence[str]]
    needed: frozenset[str]
    max_rows: int
    coordinates: tuple[str, ...] = ()  # all of them or none; a decimal comma is one

    def places(self, head: Sequence[str]) -> dict[str, int]:
        """Return where a file has each field, nothing where it lacks one that is needed."""
        titles = [
            " ".join(names.folded(name).casefold().replace("_", " ").split()) for name in head
        ]
        places = {
            field: titles.index(title)
            for field, known in self.names.items()
            if (title := next((name for name in known if name in titles), None))
        }
        coordinates = sum(field in places for field in self.coordinates)
        is_whole = self.needed <= places.keys() and coordinates in (0, len(self.coordinates))
        return places if is_whole else {}

    def __str__(self) -> str:
        """Return them for people."""
        together = " and ".join(self.coordinates)
        return ",".join(self.names) + (f", {together} both or neither" if together else "")


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


class TooManyRows(ValueError):
    """A file has more than it may."""


class Lines(NamedTuple):
    """What is wrong with the lines of a file, and which columns it has."""

    errors: list[BadLine]  # of the first bad lines
    bad_lines: int
    columns: dict[str, str]  # of the file, by field


def read(
    text: str, columns: Columns, add: Callable[[dict[str, str], int], Iterable[BadLine]]
) -> Lines:
    """Give the fields and the number of each row to `add`, which tells what is wrong with them.

    After the first MAX_ERRORS bad lines nobody needs to know of more.
    Raises TooManyRows at the first line beyond the limit.
    """
    if max(text.count("\n"), text.count("\r")) > 2 * columns.max_rows:  # empty ones do not count
        raise TooManyRows
    text = text.removeprefix("\ufeff")
    delimiter = _delimiter(text[:MAX_HEADER].splitlines()[0] if text else "", columns)
    reader = csv.reader(_lines(text), delimiter=delimiter, strict=True)
    places: dict[str, int] = {}
    head: list[str] = []
    errors: list[BadLine] = []
    lines = bad_lines = 0
    try:
        head = next(reader, [])
        places = columns.places(head)
        if not places:
            there = ", ".join(head)[: names.MAX_TEXT]
            reason = f"the columns must be {columns}: {there!a}"
            return Lines([BadLine(1, HEADER, reason)], 1, {})
        for row in filter(None, reader):
            lines += 1
            if lines > columns.max_rows:
                raise TooManyRows
            number = reader.line_num
            if len(row) != len(head):
                wrong = [BadLine(number, LINE, f"{len(row)} columns instead of {len(head)}")]
            else:
                fields = {field: spreadsheet.text(row[at]) for field, at in places.items()}
                if delimiter != ",":
                    _point(fields, columns.coordinates)
                wrong = list(add(fields, number))
            if wrong:
                bad_lines += 1
                errors += wrong
            if bad_lines == MAX_ERRORS:
                break
    except csv.Error as error:
        bad_lines += 1
        errors.append(BadLine(reader.line_num, LINE, str(error)))
    named = {field: names.folded(head[at])[: names.MAX_TEXT] for field, at in places.items()}
    return Lines(errors[:MAX_ERRORS], bad_lines, named)


def _lines(text: str) -> Iterator[str]:
    """Yield lines with their ends; what has them all at once takes four bytes a character."""
    return filter(None, (line[0] for line in _LINE.finditer(text)))


def _delimiter(head: str, columns: Columns) -> str:
    """Return what parts the columns of a header, a comma if nothing makes one of it."""
    for delimiter in _DELIMITERS:
        if columns.places(next(csv.reader([head], delimiter=delimiter), [])):
            return delimiter
    return ","


def _point(fields: dict[str, str], coordinates: Iterable[str]) -> None:
    """Write decimal commas as points."""
    for axis in coordinates:
        if _DECIMAL_COMMA.fullmatch(fields.get(axis, "")):
            fields[axis] = fields[axis].replace(",", ".")
