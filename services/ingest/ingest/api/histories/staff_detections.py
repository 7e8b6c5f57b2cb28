"""Where somebody was: /staff/<staff_id>/detections, page by page or as a download."""

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import tzinfo
from functools import partial
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

import msgspec
from flask import Response, request
from msgspec import Meta

from ingest.api.histories import gpx
from ingest.api.histories.downloads import (
    KINDS,
    FeatureCollection,
    Row,
    Subject,
    download,
    zone_of,
)
from ingest.api.http import responses
from ingest.api.http.problems import Problem
from ingest.api.http.query import IF_NONE_MATCH, TEAM, Choice, Flag, Integer, Text
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import DamagedBlocks, ResponseBody
from ingest.api.people import teams
from ingest.assembly import get_context
from ingest.errors import ParameterError
from ingest.rules import request_parameters
from ingest.rules.request_parameters import StaffId, TimeRange
from ingest.rules.roles import Tells
from ingest.storage.database.availability import READ_PROBE_SECONDS
from ingest.storage.database.client import time_limit
from ingest.storage.detections.detections import Page, Position
from ingest.storage.detections.documents import Detection
from ingest.storage.directory.directory import Snapshot
from ingest.storage.sealed.damage import LeftOut, leaving_out
from ingest.web import long_answers
from ingest.web.long_answers import DOWNLOADS

# Above it pages are made one at a time; 1.5 MiB while one is made.
SMALL_LIMIT = 1000
# How many are read at once, 0.8 MiB: 3,000 took 6, which Python keeps.
READ_AT_ONCE = 500
# And of a whole range after that, 1.6 MiB: each read opens the block anew in which it begins.
FILE_AT_ONCE = 4096
# A tag holds for one to two of these: the state that it names does not tell what was deleted.
TAG_SECONDS = 30
_CURSOR = re.compile(r"([0-9]{1,12})-([0-9a-f]{24})")
_FORMAT = Choice("format", "How to answer", ("json", *KINDS, gpx.KIND))
_LIMIT = Integer("limit", "How many at most", low=1, high=3000, default=100)
_NAMES = Flag("names", "`1`: a file has the person's name and team too")
_ZONE = Text(
    "zone",
    "Time zone of the file's name and of its column `local_time`, as the IANA names it; UTC"
    " without one",
    "Asia/Singapore",
    pattern=request_parameters.ZONE_TEXT,
)


ReadPage = Callable[[Position | None, int], Page]  # after which position, and how many


class History(ResponseBody):
    """One page of a history."""

    data: list[Row]
    next: Annotated[str | None, Meta(description="`cursor` of the next page")]
    truncated: Annotated[bool, Meta(description="Whether there is a next page")]
    damaged_blocks: DamagedBlocks


class _Wanted(NamedTuple):
    """What a request wants: a page of so many, as a file perhaps, or the whole range as one."""

    range: TimeRange
    after: Position | None
    limit: int  # of the whole range none
    kind: str
    whole: bool
    zone: tzinfo
    names: tuple[str, ...]  # the person's, where they are asked for


_ANSWERS = declarations.gives(History, cached=True)
_ANSWERS[200] = Body(
    "The page.",
    {
        JSON: Content(History),
        "text/csv": Content(str),
        "application/geo+json": Content(FeatureCollection),
        gpx.MEDIA_TYPE: Content(str),
    },
    {
        **_ANSWERS[200].headers,
        "Link": "The next page, `rel=next`",
        "X-Truncated": "`true` when there is one",
    },
)


@declare(
    "GET",
    "/staff/<staff_id>/detections",
    tells_team=Tells.ASKED,
    summary="Where somebody was",
    description="Newest first, each detection once, also while others come in. Follow `next` to"
    " read on. `csv` and `geojson` are downloads: without `limit` of the whole range, however long,"
    f" {DOWNLOADS} at a time; with it of one page, whose next is in the `Link` header. When the"
    " database fails in the middle of a file, the connection breaks: what came is not whole. A file"
    " says in its name and in each row whose it is. In GeoJSON the coordinates are metres on the"
    " plan of the level, not degrees. `gpx` is for maps, where `PLAN_ORIGIN` says where the plans"
    " lie: of the whole range, whatever `limit` and `cursor` say, the oldest first, with the place"
    " and level of each stay.",
    parameters=[
        Text("staff_id", "Staff id", "0", "path", request_parameters.STAFF_TEXT.pattern),
        Text(
            "from",
            "Not before: unix seconds, unix milliseconds or ISO 8601",
            pattern=request_parameters.TIME_TEXT,
        ),
        Text(
            "to",
            "Not after, in the same forms; both are inclusive",
            pattern=request_parameters.TIME_TEXT,
        ),
        _LIMIT,
        Text("cursor", "`next` of the page before", pattern=_CURSOR.pattern),
        _FORMAT,
        _ZONE,
        _NAMES,
        TEAM,
        IF_NONE_MATCH,
    ],
    answers=_ANSWERS,
    problems=[
        "invalid_request",
        "not_found",
        "damaged_history",
        "too_many_waiting",
        "store_unavailable",
    ],
    curl="curl 'HOST/api/v1/staff/0/detections?from=2026-01-01T00:00:00Z&limit=10'",
    tag="people",
)
def staff_detections(staff_id: str) -> Response:
    """Answer one page of somebody's detections."""
    parameters = {name: value for name, value in request.args.items() if value}
    wanted = _wanted(staff_id, parameters)
    person = wanted.range.staff_id
    if not teams.members(teams.asked())(person):
        raise Problem("not_found", f"staff member {person} is not of this team")
    context = get_context()
    context.database.availability.check_reachable()
    with time_limit(READ_PROBE_SECONDS):  # whether the shard answers that this person is on
        state = context.histories.states.read({person: None}).get(person)
    directory = context.directory.cache.current()
    content = sorted(parameters.items()), wanted.names, state and state.mark.name, directory.tag
    turn = int(time.time() // TAG_SECONDS)
    etag, before = responses.tag(*content, turn), responses.tag(*content, turn - 1)
    if state and (unchanged := responses.not_modified(etag) or responses.not_modified(before)):
        return unchanged
    if wanted.kind == gpx.KIND:
        if not context.histories.detections.has(person):
            raise _unheard(staff_id)
        subject = Subject(wanted.range, wanted.zone, directory.position_of, wanted.names)
        response = gpx.download(subject, state, directory)
        return responses.tagged(response, etag) if state else response
    as_of = state.read_at if state else None
    read = partial(context.histories.detections.page, wanted.range, as_of=as_of)
    is_large = wanted.limit > SMALL_LIMIT and not wanted.whole
    with (
        # A file has no place to say what it lacks: it fails.
        leaving_out() if wanted.kind == "json" else nullcontext(LeftOut()) as left_out,
        responses.one_at_a_time if is_large else nullcontext(),
    ):
        page = read(wanted.after, min(wanted.limit, READ_AT_ONCE))
        if not page.detections and not context.histories.detections.has(person):
            raise _unheard(staff_id)
        response, following = _response(wanted, page, read, directory, left_out)
    response.headers["X-Truncated"] = "true" if following else "false"
    if following:
        query = urlencode(parameters | {"cursor": _cursor(following)})
        response.headers["Link"] = f'<{request.path}?{query}>; rel="next"'
    return responses.tagged(response, etag) if state else response


def _unheard(staff_id: str) -> Problem:
    return Problem("not_found", f"nothing was ever heard of staff member {staff_id}")


def _wanted(staff_id: str, parameters: dict[str, str]) -> _Wanted:
    between = request_parameters.between({"staff_id": staff_id} | parameters)
    limit = _LIMIT.read(parameters)
    after = _position(parameters.get("cursor"))
    kind = _FORMAT.read(parameters)
    if kind == gpx.KIND and not get_context().plan_origin:
        why = "needs degrees: set PLAN_ORIGIN, which says where on Earth the plans lie"
        raise ParameterError(_FORMAT.name, f"{kind} {why}")
    whole = kind != "json" and _LIMIT.name not in parameters
    zone = zone_of(parameters, _ZONE.name)
    named = _names(between.staff_id) if _NAMES.read(parameters) and kind != "json" else ()
    return _Wanted(between, after, sys.maxsize if whole else limit, kind, whole, zone, named)


def _names(staff_id: StaffId) -> tuple[str, ...]:
    """Return what somebody is called, and of which team they are; texts that may be empty."""
    person = get_context().people.entries.find(staff_id)
    return (person.name, person.team) if person else ("", "")


def _response(
    wanted: _Wanted, page: Page, read: ReadPage, directory: Snapshot, left_out: LeftOut
) -> tuple[Response, Position | None]:
    """Return the answer that begins with some detections, and where what follows it begins."""
    pages = _pages(wanted, page, read)
    if wanted.kind == "json":
        texts = []
        for page in pages:  # the last one says what follows
            rows = [_row(detection, directory) for detection in page.detections]
            texts += [msgspec.json.encode(rows)[1:-1]] if rows else []
        cursor = _cursor(page.next) if page.next else None
        answer = History([], cursor, page.next is not None, len(left_out))
        opening, closing = responses.around_items(answer)
        body = b"".join([opening, b",".join(texts), closing, b"\n"])
        return Response(body, mimetype=JSON), page.next
    following = None
    if not wanted.whole:
        page_list = list(pages)  # what follows is said before the first of them
        following, pages = page_list[-1].next, iter(page_list)
    elif page.next:
        pages = long_answers.in_turn(pages)
    subject = Subject(wanted.range, wanted.zone, directory.position_of, wanted.names)
    return download(wanted.kind, (page.detections for page in pages), subject), following


def _pages(wanted: _Wanted, page: Page, read: ReadPage) -> Iterator[Page]:
    """Yield a page, and those after it that are wanted."""
    missing = wanted.limit - len(page.detections)
    at_once = FILE_AT_ONCE if wanted.whole else READ_AT_ONCE
    yield page
    while missing > 0 and page.next:
        page = read(page.next, min(missing, at_once))
        missing -= len(page.detections)
        yield page


def _cursor(position: Position) -> str:
    return f"{position.timestamp}-{position.id}"


def _position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if not match:
        raise ParameterError("cursor", "is not one that we gave")
    return Position(int(match[1]), match[2])


def _row(detection: Detection, directory: Snapshot) -> Row:
    row = Row(
        id=detection.id,
        timestamp=detection.timestamp,
        time=responses.iso(detection.timestamp),
        level=detection.level,
        location=detection.location,
        mac=detection.mac,
        rssi=detection.rssi,
    )
    if position := directory.position_of(detection.mac):
        row.x, row.y = position
    return row
