"""The ASGI server adapter: an event loop in front of the Flask application.

What phones and HACS call all the time is answered in the loop, together with what others call at
the same moment. Everything else is Flask's, in a few threads.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from ingest.web import cors, error_responses
from ingest.web.bridge import Bridge, pieces
from ingest.web.endpoint import METHODS, Endpoint
from ingest.web.request import Request
from ingest.web.responses import Response

# Bodies larger than this are taken a few at a time: 64 connections with 1 MiB each are too much.
LARGE_BODY_BYTES = 32 * 1024
LARGE_BODIES = 2  # one is read while the other is stored; more only wait for each other
# The whole of a body has to come in this time. The gateway sends one only when it has all of it.
BODY_SECONDS = 20

CHUNKED = b"transfer-encoding"

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]


class Server:
    """The ASGI application; `close` ends with it what the endpoints work with."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint[Any, Any]],
        bridge: Bridge,
        max_body_bytes: int,
        close: Callable[[], None],
    ) -> None:
        self._endpoints = {endpoint.path: endpoint for endpoint in endpoints}
        self._bridge = bridge
        self._max_body_bytes = max_body_bytes
        self._close = close
        self._large = asyncio.Semaphore(LARGE_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the start and the end of the process."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close"})
        else:
            headers = dict(scope["headers"])
            if _declared(headers) > LARGE_BODY_BYTES:
                async with self._large:
                    await self._serve(scope, headers, receive, send)
            else:
                await self._serve(scope, headers, receive, send)

    def close(self) -> None:
        """End the threads, and close what they used."""
        self._bridge.close()
        self._close()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(self.close)
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _serve(
        self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        body = await self._body(headers, receive)
        if body is None:
            await _send(cors.with_headers(error_responses.late()), send)
            return
        declared = _declared(headers)
        length = len(body) if declared == sys.maxsize else declared
        method, path = scope["method"], scope["path"]
        request = Request(method, path, scope["query_string"], headers, body, length)
        endpoint = self._endpoints.get(path)
        if endpoint and method in METHODS:
            await _send(cors.with_headers(await endpoint.respond(request)), send)
        else:
            await self._bridge.respond(scope, request, send)

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """Return the body; None when it does not come in time.

        One over the limit is not read, or, without a declared length, a little further than it.
        """
        if CHUNKED not in headers and not 0 < _declared(headers) <= self._max_body_bytes:
            return b""
        body = b""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    chunk: bytes = message["body"]
                    body += chunk
                    if len(body) > self._max_body_bytes or not message["more_body"]:
                        return body
        except TimeoutError:
            return None


async def _send(response: Response, send: Send) -> None:
    start = {"status": response.status, "headers": response.headers}
    await send({"type": "http.response.start"} | start)
    for piece, more in pieces(response.body):
        await send({"type": "http.response.body", "body": piece, "more_body": more})


def _declared(headers: dict[bytes, bytes]) -> int:
    """Return the length of the body as far as it is known; one without a length may be any."""
    return sys.maxsize if CHUNKED in headers else int(headers.get(b"content-length", 0))
