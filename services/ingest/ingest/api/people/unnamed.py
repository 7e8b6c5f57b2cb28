"""People who were heard and have no name: /people/unnamed."""

import time
from heapq import nlargest
from typing import Annotated

from flask import Response
from msgspec import Meta

from ingest.api.http import responses
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import declare
from ingest.api.openapi.schema_fields import ResponseBody, Seconds, StaffId
from ingest.assembly import get_context

MAX_UNNAMED = 200


class UnnamedPerson(ResponseBody):
    """A person whom somebody should name."""

    staff_id: StaffId
    last_heard: Seconds


class UnnamedPeople(ResponseBody):
    """People whom somebody should name."""

    data: list[UnnamedPerson]
    truncated: Annotated[bool, Meta(description="Whether there are more")]


@declare(
    "GET",
    "/people/unnamed",
    summary="Who was heard and has no name",
    description=f"{MAX_UNNAMED} at most, those who were heard last come first. Name them with"
    " `PUT /people/<staff_id>`.",
    answers=declarations.gives(UnnamedPeople),
    problems=["store_unavailable"],
    curl="curl 'HOST/api/v1/people/unnamed'",
    tag="people",
)
def unnamed_people() -> Response:
    """Answer the people whom somebody should name."""
    context = get_context()
    context.database.availability.check_reachable()
    teams = context.people.names.current().teams
    heard = context.people.last_positions.read().staff
    newest = nlargest(
        MAX_UNNAMED + 1,
        (person for person in heard if person.staff_id not in teams),
        key=lambda person: person.heard_at,
    )
    now = int(time.time())  # no time of a clock that is ahead
    data = [
        UnnamedPerson(person.staff_id, min(person.heard_at, now)) for person in newest[:MAX_UNNAMED]
    ]
    return responses.as_json(UnnamedPeople(data, len(newest) > MAX_UNNAMED))
