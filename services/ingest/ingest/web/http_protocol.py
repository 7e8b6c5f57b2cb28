"""HTTP/1.1 as uvicorn and httptools speak it, with what they lack."""

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from ingest.web.asgi_server import Scope, Send, Server, send_response
from ingest.web.flask_bridge import PIECE_BYTES
from ingest.web.request_body import Receive
from ingest.web.responses import Response

PLAIN = (200, 202)  # with headers that are ours alone
# The gateway lets 32 KiB of header fields through, and a line of 16 KiB.
MAX_HEADER_BYTES = 64 * 1024


def _nothing() -> None:
    pass


class _Joined:
    """A transport that sends together what is written in one turn of the event loop.

    Otherwise a header is a system call of its own, and a service that is killed just then leaves
    half an answer. A long answer leaves piece by piece: its writer learns from the transport when
    the client is slow, and waits.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send soon, or now what is long enough."""
        self._parts.append(data)
        self._size += len(data)
        if self._size >= PIECE_BYTES:
            self._flush()
        elif len(self._parts) == 1:
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Send what was written, then close."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Tell whether it is being closed."""
        return self._transport.is_closing()

    def _flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts and not self._transport.is_closing():  # uvloop raises where asyncio would not
            self._transport.writelines(parts)

    def __getattr__(self, name: str) -> Any:
        """Be the transport in all else."""
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1: a header has a bound, and a short answer leaves in one piece.

    The date is written when an answer needs it; uvicorn would wake each second for it. A request
    that came whole is begun without a task where the service can do so: the tasks, events and
    messages of ASGI cost more than an insert (docs/measurements.md, "Without a task").
    """

    _second = 0  # of the date that answers have
    _header_bytes = 0  # so far, of a header that came in several parts
    _receives = False  # whether bytes are being parsed: more of a request may be among them
    _held: RequestResponseCycle | None = None  # a request of which the end may be here already

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        super().connection_made(cast(asyncio.Transport, _Joined(transport, self.loop)))

    def on_headers_complete(self) -> None:
        """Begin a request, if it names a version of HTTP, unlike those of 30 years ago."""
        if self.parser.get_http_version() not in ("1.0", "1.1"):
            raise ValueError("not HTTP/1")  # uvicorn answers 400
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take what came, and refuse a header that is too long."""
        before = self.scope
        self._write_date()
        self._receives = True
        super().data_received(data)
        self._receives = False
        if self._held:
            self._start(self._held)
        # A request's scope is made with its first byte, and its cycle at the end of its header.
        if self.scope is not before or (self.cycle and self.cycle.scope is before):
            self._header_bytes = 0
            return
        self._header_bytes += len(data)
        if self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("The header is too long.")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self._receives and not cycle.waiting_for_100_continue:
            self._held = cycle
        else:
            super()._start_asgi_task(cycle, app)

    def on_message_complete(self) -> None:
        """End a request: begin to answer it."""
        super().on_message_complete()
        if self._held:
            self._start(self._held)

    def _start(self, cycle: RequestResponseCycle) -> None:
        self._held = None
        scope = cast(Scope, cycle.scope)
        begun = None if cycle.more_body else self._service.begin(scope, bytes(cycle.body))
        if begun is None:
            super()._start_asgi_task(cycle, self.app)
            return
        # uvicorn cancels these when its patience ends; it needs no more of them.
        self.tasks.add(cast("asyncio.Task[None]", begun.pending))
        begun.pending.add_done_callback(partial(self._answer, cycle, begun.respond))

    def _answer(
        self,
        cycle: RequestResponseCycle,
        respond: "Callable[[asyncio.Future[Any]], Response]",
        pending: "asyncio.Future[Any]",
    ) -> None:
        self.tasks.discard(cast("asyncio.Task[None]", pending))
        response = respond(pending)
        if not cycle.disconnected and (response.status not in PLAIN or self.flow.write_paused):

            async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
                await send_response(response, send)

            super()._start_asgi_task(cycle, cast(Any, app))
            return
        cycle.on_response = _nothing  # else it and its connection keep each other in memory
        if cycle.disconnected:
            return
        headers = self.server_state.default_headers + response.headers
        if not cycle.keep_alive:
            headers = [*headers, (b"connection", b"close")]
        lines = [b"%b: %b\r\n" % header for header in headers]
        head = [STATUS_LINE[response.status], *lines, b"\r\n", *response.body]
        self.transport.write(b"".join(head))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    @property
    def _service(self) -> Server:
        return cast(Server, self.app)

    def _write_date(self) -> None:
        """Have answers to what comes now tell the date, also to what is no request."""
        second = int(time.time())
        if second != Protocol._second:
            Protocol._second = second
            date = formatdate(second, usegmt=True).encode()
            self.server_state.default_headers = [(b"date", date)]
