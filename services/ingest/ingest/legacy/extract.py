"""/extractbeacon: one staff member's whole history between two times, newest first."""

import time

from common.routes import EXTRACT
from ingest.assembly import Context
from ingest.histories.time_window import Window
from ingest.rules import request_parameters
from ingest.rules.request_parameters import TimeRange
from ingest.web import long_answers
from ingest.web.endpoint import Endpoint
from ingest.web.request import Request
from ingest.web.responses import Headers, Response, has, takes_gzip

# Below this a compressed body is hardly shorter; the gateway has the same bound.
GZIP_MIN_BYTES = 1000


def endpoint(context: Context) -> Endpoint[TimeRange, Window]:
    """Return the endpoint on a context."""

    def parse(request: Request) -> TimeRange:
        return request_parameters.time_range(request.parameters())

    async def work(wanted: TimeRange) -> Window:
        return await context.histories.cache.window(wanted, time.time())

    return Endpoint(EXTRACT, parse, work, _reply)


def _reply(request: Request, window: Window) -> Response:
    headers: Headers = [(b"cache-control", b"no-cache"), (b"vary", b"Accept-Encoding")]
    if window.etag:
        headers.append((b"etag", window.etag.encode()))
        if has(request.header(b"if-none-match"), window.etag):
            return Response(304, headers, [])
    headers.append((b"content-type", b"application/json"))
    if window.is_long:
        return _while_read(request, window, headers)
    length, body = window.length, window.text()
    if length >= GZIP_MIN_BYTES and takes_gzip(request.header(b"accept-encoding")):
        body = window.gzip()
        length = sum(map(len, body))
        headers.append((b"content-encoding", b"gzip"))
    headers.append((b"content-length", b"%d" % length))
    return Response(200, headers, body)


def _while_read(request: Request, window: Window, headers: Headers) -> Response:
    """Return the response with a long window; when the database fails the connection breaks."""
    body = iter(window.text())
    if takes_gzip(request.header(b"accept-encoding")):
        body = window.gzip_pieces()
        headers.append((b"content-encoding", b"gzip"))
    return Response(200, headers, long_answers.in_turn(body), waits=True)
