"""Those who ask for too much, or never finish, beside honest requests."""

import socket as plain_socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import gevent
from gevent import socket

from loadtests.engine import endpoints
from loadtests.headroom import seeds
from loadtests.headroom.answers import NONE
from loadtests.headroom.crowds import EXPORT, Load, exports
from loadtests.headroom.site import Site, again_and_again, together, wait_as_told

IMPORT = "/api/v1/beacons/import"
LEGACY = "/newbeacondetect"
FORM, CSV = "application/x-www-form-urlencoded", "text/csv"
ITEMS, BEACONS = 1_000, 2_000  # the most that one request may hold
PAUSE_SECONDS, REFUSED_SECONDS = 0.5, 2.0  # between requests; of a slow reader who is refused
SLOW_BYTES, RECEIVE_BYTES = 1024, 4096  # a read of a slow reader; its buffer


def bodies(kind: str, path: str, body: bytes, content_type: str, clients: int) -> Load:
    """Return clients that send one body again and again."""

    def send(site: Site) -> None:
        wait_as_told(site.ask(kind, path, body, headers={"Content-Type": content_type}))

    def load(site: Site, seconds: float) -> None:
        hostile = partial(again_and_again, seconds, PAUSE_SECONDS, partial(send, site))
        together(partial(site.honest, seconds), *[hostile] * clients)

    return load


def bad_lines() -> Load:
    """Return imports of 1 MiB, nearly each byte of which is a bad line."""
    body = b"mac,level,location,x,y\n" + b"x\n" * 524_000
    return bodies("import", f"{IMPORT}?dry_run=1", body, CSV, clients=2)


def empty_items() -> Load:
    """Return batches of 1 MiB that hold nothing."""
    body = b'{"detections":[' + b",".join([b"{}"] * 349_000) + b"]}"
    return bodies("batch of {}", endpoints.BATCH, body, "application/json", clients=4)


def forms(size: int, clients: int) -> Load:
    """Return forms in which each value is half a character."""
    return bodies("form", LEGACY, b"a=%C3&" * size, FORM, clients)


def largest(site: Site, seconds: float) -> None:
    """Send and ask for the most that an endpoint takes, one of each at a time."""
    lines = [f"{n:012X},{n % 7},{'Hall ' * 12}{n},1.5,2.5" for n in range(BEACONS)]
    beacons = "\n".join(["mac,level,location,x,y", *lines]).encode()
    form = b"staff_id=%d&" % seeds.EXPORTED + b"a=%C3&" * 1_300
    path = f"/api/v1/staff/{seeds.EXPORTED}/detections"
    feed = f"/api/v1/changes?from={int(time.time())}&limit={ITEMS}"
    asked = (
        partial(site.batch, ITEMS),
        partial(site.ask, "import", f"{IMPORT}?dry_run=1", beacons, headers={"Content-Type": CSV}),
        partial(site.ask, "form", LEGACY, form, headers={"Content-Type": FORM}),
        partial(site.ask, "page of 3,000", f"{path}?limit=3000"),
        partial(site.ask, "history", endpoints.extract(seeds.EXPORTED)),
        partial(site.ask, "feed", feed),
    )
    again = partial(again_and_again, seconds, PAUSE_SECONDS)
    together(partial(site.honest, seconds), *(partial(again, ask) for ask in asked))


def slow_readers(count: int) -> Load:
    """Return readers of an export from one address, half of them without gzip."""

    def read(site: Site, number: int) -> None:
        encoding = ("identity", "gzip")[number % 2]
        with suppress(OSError), _connected(site.stack.gateway_port, RECEIVE_BYTES) as one:
            one.sendall(_request(EXPORT, f"Accept-Encoding: {encoding}\r\n\r\n"))
            text = _answered(site, "slow reader", one)
            while text:
                gevent.sleep(PAUSE_SECONDS)
                text = one.recv(SLOW_BYTES)

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
            with suppress(OSError), _connected(site.stack.monitoring_port) as one:
                one.sendall(_request("/monitoring", "X-Slow: "))
                one.recv(SLOW_BYTES)  # nothing comes until it is given up

        with gevent.Timeout(seconds, exception=False):
            again_and_again(seconds, PAUSE_SECONDS, once)

    def load(site: Site, seconds: float) -> None:
        held = partial(hold, site, seconds)
        page = partial(site.ask, "page", "/monitoring")
        fallback = partial(site.ask, "fallback", LEGACY, api=site.monitoring)
        asked = (partial(again_and_again, seconds, PAUSE_SECONDS, one) for one in (page, fallback))
        together(*asked, *[held] * count)

    return load


def slow_downloads(count: int) -> Load:
    """Return downloads of seconds, while health and batches are asked for."""

    def load(site: Site, seconds: float) -> None:
        again = partial(again_and_again, seconds, PAUSE_SECONDS)
        health = (partial(site.ask, "/healthz", "/healthz", api=api) for api in site.services)
        together(
            partial(exports, site, seconds, count),
            *(partial(again, ask) for ask in health),
            partial(again, partial(site.batch, 50)),
            partial(site.honest, seconds),
        )

    return load


def churn(site: Site, seconds: float) -> None:
    """Open a connection for each request, break requests off, send halves of them."""

    def whole(port: int) -> None:
        one = site.ledger.now()
        with suppress(OSError), _connected(port) as connection:
            connection.sendall(_request(endpoints.insert(one), "Connection: close\r\n\r\n"))
            if _answered(site, "insert on a new connection", connection)[9:12] in (b"200", b"202"):
                site.ledger.acknowledge([one])

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
        one = held.enter_context(socket.socket())
        if receive_bytes:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        one.settimeout(60)
        one.connect(("127.0.0.1", port))
        yield one


def _answered(site: Site, kind: str, connection: plain_socket.socket) -> bytes:
    """Return the beginning of an answer, when it is counted."""
    began, text = time.monotonic(), b""
    with suppress(OSError):
        text = connection.recv(SLOW_BYTES)
    site.answers.note(kind, text[9:12].decode() or NONE, time.monotonic() - began)
    return text


def _request(path: str, rest: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{rest}".encode()
