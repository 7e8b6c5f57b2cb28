"""Flask behind the event loop: an ASGI request to WSGI (PEP 3333), and its answer back."""

import asyncio
import concurrent.futures
import io
import logging
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flask import Flask, Response

from ingest.errors import StoreUnavailable
from ingest.web.lanes import LANES, LONG, lane_of
from ingest.web.request import Request
from ingest.web.request_body import Receive

# A shorter answer leaves in one piece, a longer one in pieces of this size.
PIECE_BYTES = 64 * 1024
# What was sent in part may take so long when the service ends; a download may take minutes.
REST_SECONDS = 3.0

NO_HTTP_PREFIX = frozenset({b"transfer-encoding", b"content-type", b"content-length"})

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]  # of WSGI

log = logging.getLogger(__name__)


class Bridge:
    """Answers with a Flask application, in threads of the lane that a request belongs to."""

    def __init__(self, flask: Flask) -> None:
        self._flask = flask
        self._pools = {lane: ThreadPoolExecutor(lane.threads, lane.name) for lane in LANES}

    def close(self) -> None:
        """End the threads."""
        for pool in self._pools.values():
            pool.shutdown()

    async def respond(
        self,
        scope: Scope,
        request: Request,
        receive: Receive,
        send: Send,
        response: Response | None = None,
    ) -> None:
        """Answer a request, with a response if there is one already; a long one comes in pieces.

        One that fails after its first piece is not completed: uvicorn then breaks the connection
        off, by which the client knows.
        """
        loop = asyncio.get_running_loop()
        begun = ended = False
        leaves: concurrent.futures.Future[None] | None = None

        async def send_all(*messages: dict[str, Any]) -> None:
            nonlocal begun
            if answer.cancelled():
                return
            begun = True
            for message in messages:
                await send(message)

        def send_now(*messages: dict[str, Any]) -> None:
            asyncio.run_coroutine_threadsafe(send_all(*messages), loop).result()

        def is_wanted() -> bool:
            nonlocal leaves  # uvicorn takes all of an answer, also for nobody
            leaves = leaves or asyncio.run_coroutine_threadsafe(_leaves(receive), loop)
            return not (ended or leaves.done())

        pool = self._pools[LONG if response else lane_of(request.path)]
        application = response or self._flask
        answer = loop.run_in_executor(
            pool, self._respond, application, scope, request, send_now, is_wanted
        )
        try:
            await asyncio.shield(answer)
        except asyncio.CancelledError:
            if not begun:
                answer.cancel()  # a thread that works on it goes on, unheard
                raise
            await asyncio.wait([answer], timeout=REST_SECONDS)  # the rest of what was sent in part
            ended = True
            await answer
        finally:
            if leaves:
                leaves.cancel()

    def _respond(
        self,
        application: Application,
        scope: Scope,
        request: Request,
        send_now: Callable[..., None],
        is_wanted: Callable[[], bool],
    ) -> None:
        start: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
            start["status"], start["headers"] = int(status[:3]), _encoded(headers)

        environ = _environ(scope, request)
        chunks = application(environ, start_response)
        try:
            parts = pieces(chunks)
            try:
                first, more = next(parts)  # Flask calls start_response before its first chunk
            except Exception as error:  # nothing was sent yet: it can still be said
                parts = pieces(self._error(error, environ, start_response))
                first, more = next(parts)
            send_now(
                {"type": "http.response.start"} | start,
                {"type": "http.response.body", "body": first, "more_body": more},
            )
            while more and is_wanted():
                piece, more = next(parts)
                send_now({"type": "http.response.body", "body": piece, "more_body": more})
        except StoreUnavailable as error:
            request_id = request.header(b"x-request-id") or "-"
            log.warning("request %s is broken off: %s", request_id, error)
        finally:
            close = getattr(chunks, "close", None)
            if close:
                close()

    def _error(
        self, error: Exception, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Return the response to what a streamed response raised before its first piece."""
        with self._flask.request_context(environ):
            response = self._flask.make_response(self._flask.handle_user_exception(error))
            return self._flask.process_response(response)(environ, start_response)


async def _leaves(receive: Receive) -> None:
    """Wait until the client has gone, or has all."""
    while (await receive())["type"] != "http.disconnect":
        pass


def pieces(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield chunks joined to pieces of a good size, each with whether more follow."""
    if isinstance(chunks, list) and len(chunks) == 1:
        yield chunks[0], False
        return
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        if size and size + len(chunk) > PIECE_BYTES:
            yield b"".join(held), True
            held, size = [], 0
        held.append(chunk)
        size += len(chunk)
    yield b"".join(held), False


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _environ(scope: Scope, request: Request) -> dict[str, Any]:
    """Return what WSGI calls the request."""
    host, port = scope.get("server") or ("localhost", 0)
    client_host, client_port = scope.get("client") or ("", 0)
    environ = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path.encode().decode("latin-1"),
        "QUERY_STRING": request.query.decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client_host,
        "REMOTE_PORT": str(client_port),
        "CONTENT_TYPE": request.headers.get(b"content-type", b"").decode("latin-1"),
        "CONTENT_LENGTH": str(request.length),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        if raw_name not in NO_HTTP_PREFIX:
            name = "HTTP_" + raw_name.decode("latin-1").upper().replace("-", "_")
            value = raw_value.decode("latin-1")
            environ[name] = f"{environ[name]},{value}" if name in environ else value
    return environ
