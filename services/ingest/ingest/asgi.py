"""The service as gunicorn's ASGI worker runs it: an event loop in front of the Flask application.

What phones and HACS ask all the time is answered in the loop (`quick`), together with what others
ask at the same moment. Everything else is Flask's, in a few threads.
"""

import asyncio
import io
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flask import Flask

from ingest import create_app
from ingest.config import Config
from ingest.context import Store
from ingest.http import responses
from ingest.http.quick import Quick, Request

THREADS = 8
# Bodies larger than this are taken a few at a time: 64 connections with 1 MiB each are too much.
LARGE_BODY_BYTES = 32 * 1024
LARGE_BODIES = 2  # one is read while the other is stored; more only wait for each other
# The whole of a body has to come in this time. The gateway sends one only when it has all of it.
BODY_SECONDS = 20
# A shorter answer leaves in one piece, a longer one in pieces of this size.
PIECE_BYTES = 256 * 1024

CHUNKED = b"transfer-encoding"
NO_HTTP_PREFIX = frozenset({CHUNKED, b"content-type", b"content-length"})

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]


class Service:
    """The ASGI application."""

    def __init__(self, flask: Flask) -> None:
        self._flask = flask
        self.store: Store = flask.extensions["store"]
        self._quick = Quick(self.store)
        self._threads = ThreadPoolExecutor(THREADS, "flask")
        self._large = asyncio.Semaphore(LARGE_BODIES)
        self._max_body_bytes: int = flask.config["MAX_CONTENT_LENGTH"]

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
        self._threads.shutdown()
        self._quick.close()
        self.store.close()

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
        request = Request(
            scope["method"], scope["path"], scope["query_string"], headers, body or b""
        )
        answer = responses.late() if body is None else await self._quick.answer(request)
        if answer is None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._threads, self._in_flask, scope, request, send, loop)
            return
        await send(
            {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        )
        for piece, more in _pieces(answer.body):
            await send({"type": "http.response.body", "body": piece, "more_body": more})

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """Return the body, as far as Flask will take it; None when it does not come in time."""
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

    def _in_flask(
        self, scope: Scope, request: Request, send: Send, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Answer with the Flask application, in a thread; an answer may come in pieces."""

        async def send_all(*messages: dict[str, Any]) -> None:
            for message in messages:
                await send(message)

        def say(*messages: dict[str, Any]) -> None:
            asyncio.run_coroutine_threadsafe(send_all(*messages), loop).result()

        start: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
            start["status"], start["headers"] = int(status[:3]), _encoded(headers)

        chunks = self._flask(_environ(scope, request), start_response)
        try:
            pieces = _pieces(chunks)
            first, more = next(pieces)  # Flask calls start_response before its first chunk
            say(
                {"type": "http.response.start"} | start,
                {"type": "http.response.body", "body": first, "more_body": more},
            )
            for piece, more in pieces:
                say({"type": "http.response.body", "body": piece, "more_body": more})
        finally:
            close = getattr(chunks, "close", None)
            if close:
                close()


def create_service(config: Config | None = None) -> Service:
    """Assemble the service for gunicorn."""
    service = Service(create_app(config))
    service.store.backfill.start()
    return service


def _declared(headers: dict[bytes, bytes]) -> int:
    """Return the length of the body as far as it is known; one without a length may be any."""
    return sys.maxsize if CHUNKED in headers else int(headers.get(b"content-length", 0))


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _pieces(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
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


def _environ(scope: Scope, request: Request) -> dict[str, Any]:
    """Return what WSGI (PEP 3333) calls the request."""
    host, port = scope.get("server") or ("localhost", 0)
    client_host, client_port = scope.get("client") or ("", 0)
    declared = _declared(request.headers)
    length = declared if declared < sys.maxsize else len(request.body)
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
        "CONTENT_LENGTH": str(length),
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
