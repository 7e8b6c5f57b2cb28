"""The feed of all staff: /changes, for a server that wants everything once."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import Response, request

from ingest.api import openapi
from ingest.api import responses as answers
from ingest.api.openapi import Body, declare
from ingest.api.problems import Problem
from ingest.context import get_context
from ingest.errors import CursorExpired, ParameterError
from ingest.rules import parameters as parsing
from ingest.storage import change_stream

DEFAULT_LIMIT = 500
MAX_LIMIT = 1000
MAX_WAIT_SECONDS = 20
# Of the service's threads; who waits blocks one.
MAX_WAITING = 2
_waiting = threading.BoundedSemaphore(MAX_WAITING)

_KINDS = {"insert": "detection", "update": "corrected"}


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
    " later.\n\nA cursor holds as long as the database keeps the changes behind it (its oplog, a"
    " fixed size). After that: 410 `cursor_expired`. Then begin again without `after`, and fill the"
    " gap from `/staff/<staff_id>/detections`, by `id`.",
    parameters=[
        openapi.query("after", openapi.text("`next` of the answer before")),
        openapi.query("from", openapi.text("Without `after`: a time in any of the three forms")),
        openapi.query(
            "limit",
            openapi.whole("Lines at most", minimum=1, maximum=MAX_LIMIT, default=DEFAULT_LIMIT),
        ),
        openapi.query(
            "wait",
            openapi.whole(
                f"Seconds to wait for a first change; {MAX_WAITING} requests a service may",
                minimum=0,
                maximum=MAX_WAIT_SECONDS,
                default=0,
            ),
        ),
    ],
    answers={
        200: Body(
            "The changes, and the next cursor.",
            {
                "application/x-ndjson": {
                    "schema": {"type": "string"},
                    "example": '{"type":"detection","id":"6b01787a3f0c9d2e4a5b6c7d","staff_id":0,'
                    '"timestamp":1795258490,"time":"2026-11-21T10:54:50Z","received_at":1795258491,'
                    '"mac":"C2A628384B08","rssi":-67,"level":"4","location":"Lobby B"}\n'
                    '{"next":"826B01787A000000012B..."}\n',
                }
            },
        )
    },
    errors=["invalid_request", "cursor_expired", "too_many_waiting", "store_unavailable"],
    curl="curl 'HOST/api/v1/changes?wait=10'",
)
def changes() -> Response:
    """Answer what was stored since a cursor."""
    given = {name: value for name, value in request.args.items() if value}
    limit = parsing.integer({"limit": DEFAULT_LIMIT} | given, "limit", 1, MAX_LIMIT)
    wait = parsing.integer({"wait": 0} | given, "wait", 0, MAX_WAIT_SECONDS)
    start = _start(given)
    context = get_context()
    context.recorder.check_answers()
    try:
        with _place_to_wait(wait):
            read = context.change_stream.read(start, limit, wait)
    except CursorExpired as error:
        detail = (
            "the changes since then are not all kept any more; begin again without `after`, and"
            f" fill the gap from the histories ({error})"
        )
        raise Problem("cursor_expired", detail[:400]) from error
    lines = [_line(change) for change in read.found]
    lines.append(json.dumps({"next": read.next}))
    return Response("\n".join(lines) + "\n", mimetype="application/x-ndjson")


def _start(given: dict[str, str]) -> dict[str, Any]:
    if "after" in given and "from" in given:
        raise ParameterError("from", "is for the first request only, without after")
    if "after" in given:
        return change_stream.after(given["after"])
    if "from" in given:
        return change_stream.since(parsing.moment(given, "from", 1, int(time.time())))
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


def _line(change: change_stream.Change) -> str:
    detection = change.detection
    line = {
        "type": _KINDS[change.kind],
        "id": detection.id,
        "staff_id": detection.staff_id,
        "timestamp": detection.timestamp,
        "time": answers.iso(detection.timestamp),
        "received_at": int(detection.received_at),
        "mac": detection.mac,
        "rssi": detection.rssi,
        "level": detection.level,
        "location": detection.location,
    }
    return json.dumps(line, separators=(",", ":"))
