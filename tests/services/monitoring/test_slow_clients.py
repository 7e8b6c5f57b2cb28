"""Clients that stop, drip or do not read, in front of the real service with its real limit."""

import contextlib
import json
import signal
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from common.log_lines import FRAME
from monitoring.gateway import MAX_BODY_BYTES
from scripts.processes.control_groups import Limits
from scripts.processes.limited_group import available
from scripts.processes.waiting import eventually
from tests.services.monitoring.conftest import Service
from tests.upstream import Upstream

pytestmark = pytest.mark.long

LIMIT_BYTES = 48 * 2**20
CROWD = 300
HEAD = b"GET /monitoring HTTP/1.1\r\nHost: localhost\r\n"
STAFF = b"GET /monitoring/api/staff HTTP/1.1\r\nHost: localhost\r\n\r\n"
ASKED = [
    ("GET", "/healthz", 200),
    ("GET", "/monitoring", 200),
    ("GET", "/monitoring/api/staff", 200),
    ("POST", "/newbeacondetect", 503),  # the gateway's first fallback
]


@pytest.fixture
def service(upstream: Upstream, tmp_path: Path) -> Iterator[Service]:
    """Run the service inside its limit, with an answer of nearly 1 MiB about all staff."""
    people = [{"staff_id": number, "location": "x" * 44} for number in range(13_000)]
    body = json.dumps({"as_of": 100, "data": people}).encode()
    assert 0.9 * MAX_BODY_BYTES < len(body) < MAX_BODY_BYTES
    upstream.answer(200, body)
    upstream.fault, upstream.faulty_path = "missing", "/_service/"  # no report is so long
    limits = Limits(None, LIMIT_BYTES) if available() else None
    service = Service(upstream.url, tmp_path, limits)
    service.start()
    yield service
    service.stop()


class Crowd:
    """Connections that stay open until the end of the test."""

    def __init__(self, service: Service, held: contextlib.ExitStack) -> None:
        self._service = service
        self._held = held

    def connect(self, sent: bytes = b"", receive_bytes: int = 0) -> socket.socket:
        client = self._held.enter_context(socket.socket())
        if receive_bytes:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.settimeout(30)
        client.connect(("127.0.0.1", self._service.port))
        client.sendall(sent)
        return client


@pytest.fixture
def crowd(service: Service) -> Iterator[Crowd]:
    with contextlib.ExitStack() as held:
        yield Crowd(service, held)


def drip(crowd: Crowd) -> None:
    clients = [crowd.connect() for _ in range(CROWD)]
    for at in range(len(HEAD)):
        for client in clients:
            with contextlib.suppress(OSError):  # who waits longest makes room
                client.send(HEAD[at : at + 1])
        time.sleep(0.1)


def stay(crowd: Crowd) -> None:
    for _ in range(CROWD):
        client = crowd.connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")


def many(sent: bytes, receive_bytes: int = 0) -> Callable[[Crowd], None]:
    def come(crowd: Crowd) -> None:
        for _ in range(CROWD):
            with contextlib.suppress(OSError):
                crowd.connect(sent, receive_bytes)

    return come


CASES: dict[str, Callable[[Crowd], None]] = {
    "half a head": many(HEAD),
    "much of a head": many(HEAD + b"A: %b\r\n" % (b"a" * 8000) * 3),
    "thousands of fields": many(HEAD + b"a: b\r\n" * 5000),
    "half a body": many(b"POST /newbeacondetect HTTP/1.1\r\nContent-Length: 99999\r\n\r\nx"),
    "a body in chunks": many(b"POST /api/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff"),
    "nothing": many(b""),
    "drips": drip,
    "idle after an answer": stay,
    "slow readers of a megabyte": many(STAFF, 4096),
    "slow readers of many small answers": many(
        b"GET /monitoring/static/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 8, 4096
    ),
}


def check(service: Service) -> None:
    """Everybody else is answered, with time to spare for a busy machine, and in the memory."""
    for method, path, status in ASKED:
        took = statistics.median(service.seconds(method, path, status) for _ in range(5))
        assert took < 1, f"{path} took {took:.1f} s"
    if service.group:
        usage = service.group.usage()
        print(f"{usage.anonymous_bytes / 2**20:.1f} MiB anonymous")
        assert usage.anonymous_bytes < 0.9 * LIMIT_BYTES
        assert usage.killed == 0
    assert service.log.count("Booting worker") == 1
    assert FRAME not in service.log


def is_asked_for_staff(upstream: Upstream) -> bool:
    return any(urlsplit(path).path == "/api/v1/staff" for _, path, _, _ in upstream.requests)


def test_crowds_of_all_kinds_hold_up_nobody_and_leave_nothing_behind(
    service: Service, upstream: Upstream
) -> None:
    for come in CASES.values():
        with contextlib.ExitStack() as held:
            come(Crowd(service, held))
            check(service)
    files = len(list(Path(f"/proc/{service.pid}/fd").iterdir()))
    assert files < 50
    assert is_asked_for_staff(upstream)


def test_a_head_may_come_in_parts_and_requests_one_behind_the_other(crowd: Crowd) -> None:
    client = crowd.connect(b"GET /heal")
    client.sendall(b"thz HTTP/1.1\r\nHost: localhost\r\n\r")
    client.sendall(b"\nGET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\n")
    seen = received_until(client, b"not found")
    assert seen.count(b"HTTP/1.1 200") == 1
    assert seen.count(b"HTTP/1.1 404") == 1
    client.sendall(b"Host: localhost\r\n\r\n")
    assert received_until(client, b'"ok"').count(b"HTTP/1.1 200") == 1
    client.sendall(b"GET /healthz?%b HTTP/1.1\r\nHost: localhost\r\n" % (b"x" * 16_000))
    client.sendall(b"Cookie: %b\r\nConnection: close\r\n\r\n" % (b"x" * 16_000))
    assert received_until(client, b"").count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HEAD + b"A: %b\r\n" % (b"a" * 8000) * 5, b"431"),
        (b"\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        # What follows a body is no request: nobody reads where the body ends.
        (
            b"POST /newbeacondetect HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde"
            + STAFF,
            b"503",
        ),
    ],
)
def test_what_cannot_go_on_gets_one_answer_and_the_end(
    crowd: Crowd, sent: bytes, status: bytes
) -> None:
    seen = received_until(crowd.connect(sent), b"")
    assert seen.startswith(b"HTTP/1.1 " + status)
    assert seen.count(b"HTTP/1.1 ") == 1


def test_half_a_head_is_not_waited_for_for_ever(crowd: Crowd) -> None:
    began = time.monotonic()
    assert received_until(crowd.connect(HEAD), b"") == b""
    assert time.monotonic() - began > 5


def test_it_ends_soon_with_idle_connections(service: Service, crowd: Crowd) -> None:
    stay(crowd)
    service.send_signal(15)
    eventually(lambda: not service.running(), 30)
    assert "SIGKILL" not in service.log


def received_until(client: socket.socket, end: bytes) -> bytes:
    """Return what comes up to some text; with none, up to the end of the connection."""
    seen = b""
    while not (end and end in seen):
        data = client.recv(65536)
        if not data:
            return seen
        seen += data
    return seen


def test_a_stop_answers_who_waits_for_the_gateway(service: Service, upstream: Upstream) -> None:
    """Which is silent: the page waits for it for 4 s, and a stop for 8."""
    upstream.fault, upstream.faulty_path = "hang", "/"
    with contextlib.ExitStack() as held:
        client = Crowd(service, held).connect(STAFF)
        eventually(lambda: is_asked_for_staff(upstream))
        service.send_signal(signal.SIGTERM)
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")  # what it knows: nothing yet
    eventually(lambda: not service.running(), 30)
