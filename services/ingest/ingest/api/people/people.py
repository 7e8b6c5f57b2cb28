"""Names and teams of people: /people and /people/<staff_id>."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from flask import Response, request
from msgspec import Meta

from common.names import MAX_TEXT
from ingest.api.access import audited
from ingest.api.directory.beacon_input import Name
from ingest.api.http import bodies, responses
from ingest.api.http.names_in_paths import name_in
from ingest.api.http.problems import Problem, invalid
from ingest.api.http.query import IF_NEW, IF_NONE_MATCH, LEVEL, TEAM, Choice, Text
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody, StaffId
from ingest.api.people import last_positions, person_input, teams
from ingest.api.people.person_input import NameInput
from ingest.assembly import get_context
from ingest.rules import request_parameters
from ingest.rules.roles import Tells
from ingest.storage.people.people import MAX_PEOPLE, TooManyPeople
from ingest.storage.people.person import MAX_NOTE, Person

STAFF_ID_IN_PATH = Text("staff_id", "Staff id", "7", "path", request_parameters.STAFF_TEXT.pattern)
_FORMAT = Choice("format", "`csv`: as a file that /people/import takes", ["json", "csv"])
_IF_MATCH = Text(
    "If-Match", "`ETag` of the person as you read them; 412 if it does not hold", where="header"
)


PersonInPath = name_in("/people/<staff_id>")


class RegisteredPerson(ResponseBody):
    """A person who has a name."""

    staff_id: StaffId
    name: Annotated[Name, Meta(description="What people call them")]
    team: Annotated[str, Meta(description="Of which team they are, or empty", max_length=MAX_TEXT)]
    note: Annotated[str, Meta(description="Anything else", max_length=MAX_NOTE)]
    on_duty: Annotated[bool, Meta(description="Whether anybody should look for them")]


class RegisteredPeople(ResponseBody):
    """All people who have a name."""

    data: Annotated[list[RegisteredPerson], Meta(description="By name")]


_ONE = declarations.gives(RegisteredPerson)
_ONE[200] = _ONE[200]._replace(headers={"ETag": "Send it back as `If-Match`"})


@declare(
    "GET",
    "/people",
    tells=Tells.ASKED,
    tells_team=Tells.ASKED,
    summary="The names and teams of people",
    description=f"Of all who were given one, {MAX_PEOPLE} at most, by name. Another service's"
    " writes are seen after 2 s at the latest. With a level, those who were last heard there.",
    parameters=[LEVEL, TEAM, _FORMAT, IF_NONE_MATCH],
    answers=declarations.gives(RegisteredPeople, cached=True, file="text/csv"),
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/people'",
    tag="people",
)
def people() -> Response:
    """Answer everybody who has a name."""
    snapshot = get_context().people.names.current()
    team, level = teams.asked(), request.args.get(LEVEL.name, "")
    is_file = _FORMAT.read(request.args) == "csv"
    there = _last_heard_on(level) if level else None
    etag = responses.tag(snapshot.tag, team, there and sorted(map(str, there)), is_file)
    if held := responses.not_modified(etag):
        return held
    pieces = snapshot.people()
    if team:
        pieces = ([person for person in piece if person.team == team] for piece in pieces)
    if there is not None:
        pieces = ([person for person in piece if person.staff_id in there] for piece in pieces)
    if not is_file:
        return responses.tagged(responses.filled(RegisteredPeople([]), _texts(pieces)), etag)
    disposition = {"Content-Disposition": 'attachment; filename="people.csv"'}
    file = person_input.write_file(pieces, is_ascii=snapshot.is_ascii)
    return responses.tagged(Response(file, headers=disposition, mimetype="text/csv"), etag)


def _last_heard_on(level: str) -> frozenset[StaffId]:
    return frozenset(person.staff_id for person in last_positions.answer().on(level))


def _texts(pieces: Iterator[list[Person]]) -> Iterator[bytes]:
    """Yield people as JSON, with commas between them, in pieces."""
    comma = b""
    for piece in filter(None, pieces):
        yield comma + msgspec.json.encode([RegisteredPerson(*person) for person in piece])[1:-1]
        comma = b","


@declare(
    "GET",
    "/people/<person:staff_id>",
    tells_team=Tells.ASKED,
    summary="One person",
    parameters=[STAFF_ID_IN_PATH, TEAM],
    answers=_ONE,
    problems=["invalid_request", "not_found", "store_unavailable"],
    curl="curl 'HOST/api/v1/people/7'",
    tag="people",
)
def person(staff_id: str) -> Response:
    """Answer what one person is called, as it is stored now."""
    wanted = request_parameters.staff_id({"staff_id": staff_id}, "staff_id")
    context = get_context()
    context.database.availability.check_reachable()
    entry = context.people.entries.find(wanted)
    if entry is None or teams.asked() not in ("", entry.team):
        raise Problem("not_found", f"staff {wanted} has no name here")
    return _tagged(entry)


@declare(
    "PUT",
    "/people/<person:staff_id>",
    summary="Give a person a name, a team",
    description="All of it: a field that is not given is emptied. The other services see it after"
    " 2 s at the latest.",
    parameters=[STAFF_ID_IN_PATH, _IF_MATCH, IF_NEW],
    body=Body(
        "The person.",
        {JSON: Content(NameInput, example={"name": "Jane Tan", "team": "Cleaning"})},
    ),
    answers=_ONE,
    problems=[
        "invalid_request",
        "conflict",
        "precondition_failed",
        "too_large",
        "unsupported_media_type",
        "store_unavailable",
    ],
    curl="curl -X PUT 'HOST/api/v1/people/7' -H 'Content-Type: application/json'"
    """ -d '{"name": "Jane Tan", "team": "Cleaning"}'""",
    tag="people",
)
def put_person(staff_id: str) -> Response:
    """Give one person a name."""
    entry, faults = person_input.person(bodies.json_object() | {"staff_id": staff_id})
    if entry is None:
        raise invalid(faults)
    context = get_context()
    context.database.availability.check_reachable()
    try:
        context.people.entries.put(entry, _check_match)
    except TooManyPeople as error:
        raise Problem("conflict", str(error)) from None
    context.people.names.reload()
    details = entry._asdict()
    audited.note("person put", str(details.pop("staff_id")), **details)
    return _tagged(entry)


@declare(
    "DELETE",
    "/people/<person:staff_id>",
    summary="Take a person's name away",
    description="Their detections stay. A person who has none is success too: the answer to a"
    " repeat is the same.",
    parameters=[STAFF_ID_IN_PATH],
    answers={204: Body("They have no name.", {})},
    problems=["invalid_request", "store_unavailable"],
    curl="curl -X DELETE 'HOST/api/v1/people/7'",
    tag="people",
)
def delete_person(staff_id: str) -> Response:
    """Take one person's name away."""
    wanted = request_parameters.staff_id({"staff_id": staff_id}, "staff_id")
    context = get_context()
    context.database.availability.check_reachable()
    context.people.entries.remove(wanted)
    context.people.names.reload()
    audited.note("person removed", str(wanted))
    return Response(status=204)


def _check_match(stored: Person | None) -> None:
    """Raise Problem where the client says what it wants to replace, and that is not there."""
    if stored and request.if_none_match.star_tag:
        why = f"staff {stored.staff_id} is {stored.name} already: edit that entry"
        raise Problem("precondition_failed", why)
    wanted = request.if_match
    if not wanted:
        return
    # Weak ones too: the gateway makes them of ours where it compresses.
    if stored is None or not (wanted.star_tag or wanted.contains_weak(_tag(stored))):
        raise Problem("precondition_failed", "somebody changed this person since: read it again")


def _tag(entry: Person) -> str:
    return responses.tag(*entry)


def _tagged(entry: Person) -> Response:
    return responses.tagged(responses.as_json(RegisteredPerson(*entry)), _tag(entry))
