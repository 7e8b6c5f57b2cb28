"""The ASGI server adapter: an event loop in front of the Flask application.

What phones and HACS call all the time is answered in the loop, together with what others call at
the same moment. Everything else is Flask's, in a few threads.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple, cast

from common.metrics import Requests
from common.routes import SMALL_BODY_BYTES, kind_at
from ingest.access.admission import Admission
from ingest.errors import Forbidden, StoreUnavailable, Unauthenticated
from ingest.web import cors, credentials, error_responses, strangers
from ingest.web.endpoint import Endpoint
from ingest.web.flask_bridge import Bridge, pieces
from ingest.web.lanes import LANES, lane_of, largest_body
from ingest.web.request import Request
from ingest.web.request_body import CHUNKED, Receive, declared_length, may_become_large, read_body
from ingest.web.responses import Response

# Bodies larger than this are taken a few at a time: 64 connections with 1 MiB each are too much.
LARGE_BODY_BYTES = 32 * 1024
LARGE_BODIES = 2  # one is read while the other is stored; more only wait for each other

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]


class Begun(NamedTuple):
    """What a request waits for, and what it is answered then."""

    pending: "asyncio.Future[Any]"
    respond: "Callable[[asyncio.Future[Any]], Response]"


class Server:
    """The ASGI application; `close` ends with it what the endpoints work with.

    `begin` is called with the event loop. `end_waits` ends what only waits, before `close`.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint[Any, Any]],
        bridge: Bridge,
        admission: Admission,
        begin: Callable[[asyncio.AbstractEventLoop], None],
        close: Callable[[], None],
        requests: Requests,
        end_waits: Callable[[], None] = lambda: None,
    ) -> None:
        self._endpoints = {endpoint.path: endpoint for endpoint in endpoints}
        self._bridge = bridge
        self._admission = admission
        self._begin = begin
        self._close = close
        self._requests = requests
        self.end_waits = end_waits
        self._closing = False
        self._large = {lane: asyncio.Semaphore(LARGE_BODIES) for lane in LANES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the start and the end of the process."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close"})
        elif self._closing:
            await _send_end(send)
        else:
            send = self._counting(scope, send)
            try:
                await self._take(scope, receive, send)
            except asyncio.CancelledError:
                await _send_end(send)

    def begin(self, scope: Scope, body: bytes) -> Begun | None:
        """Begin to answer a whole request without a task, if it is a plain one to such an endpoint.

        Any other is to be served as ASGI has it, and so is one with which something is wrong.
        """
        endpoint = self._endpoints.get(scope["path"])
        if endpoint is None or not endpoint.is_prompt or self._closing:
            return None
        headers = dict(scope["headers"])
        if scope["method"] not in endpoint.route.roles:
            return None
        if CHUNKED in headers or may_become_large(headers, LARGE_BODY_BYTES):
            return None
        began = monotonic()
        method, path, query = scope["method"], scope["path"], scope["query_string"]
        request = Request(method, path, query, headers, body, len(body))
        if not self._admission.open and self._refusal(endpoint, request):
            return None
        try:
            pending = cast("asyncio.Future[Any]", endpoint.begin(request))
        except Exception:  # said by `Endpoint.respond`, which meets it again
            return None

        def respond(done: "asyncio.Future[Any]") -> Response:
            if done.cancelled():
                response = error_responses.ending()
            elif isinstance(error := done.exception(), Exception):
                response = endpoint.response_to(request, error)
            else:
                response = endpoint.replied(request, done.result())
            self._requests.observe(kind_at(path), response.status, monotonic() - began)
            return cors.with_headers(response)

        return Begun(pending, respond)

    def _counting(self, scope: Scope, send: Send) -> Send:
        """Return a way to send that counts the answer when it begins to leave."""
        began = monotonic()

        def counting(message: dict[str, Any]) -> Coroutine[Any, Any, None]:
            if "status" in message:  # it is the first one
                seconds = monotonic() - began
                self._requests.observe(kind_at(scope["path"]), message["status"], seconds)
            return send(message)

        return counting

    def close(self) -> None:
        """End the threads, and close what they used."""
        self._bridge.close()
        self._close()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._begin(asyncio.get_running_loop())
            if message["type"] == "lifespan.shutdown":
                self._closing = True
                await asyncio.to_thread(self.close)
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _take(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("//"):  # of a base URL that was badly joined
            scope["path"] = "/" + scope["path"].lstrip("/")
        headers = dict(scope["headers"])
        if may_become_large(headers, LARGE_BODY_BYTES):
            async with self._large[lane_of(scope["path"])]:
                await self._serve(scope, headers, receive, send)
        else:
            await self._serve(scope, headers, receive, send)

    async def _serve(
        self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        method, path = scope["method"], scope["path"]
        body = await read_body(headers, receive, self._largest_body(path, headers))
        if body is None:
            await send_response(cors.with_headers(error_responses.late()), send)
            return
        request = Request(method, path, scope["query_string"], headers, body.data, body.length)
        endpoint = self._endpoints.get(path)
        if endpoint and method in endpoint.route.roles:
            refusal = None if self._admission.open else self._refusal(endpoint, request)
            response = cors.with_headers(refusal or await endpoint.respond(request))
            if response.waits:
                await self._bridge.respond(scope, request, receive, send, response.for_flask())
            else:
                await send_response(response, send)
        elif strangers.is_refused(path, headers):
            await send_response(strangers.REFUSAL, send)
        else:
            await self._bridge.respond(scope, request, receive, send)

    def _refusal(self, endpoint: Endpoint[Any, Any], request: Request) -> Response | None:
        """Return the response to whoever may not call an endpoint of the loop."""
        try:
            presented = credentials.of_request(request)
            self._admission.admit(endpoint.role, request.path, presented)
        except (Unauthenticated, Forbidden, StoreUnavailable) as error:
            return error_responses.response_to(error, request.header(b"x-request-id"))
        return None

    def _largest_body(self, path: str, headers: dict[bytes, bytes]) -> int:
        """Return how much is read of a body: of a stranger's never much."""
        limit = largest_body(path)
        if limit > SMALL_BODY_BYTES and declared_length(headers) > SMALL_BODY_BYTES:
            stranger = self._admission.stranger(credentials.of_headers(headers))
            return SMALL_BODY_BYTES if stranger else limit
        return limit


async def _send_end(send: Send) -> None:
    """Answer what the service's end cuts off, so that the gateway asks the other service."""
    with suppress(RuntimeError):  # half an answer was sent: the server then hangs up
        await send_response(cors.with_headers(error_responses.ending()), send)


async def send_response(response: Response, send: Send) -> None:
    """Send a response as ASGI has it."""
    start = {"status": response.status, "headers": response.headers}
    await send({"type": "http.response.start"} | start)
    for piece, more in pieces(response.body):
        await send({"type": "http.response.body", "body": piece, "more_body": more})
