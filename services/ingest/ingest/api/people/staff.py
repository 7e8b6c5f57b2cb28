"""Where everybody is: /staff and /now."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlencode

from flask import Response, request
from msgspec import Meta

from ingest.api.http import responses
from ingest.api.http.query import IF_NONE_MATCH, LEVEL, TEAM, Integer, Text
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import declare
from ingest.api.openapi.schema_fields import Complete, Level, ResponseBody, Seconds
from ingest.api.people import last_positions, teams
from ingest.api.people.last_positions import LastDetection, PositionsAnswer
from ingest.rules import request_parameters
from ingest.rules.floors import by_level
from ingest.rules.request_parameters import by_staff_id
from ingest.rules.roles import Tells
from ingest.storage.people.last_positions import LastHeard

# More than there are.
MANY = 1_000_000

_HYSTERESIS = (
    "The level changes only when the new one is heard several times in a row, or much stronger, or"
    " the old one no longer (settings `LEVEL_*`): a beacon heard through the floor moves nobody."
    " On a level it is the place that was heard strongest within some seconds."
)


_LIMIT = Integer("limit", "How many at most", low=1, high=MANY, default=MANY)
_AFTER = Text(
    "after",
    "Only those after this staff id: where the page before ended",
    pattern=request_parameters.STAFF_TEXT.pattern,
)


class Staff(ResponseBody):
    """The last detection of every staff member."""

    as_of: Seconds
    complete: Complete
    data: Annotated[list[LastDetection], Meta(description="By staff id")]


class StaffOfLevel(ResponseBody):
    """Who is on a level."""

    level: Level
    staff: list[LastDetection]


class Now(ResponseBody):
    """Who is where."""

    as_of: Seconds
    complete: Complete
    levels: list[StaffOfLevel]


_ANSWERS = declarations.gives(Staff, cached=True)
_ANSWERS[200] = _ANSWERS[200]._replace(
    headers={**_ANSWERS[200].headers, "Link": "The next page, `rel=next`, where there is one"}
)


@declare(
    "GET",
    "/staff",
    tells=Tells.ASKED,
    tells_team=Tells.ASKED,
    summary="Where everybody was last heard",
    description=f"One entry for every staff member ever heard. {_HYSTERESIS} The `ETag` changes"
    " with what is told of anybody, and with a freshness.",
    parameters=[LEVEL, TEAM, _LIMIT, _AFTER, IF_NONE_MATCH],
    answers=_ANSWERS,
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/staff'",
    tag="people",
)
def staff() -> Response:
    """Answer the last detection of every staff member."""
    limit, first = _LIMIT.read(request.args), 0
    level = request.args.get(LEVEL.name, "")
    team = teams.asked()
    positions = last_positions.answer(team)
    people = positions.on(level)
    if request.args.get(_AFTER.name):
        after = by_staff_id(request_parameters.staff_id(request.args, _AFTER.name))
        first = bisect_right(people, after, key=lambda person: by_staff_id(person.staff_id))
    page = people[first : first + limit]
    etag = responses.tag(positions.tag, level, first, limit)
    if unchanged := responses.not_modified(etag):
        return unchanged
    answer = Staff(positions.as_of, positions.complete, [])
    response = responses.tagged(responses.filled(answer, positions.texts(page)), etag)
    if page and first + limit < len(people):
        following = urlencode(
            ({LEVEL.name: level} if level else {})
            | ({TEAM.name: team} if team else {})
            | {_LIMIT.name: limit, _AFTER.name: page[-1].staff_id}
        )
        response.headers["Link"] = f'<{request.path}?{following}>; rel="next"'
    return response


@declare(
    "GET",
    "/now",
    tells=Tells.ASKED,
    tells_team=Tells.ASKED,
    summary="Who is where now, level by level",
    description=f"The entries of `/staff` that are not `stale`, by level, the lowest"
    f" first. {_HYSTERESIS}",
    parameters=[LEVEL, TEAM, IF_NONE_MATCH],
    answers=declarations.gives(Now, cached=True),
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/now?level=4'",
    tag="people",
)
def now() -> Response:
    """Answer who was heard in the last quarter of an hour, grouped by level."""
    positions = last_positions.answer(teams.asked())
    wanted = request.args.get(LEVEL.name, "")
    etag = responses.tag(positions.tag, wanted)
    if unchanged := responses.not_modified(etag):
        return unchanged
    people_by_level: dict[str, list[LastHeard]] = {}
    for person in positions.present():
        if wanted in ("", person.beacon.level):
            people_by_level.setdefault(person.beacon.level, []).append(person)
    answer = Now(positions.as_of, positions.complete, [])
    return responses.tagged(responses.filled(answer, _by_level(positions, people_by_level)), etag)


def _by_level(
    positions: PositionsAnswer, people_by_level: dict[str, list[LastHeard]]
) -> Iterator[bytes]:
    """Yield who is on each level, the lowest first."""
    for number, level in enumerate(sorted(people_by_level, key=by_level)):
        opening, closing = responses.around_items(StaffOfLevel(level, []))
        yield b"," + opening if number else opening
        yield from positions.texts(people_by_level[level])
        yield closing
