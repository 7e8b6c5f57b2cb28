"""The feed of all staff: /changes, for a server that wants everything once."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flask import Response, request

from ingest.api.changes.change_lines import EXAMPLE, Change, Next, as_line, as_lines
from ingest.api.http.problems import Problem
from ingest.api.http.query import Integer, Text
from ingest.api.openapi.declarations import Body, Content, declare
from ingest.assembly import get_context
from ingest.errors import CursorExpired, ParameterError
from ingest.rules import request_parameters
from ingest.storage.histories import change_stream

# Of the service's threads; each request that waits blocks one.
MAX_WAITING = 2
_waiting = threading.BoundedSemaphore(MAX_WAITING)
_MEDIA_TYPE = "application/x-ndjson"
_LIMIT = Integer("limit", "Lines at most", low=1, high=1000, default=500)
_WAIT = Integer(
    "wait",
    f"Seconds to wait for a first change; {MAX_WAITING} requests a service may",
    low=0,
    high=20,
    default=0,
)


@declare(
    "GET",
    "/changes",
    summary="Everything that is stored, as it is stored, exactly once",
    description="One JSON object a line. `detection`: it was stored; `corrected`: the place of a"
    ' stored one was corrected. The last line is `{"next": cursor}`: keep it with what you'
    " made of the lines before it, and send it as `after` next time. Following the cursors, every"
    " detection that was acknowledged as stored comes exactly once, and all readers see the same"
    " order; also across restarts of the reader, of any service and of the database, and across"
    " shards. A line comes after a majority has it. One that is queued comes when it is stored. An"
    " answer without a `next` line was cut off: ask again with the same cursor. Without `after` the"
    " feed begins now, or `from` a time of our clock: then with everything stored at that time or"
    " later.\n\nA cursor holds for two hours, however much comes in meanwhile, and for longer while"
    " the database has room for what changed since. After that: 410 `cursor_expired`. Then begin"
    " again without `after`, and fill the gap from `/staff/<staff_id>/detections`, by `id`.",
    parameters=[
        Text("after", "`next` of the answer before"),
        Text(
            "from",
            "Without `after`: a time in any of the three forms",
            pattern=request_parameters.TIME_TEXT,
        ),
        _LIMIT,
        _WAIT,
    ],
    answers={
        200: Body(
            "The changes, and the next cursor.",
            {
                _MEDIA_TYPE: Content(
                    str,
                    example=EXAMPLE,
                    lines=(Change, Next),
                )
            },
        )
    },
    problems=["invalid_request", "cursor_expired", "too_many_waiting", "store_unavailable"],
    curl="curl 'HOST/api/v1/changes?wait=10'",
)
def changes() -> Response:
    """Answer what was stored since a cursor."""
    parameters = {name: value for name, value in request.args.items() if value}
    limit = _LIMIT.read(parameters)
    wait = _WAIT.read(parameters)
    context = get_context()
    start = _start(parameters)
    context.database.availability.check_answers()
    try:
        with _place_to_wait(wait):
            read = context.histories.change_stream.read(start, limit, wait, as_line)
    except CursorExpired as error:
        detail = (
            "the changes since then are not all kept any more; begin again without `after`, and"
            f" fill the gap from the histories ({error})"
        )
        raise Problem("cursor_expired", detail[:400]) from error
    return Response(as_lines(read), mimetype=_MEDIA_TYPE)


def _start(parameters: Mapping[str, str]) -> Mapping[str, Any]:
    if "after" in parameters and "from" in parameters:
        raise ParameterError("from", "is for the first request only, without after")
    if "after" in parameters:
        return change_stream.after(parameters["after"])
    if "from" in parameters:
        return change_stream.since(
            request_parameters.moment(parameters, "from", 1, int(time.time()))
        )
    return {}


@contextmanager
def _place_to_wait(wait_seconds: int) -> Iterator[None]:
    """Hold one of the few places for requests that wait."""
    if not wait_seconds:
        yield
        return
    if not _waiting.acquire(blocking=False):
        detail = f"{MAX_WAITING} requests wait for changes already"
        raise Problem("too_many_waiting", detail, headers={"Retry-After": "1"})
    try:
        yield
    finally:
        _waiting.release()
