"""Who was at a place, and when: /visits."""

import heapq
import re
import time
from typing import Annotated

from flask import Response, request
from msgspec import Meta

from common import names
from ingest.api.http import problems, readers, responses
from ingest.api.http.query import TEAM, Integer, Parameters, Text
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import declare
from ingest.api.openapi.schema_fields import DamagedBlocks, Level, ResponseBody, Seconds, StaffId
from ingest.api.people import teams
from ingest.assembly import get_context
from ingest.errors import ParameterError
from ingest.rules import request_parameters
from ingest.rules.roles import Tells
from ingest.storage.detections.documents import UNKNOWN
from ingest.storage.places.visits import MAX_DETECTIONS, TooMany
from ingest.storage.places.visits import Visit as StoredVisit
from ingest.storage.sealed.damage import leaving_out

MAX_DAYS = 31
# The beginning, how long the name of the level is, that name, and the staff id.
_CURSOR = re.compile(r"([0-9]{1,12})-([0-9]{1,2})-(.{2,128})")
_NAME = f".{{1,{names.MAX_TEXT}}}"
_LEVEL = Text("level", "Level of the place; without it, on any level", "4", pattern=_NAME)
_LOCATION = Text("location", "Name of the place", "Lobby B", pattern=_NAME, required=True)
_FROM = Text(
    "from",
    f"Not before: a time in any of the three forms, at most {MAX_DAYS} days before `to`",
    "2026-01-01T10:00:00Z",
    pattern=request_parameters.TIME_TEXT,
    required=True,
)
_TO = Text(
    "to",
    "Not after; both are inclusive, and cut a visit that goes beyond",
    "2026-01-01T10:30:00Z",
    pattern=request_parameters.TIME_TEXT,
    required=True,
)
_GAP = Integer("gap", "The silence, in seconds, after which a visit is over", 60, 3600, 300)
_LIMIT = Integer("limit", "How many at most", low=1, high=1000, default=100)


class Visit(ResponseBody, rename={"from_": "from"}):
    """Somebody at the place, with no silence longer than `gap`."""

    staff_id: StaffId
    level: Level
    from_: Annotated[Seconds, Meta(description="First heard there, unix seconds")]
    to: Annotated[Seconds, Meta(description="Last heard there, unix seconds")]
    detections: Annotated[int, Meta(description="How often they were heard there", ge=1)]


class VisitsOfPlace(ResponseBody):
    """One page of the visits of a place."""

    data: list[Visit]
    next: Annotated[str | None, Meta(description="`cursor` of the next page")]
    damaged_blocks: DamagedBlocks


@declare(
    "GET",
    "/visits",
    tells_team=Tells.ASKED,
    summary="Who was at a place, and when",
    description="Those that began last come first. Every detection that was stored with this level"
    " and location counts, whichever beacon was heard; of a clock that is known to be wrong, at"
    " its time by ours. What was heard elsewhere meanwhile does not end a visit. A place with more"
    f" than {MAX_DETECTIONS} detections in the range is a 400 that names the first `from` that is"
    " not too much.",
    parameters=[
        _LEVEL,
        _LOCATION,
        _FROM,
        _TO,
        _GAP,
        _LIMIT,
        TEAM,
        Text("cursor", "`next` of the page before", pattern=_CURSOR.pattern),
    ],
    answers=declarations.gives(VisitsOfPlace),
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/visits?level=4&location=Lobby%20B"
    "&from=2026-01-01T10:00:00Z&to=2026-01-01T10:30:00Z'",
    tag="people",
)
def visits() -> Response:
    """Answer one page of the visits of a place."""
    location, level, start, end = _wanted()
    gap, limit = _GAP.read(request.args), _LIMIT.read(request.args)
    after = _position(request.args.get("cursor"))
    context = get_context()
    context.database.availability.check_answers()
    all_visits = context.places.visits.read(location, level, start, end, gap)
    is_member = teams.members(teams.asked())
    wanted = (
        visit
        for visit in all_visits
        if is_member(visit.staff_id) and (after is None or _order(visit) > after)
    )
    with (
        leaving_out() as left_out,
        responses.one_at_a_time,
    ):  # it is little here, but megabytes in the router
        try:
            page = heapq.nsmallest(limit + 1, wanted, _order)
        except TooMany as error:
            why = f"from then on there are {MAX_DETECTIONS} detections, which is the most at once"
            raise ParameterError(_FROM.name, f"must be {error.start} or later: {why}") from None
    data = [Visit(*visit) for visit in page[:limit]]
    following = _cursor(page[limit - 1]) if page[limit:] else None
    return responses.as_json(VisitsOfPlace(data, following, len(left_out)))


def _wanted() -> tuple[str, str | None, int, int]:
    """Return location, level and the unix seconds that the request names. Raises Problem."""
    by_name: dict[str, readers.Reader] = {
        _LEVEL.name: _level,
        _LOCATION.name: request_parameters.printable,
        _FROM.name: _moment,
        _TO.name: _moment,
    }
    values, faults = readers.read_all(by_name, request.args, request.args)
    if faults:
        raise problems.invalid(faults)
    level, location, start, end = values.values()
    if location == UNKNOWN:
        raise ParameterError(_LOCATION.name, "must be a place; see /beacons/unknown for the others")
    if start > end:
        raise ParameterError(_FROM.name, "must not be after to")
    if end - start > MAX_DAYS * 86_400:
        raise ParameterError(_FROM.name, f"must be at most {MAX_DAYS} days before to")
    # Of what came from an older release a clock that is ahead is not known: not before its time.
    return location, level, start, min(end, int(time.time()))


def _level(parameters: Parameters, name: str) -> str | None:
    return request_parameters.printable(parameters, name) if parameters.get(name) else None


def _moment(parameters: Parameters, name: str) -> int:
    return request_parameters.moment(parameters, name, 0, request_parameters.MAX_UNIX_SECONDS)


def _order(visit: StoredVisit) -> tuple[int, str, str]:
    # By its beginning: what comes in between two pages makes a visit longer, not another.
    return -visit.start, str(visit.staff_id), visit.level


def _cursor(visit: StoredVisit) -> str:
    return f"{visit.start}-{len(visit.level)}-{visit.level}{visit.staff_id}"


def _position(cursor: str | None) -> tuple[int, str, str] | None:
    if not cursor:
        return None
    match = _CURSOR.fullmatch(cursor)
    if not match:
        raise ParameterError("cursor", "is not one that we gave")
    level, staff_id = match[3][: int(match[2])], match[3][int(match[2]) :]
    return -int(match[1]), staff_id, level
