"""gunicorn's threaded worker, made patient: a thread works only on a request that is there.

The stock one lends a thread from a request's first byte to its answer's last, so eight clients that
stop in between hold all eight. Here the loop that accepts also reads the heads and sends the
answers; no thread ever waits for a client. Bodies are not read: nothing here takes one.
"""

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from gunicorn import http
from gunicorn.http.errors import (
    InvalidHeader,
    InvalidHeaderName,
    InvalidRequestLine,
    UnsupportedTransferCoding,
)
from gunicorn.workers.gthread import TConn, ThreadWorker

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
HEAD_END = b"\r\n\r\n"
MAX_HEAD_BYTES = 36 * 1024  # the gateway passes on 32 KiB
HEAD_SECONDS = 10  # for a whole head, as long as the gateway waits for one
SEND_SECONDS = 20  # without a byte being taken
LINGER_SECONDS = 2  # for what a client still sends: a reset could cost it the end of the answer
# What all slow clients together may hold: heads that came in part, answers that wait.
MAX_HELD_BYTES = 2 * 1024 * 1024
# What the kernel holds of a connection counts as ours too, and it takes twice what is set here.
SEND_BUFFER_BYTES, RECEIVE_BUFFER_BYTES = 8 * 1024, 4 * 1024
NO_HTTP = (InvalidHeader, InvalidHeaderName, InvalidRequestLine, UnsupportedTransferCoding)
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n"


class Outbox:
    """Stands for the socket in a thread: it takes the answer's pieces, which the loop sends."""

    def __init__(self) -> None:
        self.pieces: deque[bytes | memoryview] = deque()

    def sendall(self, data: bytes) -> None:
        """Keep a piece; the bytes of a cached answer are shared, not copied."""
        self.pieces.append(data)

    send = sendall

    def gettimeout(self) -> float:
        """Return what a socket returns that never blocks."""
        return 0.0

    def setblocking(self, _: object) -> None:
        """Do nothing: this never blocks."""

    def shutdown(self, _: int) -> None:
        """Refuse, as a closed socket does: what is closed here has failed halfway."""
        raise OSError

    def close(self) -> None:
        """Do nothing: the loop closes the connection."""


class Turn:
    """One request of a connection, as the stock worker's `handle` wants a connection."""

    initialized = data_ready = True
    is_http2 = False

    def __init__(self, cfg: Any, conn: "Connection") -> None:
        self.sock = Outbox()
        self.client, self.server = conn.client, conn.server
        self.parser = http.get_parser(cfg, iter([bytes(conn.head)]), conn.client)

    def init(self) -> None:
        """Do nothing: everything is there."""

    def rest(self) -> bytes:
        """Return what came behind the request: the next one."""
        return bytes(self.parser.unreader.take_buffered())


def has_body(request: Any) -> bool:
    """Tell whether something follows the head of a request that is not the next one."""
    return any(
        name == "TRANSFER-ENCODING" or (name == "CONTENT-LENGTH" and value.strip() != "0")
        for name, value in request.headers
    )


class Connection(TConn):  # type: ignore[misc]  # gunicorn has no types
    """A client: the head that has come so far, the pieces that wait to be sent."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.head = bytearray()
        self.pieces: deque[bytes | memoryview] = deque()
        self.keep = False
        self.deadline = 0.0


class PatientWorker(ThreadWorker):  # type: ignore[misc]
    """The worker class of gunicorn.conf.py.

    When it is full, or slow clients hold too much, the longest wait makes room: so neither ever
    shuts another out.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting: dict[Connection, None] = {}  # for a client, the longest first
        self.head_bytes = 0

    def init_process(self) -> None:
        """Bound what the kernel holds of each connection that will be accepted."""
        for listener in self.sockets:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        super().init_process()

    # What follows runs in the loop, but for `handle` and `_keepalive_after`.

    def accept(self, listener: Any) -> None:
        """Take a new connection."""
        try:
            client, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        if self.nr_conns > self.worker_connections - self.cfg.threads and self.waiting:
            self._drop(next(iter(self.waiting)))
        conn = Connection(self.cfg, client, address, listener.getsockname())
        self._await(conn, READ, self._receive, HEAD_SECONDS)

    def handle(self, conn: Connection) -> bool:
        """Answer one request in a thread; return whether the connection goes on."""
        turn = Turn(self.cfg, conn)
        keep = bool(super().handle(turn))
        conn.head, conn.pieces = bytearray(turn.rest() if keep else b""), turn.sock.pieces
        return keep

    def handle_request(self, req: Any, conn: Turn) -> bool:
        """Say that the connection ends with a body that is not read: else a next one fails."""
        if has_body(req):
            req.force_close()
        return bool(super().handle_request(req, conn))

    def _keepalive_after(self, _: Any, keepalive: object) -> bool:
        return bool(keepalive)  # the stock one reads the body here

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer what is no HTTP with a 400; neither that nor the log repeats it."""
        if type(exc) in NO_HTTP:  # the stock worker's text may hold a secret; some are a 501
            exc = InvalidHeader("not repeated here", req)
        super().handle_error(req, client, addr, exc)

    def finish_request(self, conn: Connection, done: Future[bool]) -> None:
        """Send what a thread answered."""
        conn.keep = not done.cancelled() and not done.exception() and done.result()
        self._send(conn)

    def _receive(self, conn: Connection) -> None:
        data = self._received(conn)
        if not data:
            return
        if not conn.head:  # an idle connection is one no more
            conn.deadline = time.monotonic() + HEAD_SECONDS
        seen = max(0, len(conn.head) - len(HEAD_END))
        conn.head += data
        self.head_bytes += len(data)
        if HEAD_END in conn.head[seen:]:
            self._leave(conn)
            self.enqueue_req(conn)
        elif len(conn.head) > MAX_HEAD_BYTES:
            self._leave(conn)
            conn.pieces.append(TOO_LARGE)
            conn.keep = False
            self._send(conn)
        elif self.head_bytes > MAX_HELD_BYTES:
            self._make_room()

    def _send(self, conn: Connection) -> None:
        try:
            while conn.pieces:
                piece = conn.pieces[0]
                sent = conn.sock.send(piece)
                if sent < len(piece):
                    conn.pieces[0] = memoryview(piece)[sent:]
                else:
                    conn.pieces.popleft()
        except BlockingIOError:
            self._await(conn, WRITE, self._send, SEND_SECONDS)
            self._make_room()
        except OSError:
            self._drop(conn)
        else:
            self._sent(conn)

    def _sent(self, conn: Connection) -> None:
        if conn.keep and HEAD_END in conn.head:
            self._leave(conn)
            self.enqueue_req(conn)
        elif conn.keep:
            self._await(
                conn, READ, self._receive, HEAD_SECONDS if conn.head else self.cfg.keepalive
            )
        else:
            try:
                conn.sock.shutdown(socket.SHUT_WR)
            except OSError:
                self._drop(conn)
            else:
                self._await(conn, READ, self._received, LINGER_SECONDS)

    def _received(self, conn: Connection) -> bytes:
        """Return what has come. When the client is gone, nothing, and the connection ends."""
        try:
            data: bytes = conn.sock.recv(RECEIVE_BUFFER_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._drop(conn)
        return data

    def _await(
        self, conn: Connection, event: int, ready: Callable[[Connection], Any], seconds: float
    ) -> None:
        """Call `ready` when the client is; end the connection when it is not for some seconds."""
        self._leave(conn)

        def call(_: Any) -> None:
            if conn in self.waiting:  # else it was closed since the poller saw it
                ready(conn)

        conn.deadline = time.monotonic() + seconds
        self.waiting[conn] = None
        self.head_bytes += len(conn.head)
        self.poller.register(conn.sock, event, call)

    def _leave(self, conn: Connection) -> None:
        """Await the client no longer."""
        if conn in self.waiting:
            del self.waiting[conn]
            self.head_bytes -= len(conn.head)
            self.poller.unregister(conn.sock)

    def _drop(self, conn: Connection) -> None:
        self._leave(conn)
        self.nr_conns -= 1
        conn.close()

    def _make_room(self) -> None:
        """Drop those that have held something longest until all hold little enough."""
        for conn in list(self.waiting):
            if self.head_bytes + self._answer_bytes() <= MAX_HELD_BYTES:
                return
            if conn.head or conn.pieces:
                self._drop(conn)

    def _answer_bytes(self) -> int:
        """Return how much memory the answers take that wait; several clients may share one."""
        whole = (getattr(piece, "obj", piece) for conn in self.waiting for piece in conn.pieces)
        return sum({id(piece): len(piece) for piece in whole}.values())

    def murder_keepalived(self, *, force: bool = False) -> None:
        """End what has waited too long; the stock worker calls this at least once a second."""
        now = time.monotonic()
        for conn in [conn for conn in self.waiting if force or conn.deadline <= now]:
            self._drop(conn)

    def _cap_keepalive(self, deadline: float) -> None:
        """Wait for clients until then at the latest: the worker ends."""
        for conn in self.waiting:
            conn.deadline = min(conn.deadline, deadline)
