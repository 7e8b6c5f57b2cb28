"""Where everybody is: /staff and /now."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple
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


class _Page(NamedTuple):
    """Some of the people that are asked for, by staff id."""

    people: Sequence[LastHeard]
    is_last: bool
    asked: tuple[int, int]  # from which on, and how many


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


def _in_pages(answer: type[ResponseBody]) -> dict[int, declarations.Body]:
    """Declare an answer that may tell where its next page is."""
    answers = declarations.gives(answer, cached=True)
    link = {"Link": "The next page, `rel=next`, where there is one"}
    return answers | {200: answers[200]._replace(headers={**answers[200].headers, **link})}


@declare(
    "GET",
    "/staff",
    tells=Tells.ASKED,
    tells_team=Tells.ASKED,
    summary="Where everybody was last heard",
    description=f"One entry for every staff member ever heard. {_HYSTERESIS} The `ETag` changes"
    " with what is told of anybody, and with a freshness.",
    parameters=[LEVEL, TEAM, _LIMIT, _AFTER, IF_NONE_MATCH],
    answers=_in_pages(Staff),
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/staff'",
    tag="people",
)
def staff() -> Response:
    """Answer the last detection of every staff member."""
    positions, level = _asked()
    page = _page(positions.on(level))
    etag = responses.tag(positions.tag, level, *page.asked)
    if unchanged := responses.not_modified(etag):
        return unchanged
    answer = Staff(positions.as_of, positions.complete, [])
    response = responses.filled(answer, positions.texts(page.people))
    return _linked(responses.tagged(response, etag), page)


@declare(
    "GET",
    "/now",
    tells=Tells.ASKED,
    tells_team=Tells.ASKED,
    summary="Who is where now, level by level",
    description=f"The entries of `/staff` that are not `stale`, by level, the lowest"
    f" first. {_HYSTERESIS} A page holds the next ones by staff id, so that whoever changes the"
    " level meanwhile is missing from none: put the levels of all pages together.",
    parameters=[LEVEL, TEAM, _LIMIT, _AFTER, IF_NONE_MATCH],
    answers=_in_pages(Now),
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/now?level=4'",
    tag="people",
)
def now() -> Response:
    """Answer who was heard in the last quarter of an hour, grouped by level."""
    positions, level = _asked()
    page = _page([person for person in positions.present() if level in ("", person.beacon.level)])
    etag = responses.tag(positions.tag, level, *page.asked)
    if unchanged := responses.not_modified(etag):
        return unchanged
    people_by_level: dict[str, list[LastHeard]] = {}
    for person in page.people:
        people_by_level.setdefault(person.beacon.level, []).append(person)
    answer = Now(positions.as_of, positions.complete, [])
    response = responses.filled(answer, _by_level(positions, people_by_level))
    return _linked(responses.tagged(response, etag), page)


def _asked() -> tuple[PositionsAnswer, str]:
    """Read the people of the team that is asked for; return the level, too."""
    level = request.args.get(LEVEL.name, "")
    return last_positions.answer(teams.asked()), level


def _page(people: Sequence[LastHeard]) -> _Page:
    """Return those after a staff id, as many as are asked for. Raises ParameterError."""
    limit, first = _LIMIT.read(request.args), 0
    if request.args.get(_AFTER.name):
        after = by_staff_id(request_parameters.staff_id(request.args, _AFTER.name))
        first = bisect_right(people, after, key=lambda person: by_staff_id(person.staff_id))
    page = people[first : first + limit]
    return _Page(page, is_last=first + limit >= len(people), asked=(first, limit))


def _linked(response: Response, page: _Page) -> Response:
    """Tell the address of the next page, where there is one."""
    if page.people and not page.is_last:
        same = [LEVEL.name, TEAM.name, _LIMIT.name]
        query = {name: request.args[name] for name in same if request.args.get(name)}
        following = urlencode(query | {_AFTER.name: page.people[-1].staff_id})
        response.headers["Link"] = f'<{request.path}?{following}>; rel="next"'
    return response


def _by_level(
    positions: PositionsAnswer, people_by_level: dict[str, list[LastHeard]]
) -> Iterator[bytes]:
    """Yield who is on each level, the lowest first."""
    for number, level in enumerate(sorted(people_by_level, key=by_level)):
        opening, closing = responses.around_items(StaffOfLevel(level, []))
        yield b"," + opening if number else opening
        yield from positions.texts(people_by_level[level])
        yield closing
