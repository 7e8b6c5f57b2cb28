"""Where somebody was: /staff/<staff_id>/detections, page by page or as a download."""

import re
import sys
import threading
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

from ingest.api.histories.downloads import KINDS, FeatureCollection, Row, Subject, download, zone_of
from ingest.api.http import responses
from ingest.api.http.problems import Problem
from ingest.api.http.query import IF_NONE_MATCH, Choice, Integer, Text
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody
from ingest.assembly import get_context
from ingest.errors import ParameterError
from ingest.rules import request_parameters
from ingest.rules.request_parameters import TimeRange
from ingest.storage.database.availability import READ_PROBE_SECONDS
from ingest.storage.database.client import time_limit
from ingest.storage.detections.detections import Page, Position
from ingest.storage.detections.documents import Detection
from ingest.storage.directory.directory import Snapshot

# Above it pages are made one at a time; 1.5 MiB while one is made.
SMALL_LIMIT = 1000
# How many are read at once, 0.8 MiB: 3,000 took 6, which Python keeps.
READ_AT_ONCE = 500
# Each of more than a page holds a thread of its lane for as long as it is made and read, somebody's
# year for a minute: the other threads are for others.
DOWNLOADS = 2
_places = threading.BoundedSemaphore(DOWNLOADS)
# A tag holds for one to two of these: the state that it names does not tell what was deleted.
TAG_SECONDS = 30
_CURSOR = re.compile(r"([0-9]{1,12})-([0-9a-f]{24})")
_FORMAT = Choice("format", "How to answer", ("json", *KINDS))
_LIMIT = Integer("limit", "How many at most", low=1, high=3000, default=100)
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


class _Wanted(NamedTuple):
    """What a request wants: a page of so many, as a file perhaps, or the whole range as one."""

    range: TimeRange
    after: Position | None
    limit: int  # of the whole range none
    kind: str
    whole: bool
    zone: tzinfo


_ANSWERS = declarations.gives(History, cached=True)
_ANSWERS[200] = Body(
    "The page.",
    {
        JSON: Content(History),
        "text/csv": Content(str),
        "application/geo+json": Content(FeatureCollection),
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
    summary="Where somebody was",
    description="Newest first, each detection once, also while others come in. Follow `next` to"
    " read on. `csv` and `geojson` are downloads: without `limit` of the whole range, however long,"
    f" {DOWNLOADS} at a time; with it of one page, whose next is in the `Link` header. When the"
    " database fails in the middle of a file, the connection breaks: what came is not whole. A file"
    " says in its name and in each row whose it is. In GeoJSON the coordinates are metres on the"
    " plan of the level, not degrees.",
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
        IF_NONE_MATCH,
    ],
    answers=_ANSWERS,
    problems=["invalid_request", "not_found", "too_many_waiting", "store_unavailable"],
    curl="curl 'HOST/api/v1/staff/0/detections?from=2026-01-01T00:00:00Z&limit=10'",
    tag="people",
)
def staff_detections(staff_id: str) -> Response:
    """Answer one page of somebody's detections."""
    parameters = {name: value for name, value in request.args.items() if value}
    wanted = _wanted(staff_id, parameters)
    person = wanted.range.staff_id
    context = get_context()
    context.database.availability.check_reachable()
    with time_limit(READ_PROBE_SECONDS):  # whether the shard answers that this person is on
        state = context.histories.states.read({person: None}).get(person)
    directory = context.directory.cache.current()
    content = sorted(parameters.items()), state and state.mark.name, directory.tag
    turn = int(time.time() // TAG_SECONDS)
    etag, before = responses.tag(*content, turn), responses.tag(*content, turn - 1)
    if state and (unchanged := responses.not_modified(etag) or responses.not_modified(before)):
        return unchanged
    as_of = state.read_at if state else None
    read = partial(context.histories.detections.page, wanted.range, as_of=as_of)
    is_large = wanted.limit > SMALL_LIMIT and not wanted.whole
    with responses.one_at_a_time if is_large else nullcontext():
        page = read(wanted.after, min(wanted.limit, READ_AT_ONCE))
        if not page.detections and not context.histories.detections.has(person):
            raise Problem("not_found", f"nothing was ever heard of staff member {staff_id}")
        response, following = _response(wanted, page, read, directory)
    response.headers["X-Truncated"] = "true" if following else "false"
    if following:
        query = urlencode(parameters | {"cursor": _cursor(following)})
        response.headers["Link"] = f'<{request.path}?{query}>; rel="next"'
    return responses.tagged(response, etag) if state else response


def _wanted(staff_id: str, parameters: dict[str, str]) -> _Wanted:
    between = request_parameters.between({"staff_id": staff_id} | parameters)
    limit = _LIMIT.read(parameters)
    after = _position(parameters.get("cursor"))
    kind = _FORMAT.read(parameters)
    whole = kind != "json" and _LIMIT.name not in parameters
    zone = zone_of(parameters, _ZONE.name)
    return _Wanted(between, after, sys.maxsize if whole else limit, kind, whole, zone)


def _response(
    wanted: _Wanted, page: Page, read: ReadPage, directory: Snapshot
) -> tuple[Response, Position | None]:
    """Return the answer that begins with some detections, and where what follows it begins."""
    pages = _pages(wanted, page, read)
    if wanted.kind == "json":
        texts = []
        for page in pages:  # the last one says what follows
            rows = [_row(detection, directory) for detection in page.detections]
            texts += [msgspec.json.encode(rows)[1:-1]] if rows else []
        cursor = _cursor(page.next) if page.next else None
        opening, closing = responses.around_items(History([], cursor, page.next is not None))
        body = b"".join([opening, b",".join(texts), closing, b"\n"])
        return Response(body, mimetype=JSON), page.next
    following = None
    if not wanted.whole:
        page_list = list(pages)  # what follows is said before the first of them
        following, pages = page_list[-1].next, iter(page_list)
    elif page.next:
        pages = _in_turn(pages)
    rows_of = ([_row(detection, directory) for detection in page.detections] for page in pages)
    return download(wanted.kind, rows_of, Subject(wanted.range, wanted.zone)), following


def _pages(wanted: _Wanted, page: Page, read: ReadPage) -> Iterator[Page]:
    """Yield a page, and those after it that are wanted."""
    missing = wanted.limit - len(page.detections)
    yield page
    while missing > 0 and page.next:
        page = read(page.next, min(missing, READ_AT_ONCE))
        missing -= len(page.detections)
        yield page


def _in_turn(pages: Iterator[Page]) -> Iterator[Page]:
    """Yield pages, for a few at a time. Raises Problem: too many do."""
    if not _places.acquire(blocking=False):
        detail = (
            f"{DOWNLOADS} long downloads are under way; ask again when one is done, or for less"
        )
        raise Problem("too_many_waiting", detail, headers={"Retry-After": "10"})
    try:
        yield from pages
    finally:
        _places.release()


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
    beacon = directory.beacons.get(detection.mac)
    if beacon and beacon.x is not None and beacon.y is not None:
        row.x, row.y = beacon.x, beacon.y
    return row
