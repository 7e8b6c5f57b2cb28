"""A controllable HTTP server that stands where a service or the gateway would."""

import contextlib
import http.server
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from scripts.processes.ports import free_port


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a worker may hang up as it likes
            super().handle_error(request, client_address)


class _Drops(NamedTuple):
    """An answer that goes out byte by byte."""

    request: http.server.BaseHTTPRequestHandler
    rest: Iterator[int]
    ended: threading.Event


class Upstream:
    """Answers every request with the answer that was set, and records the requests.

    `fault` makes it fail: `hang` (takes the request and never answers), `reset` (closes the
    connection instead of an answer), `drip` (a byte of the answer per half second), `die` (half of
    the body, then a reset), `missing` (404); close() makes it refuse connections, and reopen()
    ends that.
    """

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections: list[socket.socket] = []
        self.delay_seconds = 0.0
        self._dripping: list[_Drops] = []
        self.fault = ""
        self.faulty_path = "/"  # only paths that begin with it fail
        # Not one of the kernel's: other tests connect from many addresses, 127.0.0.2 among them.
        self.host, self.port = host, port or free_port()
        self.answer(200, b"ok")
        self.reopen()
        self.url = f"http://{self.host}:{self.port}"

    def reopen(self) -> None:
        """Listen (again) on the same port."""
        upstream = self
        self._ended = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else a body waits 40 ms for the headers' receipt

            def setup(self) -> None:
                super().setup()
                upstream.connections.append(self.connection)

            def do_GET(self) -> None:
                upstream.handle(self)

            do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the base class names them so

            def log_message(self, *_: Any) -> None:
                pass

        self._server = _Server((self.host, self.port), Handler)
        self.port = self._server.server_address[1]
        serve = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._threads = [serve, threading.Thread(target=self._drip, args=(self._ended,))]
        for thread in self._threads:
            thread.start()

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self._status, self._body, self._headers = status, body, headers or {}

    def dripping(self) -> int:
        """Return how many answers go out byte by byte to somebody who still listens."""
        return sum(not _has_hung_up(client.request.connection) for client in list(self._dripping))

    def handle(self, request: http.server.BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in request.headers.items()}
        # Before the request is to be seen: a test may end the fault as soon as it sees that.
        fault = self.fault if request.path.startswith(self.faulty_path) else ""
        self.requests.append((request.command, request.path, headers, body))
        time.sleep(self.delay_seconds)
        with contextlib.suppress(OSError):  # the client has hung up
            self._send(request, fault)

    def _send(self, request: http.server.BaseHTTPRequestHandler, fault: str) -> None:
        if fault == "hang":
            self._ended.wait(60)
            request.close_connection = True
            return
        if fault == "reset":
            _reset(request)
            return
        if fault == "drip" and _has_hung_up(request.connection):
            return
        status, body = (404, b"") if fault == "missing" else (self._status, self._body)
        request.send_response_only(status)  # without a Server and a Date of its own
        if "Date" not in self._headers:
            request.send_header("Date", request.date_time_string())
        for name, value in self._headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if fault == "die":
            request.wfile.write(body[: len(body) // 2])
            time.sleep(0.05)  # so that the half is read before the reset discards it
            _reset(request)
        elif fault == "drip":
            drops = _Drops(request, iter(body), threading.Event())
            self._dripping.append(drops)
            while not drops.ended.wait(10) and not self._ended.is_set():
                pass
        else:
            request.wfile.write(body)

    def _drip(self, stopped: threading.Event) -> None:
        """Send a byte to each; threads of their own would wake a thousand times a second."""
        while not stopped.wait(0.5):
            for drops in list(self._dripping):
                try:
                    drops.request.wfile.write(bytes([next(drops.rest)]))
                except (StopIteration, OSError):  # that was all, or the client has hung up
                    self._dripping.remove(drops)
                    drops.ended.set()

    def close(self) -> None:
        """Stop listening and reset what is open, as a killed process does; twice does no harm."""
        self._ended.set()
        self._server.shutdown()
        for thread in self._threads:
            thread.join()
        self._server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _has_hung_up(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:  # rudely
        return True


def _reset(request: http.server.BaseHTTPRequestHandler) -> None:
    connection = request.connection
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    request.wfile = request.rfile = open("/dev/null", "r+b")  # noqa: SIM115, PTH123 - closed by the base class
    request.close_connection = True
