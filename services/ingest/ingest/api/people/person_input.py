"""People as a client writes them: the fields of one, and the lines of a CSV file."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from common import csv_file, spreadsheet
from common.csv_file import BadLine, TooManyRows
from common.names import MAX_TEXT
from ingest.api.directory.beacon_input import Name
from ingest.api.http.names_in_paths import words_beside
from ingest.api.http.problems import Problem
from ingest.api.http.readers import Reader, read_all
from ingest.errors import Fault, ParameterError
from ingest.rules import request_parameters
from ingest.rules.request_parameters import StaffId
from ingest.storage.people.person import MAX_NOTE, Person

COLUMNS = list(Person._fields)
# Of one file, which takes 7 MiB at most while it is loaded; the directory has more.
MAX_FILE_PEOPLE = 5000
# What follows /people/ in other addresses: nobody could be asked for by these.
WORDS = words_beside("/people/<staff_id>")
_COLUMNS = csv_file.Columns(
    {
        "staff_id": ("staff id", "staff", "staff number", "user address", "employee id", "id"),
        "name": ("name", "full name", "staff name", "employee", "employee name"),
        "team": ("team", "department", "group", "unit"),
        "note": ("note", "notes", "remark", "remarks", "comment"),
        "on_duty": ("on duty", "duty", "active"),
    },
    needed=frozenset({"staff_id", "name"}),
    max_rows=MAX_FILE_PEOPLE,
)
_DUTY = {
    **dict.fromkeys(("true", "1", "yes", "y"), True),
    **dict.fromkeys(("false", "0", "no", "n"), False),
}
DUTY_TEXT = f"({'|'.join(_DUTY)})?"


class NameInput(Struct):
    """What a person is called, and of which team they are; fields of other names are ignored."""

    name: Annotated[Name | float, Meta(description="What people call them")]
    team: Annotated[
        Annotated[str, Meta(max_length=MAX_TEXT)] | float | UnsetType | None,
        Meta(description="Of which team they are; none where it is not given"),
    ] = UNSET
    note: Annotated[
        Annotated[str, Meta(max_length=MAX_NOTE)] | float | UnsetType | None,
        Meta(description="Anything else"),
    ] = UNSET
    on_duty: Annotated[
        bool
        | Annotated[str, Meta(extra_json_schema={"pattern": f"^{DUTY_TEXT}$"})]
        | UnsetType
        | None,
        Meta(description="Whether anybody should look for them; yes where it is not given"),
    ] = UNSET


class PeopleFile(NamedTuple):
    """The people of a file, and what is wrong with its lines."""

    people: list[Person]
    errors: list[BadLine]  # of the first bad lines
    bad_lines: int
    columns: dict[str, str]  # of the file, by field


def staff_id(parameters: Mapping[str, Any], name: str) -> StaffId:
    """Return the id of a person who can be asked for. Raises ParameterError."""
    identified = request_parameters.staff_id(parameters, name)
    if identified in WORDS:
        raise ParameterError(name, f"must not be {identified}, an address of its own")
    return identified


def _team(parameters: Mapping[str, Any], name: str) -> str:
    return request_parameters.text_or_empty(parameters, name, MAX_TEXT)


def _note(parameters: Mapping[str, Any], name: str) -> str:
    return request_parameters.text_or_empty(parameters, name, MAX_NOTE)


def _on_duty(parameters: Mapping[str, Any], name: str) -> bool:
    value = parameters.get(name)
    if value in (None, ""):
        return True
    if isinstance(value, str) and value.strip().lower() in _DUTY:
        return _DUTY[value.strip().lower()]
    if not isinstance(value, bool):
        raise ParameterError(name, "must be true or false")
    return value


_READERS: dict[str, Reader] = {
    "staff_id": staff_id,
    "name": request_parameters.place_name,
    "team": _team,
    "note": _note,
    "on_duty": _on_duty,
}


def person(fields: Mapping[str, Any]) -> tuple[Person | None, list[Fault]]:
    """Return a person, or everything that is wrong with them."""
    values, faults = read_all(_READERS, fields)
    return (None, faults) if faults else (Person(**values), [])


def parse_file(text: str) -> PeopleFile:
    """Return what a file holds. Raises Problem at the first line beyond the limit."""
    people: dict[StaffId, Person] = {}
    try:
        lines = csv_file.read(text, _COLUMNS, lambda fields, number: _add(fields, number, people))
    except TooManyRows:
        reason = f"more than {MAX_FILE_PEOPLE} people; send them in parts"
        raise Problem("too_large", reason) from None
    return PeopleFile(list(people.values()), *lines)


def _add(fields: dict[str, str], number: int, people: dict[StaffId, Person]) -> Iterator[BadLine]:
    """Add the person of a row to the others, or yield what is wrong with it."""
    entry, faults = person(fields)
    if entry is None:
        yield from (BadLine(number, fault.parameter, fault.reason) for fault in faults)
    elif entry.staff_id in people:
        reason = f"{entry.staff_id} stands in an earlier line too"
        yield BadLine(number, "staff_id", reason)
    else:
        people[entry.staff_id] = entry


def write_file(people: Iterable[list[Person]], *, is_ascii: bool) -> Iterator[str]:
    """Yield a file that `parse_file` reads, and a spreadsheet shows as it is."""
    head = f"{','.join(COLUMNS)}\r\n"
    yield head if is_ascii else spreadsheet.MARK + head
    for piece in people:
        out = io.StringIO(newline="")
        csv.writer(out).writerows(map(_cells, piece))
        yield out.getvalue()


def _cells(entry: Person) -> list[str]:
    texts = (str(entry.staff_id), entry.name, entry.team, entry.note)
    return [*map(spreadsheet.cell, texts), "true" if entry.on_duty else "false"]
