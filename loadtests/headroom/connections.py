"""Connections that are slow, half, broken off or new for each request, beside honest ones."""

import socket as plain_socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import gevent
from gevent import socket

from loadtests import targets
from loadtests.engine import endpoints
from loadtests.engine.client import Response
from loadtests.headroom.crowds import EXPORT, Load
from loadtests.headroom.hostile import LEGACY, PAUSE_SECONDS
from loadtests.headroom.site import Site, again_and_again, together

REFUSED_SECONDS = 2.0  # until a slow reader who is refused asks again
SLOW_BYTES, RECEIVE_BYTES = 1024, 4096  # a read of a slow reader; its buffer


def slow_readers(count: int) -> Load:
    """Return readers of an export from one address, half of them without gzip."""

    def read(site: Site, number: int) -> None:
        encoding = ("identity", "gzip")[number % 2]
        with suppress(OSError), _connected(site.stack.gateway_port, RECEIVE_BYTES) as connection:
            connection.sendall(_request(EXPORT, f"Accept-Encoding: {encoding}\r\n\r\n"))
            _answered(site, "slow reader", connection)
            text = b"more"
            while text:
                gevent.sleep(PAUSE_SECONDS)
                text = connection.recv(SLOW_BYTES)

    def reader(site: Site, seconds: float, number: int) -> None:
        with gevent.Timeout(seconds, exception=False):
            again_and_again(seconds, REFUSED_SECONDS, partial(read, site, number))

    def load(site: Site, seconds: float) -> None:
        readers = (partial(reader, site, seconds, number) for number in range(count))
        together(partial(site.honest, seconds), *readers)

    return load


def half_requests(count: int) -> Load:
    """Return requests to the monitoring service that never end, while others ask it."""

    def hold(site: Site, seconds: float) -> None:
        def once() -> None:
            with suppress(OSError), _connected(site.stack.monitoring_port) as connection:
                connection.sendall(_request("/monitoring", "X-Slow: "))
                connection.recv(SLOW_BYTES)  # nothing comes until it is given up

        with gevent.Timeout(seconds, exception=False):
            again_and_again(seconds, PAUSE_SECONDS, once)

    def load(site: Site, seconds: float) -> None:
        held = partial(hold, site, seconds)
        page = partial(site.ask, "page", "/monitoring")
        fallback = partial(site.ask, "fallback", LEGACY, api=site.monitoring)
        asked = (
            partial(again_and_again, seconds, PAUSE_SECONDS, request)
            for request in (page, fallback)
        )
        together(*asked, *[held] * count)

    return load


def churn(site: Site, seconds: float) -> None:
    """Open a connection for each request, break requests off, send halves of them."""

    def whole(port: int) -> None:
        sighting = site.ledger.now()
        with suppress(OSError), _connected(port) as connection:
            connection.sendall(_request(endpoints.insert(sighting), "Connection: close\r\n\r\n"))
            if _answered(site, "insert on a new connection", connection) in targets.STORED:
                site.ledger.acknowledge([sighting])

    def broken_off(port: int, end: str) -> None:
        path = endpoints.insert(site.ledger.now())
        with suppress(OSError), _connected(port) as connection:
            connection.setsockopt(  # a reset, not a graceful end
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            connection.sendall(_request(path, end))

    ports = (site.stack.gateway_port, site.stack.gateway_port, *site.stack.ingest_ports)
    kinds = (whole, partial(broken_off, end="\r\n"), partial(broken_off, end="X-Half: "))
    together(
        partial(site.honest, seconds),
        *(partial(again_and_again, seconds, 0.01, partial(do, p)) for p in ports for do in kinds),
    )


@contextmanager
def _connected(port: int, receive_bytes: int = 0) -> Iterator[plain_socket.socket]:
    """Yield a connection of our own, with a small buffer if wanted."""
    with ExitStack() as held:
        connection = held.enter_context(socket.socket())
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", port))
        yield connection


def _answered(site: Site, kind: str, connection: plain_socket.socket) -> int:
    """Count an answer by its beginning; return its status, 0 when there is none."""
    began, text = time.monotonic(), b""
    with suppress(OSError):
        text = connection.recv(SLOW_BYTES)
    lines = (line.partition(": ") for line in text.decode("latin-1").split("\r\n"))
    headers = {name.lower(): value for name, _, value in lines}
    seconds = time.monotonic() - began
    response = Response(int(text[9:12] or 0), b"", seconds * 1000, headers)
    site.answers.add(kind, response)
    return response.status


def _request(path: str, rest: str) -> bytes:
    always = "".join(f"{name}: {value}\r\n" for name, value in targets.authorization().items())
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{always}{rest}".encode()
