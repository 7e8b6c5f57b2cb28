"""What became of somebody who is not heard any more: /staff/<staff_id>/lost_contact."""

import time
from collections.abc import Mapping
from typing import Annotated, Any

from flask import Response
from msgspec import Meta, Struct

from ingest.api.access import audited
from ingest.api.http import bodies, responses
from ingest.api.http.problems import Problem, invalid
from ingest.api.http.query import Text
from ingest.api.http.readers import Reader, read_all
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import Seconds
from ingest.api.people import last_positions
from ingest.api.people.last_positions import LostContact, State
from ingest.assembly import get_context
from ingest.errors import ParameterError, StoreUnavailable
from ingest.rules import request_parameters
from ingest.rules.request_parameters import MAX_UNIX_SECONDS, StaffId
from ingest.storage.people import lost_contacts
from ingest.storage.people.lost_contacts import STATES
from ingest.web import credentials


class LostContactInput(Struct):
    """What is said of somebody."""

    state: State
    timestamp: Annotated[Seconds, Meta(description="Of their last detection, as in `/staff`")]


@declare(
    "PUT",
    "/staff/<staff_id>/lost_contact",
    summary="Say what became of somebody who lost contact",
    description="`/staff` tells it to everybody, with the name of who said it, until the person is"
    " heard again, or for two days: by this service at once, by the others after 2 s at the latest."
    " A 409 says that they were heard since `timestamp`.",
    parameters=[Text("staff_id", "Staff id", "0", "path", request_parameters.STAFF_TEXT.pattern)],
    body=Body(
        "What it is, and after which detection.",
        {
            JSON: Content(
                LostContactInput, example={"state": "gone_home", "timestamp": 1_767_225_600}
            )
        },
    ),
    answers=declarations.gives(LostContact),
    problems=[
        "invalid_request",
        "not_found",
        "conflict",
        "too_large",
        "unsupported_media_type",
        "too_many_waiting",
        "store_unavailable",
    ],
    curl="curl -X PUT 'HOST/api/v1/staff/0/lost_contact' -H 'Content-Type: application/json'"
    """ -d '{"state": "gone_home", "timestamp": 1767225600}'""",
    tag="people",
)
def put_lost_contact(staff_id: str) -> Response:
    """Store what became of somebody."""
    readers: dict[str, Reader] = {
        "staff_id": request_parameters.staff_id,
        "state": _state,
        "timestamp": _timestamp,
    }
    values, faults = read_all(readers, bodies.json_object() | {"staff_id": staff_id})
    if faults:
        raise invalid(faults)
    person, state, timestamp = values.values()
    _check_last(person, timestamp)
    visitor = credentials.visitor()
    by = visitor.name or f"somebody at {credentials.address()}"  # where access is open
    lost = lost_contacts.LostContact(state, by, int(time.time()), timestamp)
    get_context().people.lost_contacts.put(person, lost)
    audited.note("lost contact", str(person), state=state, timestamp=timestamp)
    return responses.as_json(LostContact(lost.state, lost.by, lost.at))


def _check_last(staff_id: StaffId, timestamp: int) -> None:
    """Raise Problem where that is not the last time at which somebody was heard."""
    positions = last_positions.answer()
    last = next((person for person in positions.staff if person.staff_id == staff_id), None)
    if last is None:
        if not positions.complete:
            raise StoreUnavailable("the shard of this person does not answer")
        raise Problem("not_found", "nobody with this staff id was ever heard")
    if last.timestamp != timestamp:
        raise Problem("conflict", "they were heard since: read `/staff` again")


def _state(body: Mapping[str, Any], field: str) -> str:
    if body.get(field) not in STATES:
        raise ParameterError(field, f"must be {' or '.join(STATES)}")
    return str(body[field])


def _timestamp(body: Mapping[str, Any], field: str) -> int:
    return request_parameters.integer(body, field, 0, MAX_UNIX_SECONDS)
