"""One client cannot take the gateway from the others, by haste or by slowness."""

import contextlib
import http.client
import json
import socket
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway

DETECTION = b"GET /newbeacondetect HTTP/1.1\r\nHost: x\r\n"


class Client:
    """Connections from one address, which on 127.0.0.0/8 can be any."""

    def __init__(self, gateway: Gateway, address: str = "127.0.0.1") -> None:
        self._gateway = gateway
        self._address = address
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def send(self, data: bytes, receive_bytes: int | None = None) -> socket.socket:
        connection = self._open.enter_context(socket.socket())
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(15)
        connection.bind((self._address, 0))
        connection.connect(self._gateway.address)
        connection.sendall(data)
        return connection


def statuses(connection: socket.socket, count: int) -> Iterator[int]:
    """Yield the statuses of pipelined answers."""
    with connection.makefile("rb") as file:
        for _ in range(count):
            yield int(file.readline().split()[1])
            length = 0
            while (line := file.readline().strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            file.read(length)


def answer(connection: socket.socket) -> tuple[http.client.HTTPResponse, dict[str, str]]:
    with http.client.HTTPResponse(connection) as response:
        response.begin()
        return response, json.loads(response.read())


def burst(client: Client, more: bytes = b"") -> Counter[int]:
    """Send 1600 requests as fast as they are answered, through 8 connections."""
    connections = [client.send((DETECTION + more + b"\r\n") * 200) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        return Counter(
            status
            for answers in pool.map(lambda c: [*statuses(c, 200)], connections)
            for status in answers
        )


@pytest.mark.long
def test_a_campus_behind_one_address_is_served(gateway: Gateway) -> None:
    answers = gateway.load(100, 8)
    assert Counter(answer.status for answer in answers) == {200: 800}


@pytest.mark.parametrize("more", [b"", b"X-Forwarded-For: 10.%d.0.1\r\n"])
def test_a_burst_over_the_limit_is_asked_to_wait(
    make_gateway: Callable[..., Gateway], more: bytes
) -> None:
    gateway = make_gateway(client_rate="1").start()  # so that nothing is free again a moment later
    for upstream in [*gateway.ingest, gateway.monitoring]:
        upstream.close()
    with Client(gateway) as hasty, Client(gateway, "127.0.0.2") as other:
        began = time.monotonic()
        counted = burst(hasty, more)
        assert set(counted) == {503, 429}
        assert 400 <= counted[503] <= 402 + time.monotonic() - began
        asked = (answer(hasty.send(DETECTION + b"\r\n")) for _ in range(5))  # a second has one
        refusal, body = next(reply for reply in asked if reply[0].status == 429)
        assert refusal.headers["Retry-After"] == "1"
        assert "wait a second" in body["error"]
        assert refusal.headers["Content-Type"] == "application/json"
        for name in ("Access-Control-Allow-Origin", "X-Request-ID"):
            assert len(refusal.headers.get_all(name) or []) == 1
        assert answer(other.send(DETECTION + b"\r\n"))[0].status == 503
    time.sleep(3)
    with Client(gateway) as patient:
        assert answer(patient.send(DETECTION + b"\r\n"))[0].status == 503


def test_dripping_bodies_take_a_bounded_share(make_gateway: Callable[..., Gateway]) -> None:
    gateway = make_gateway(client_rate="100000").start()
    begun = b"POST /newbeacondetect HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na"
    with Client(gateway) as dripping, Client(gateway, "127.0.0.2") as other:
        held = [dripping.send(begun) for _ in range(448)]
        whole = DETECTION + b"\r\n"
        eventually(lambda: next(statuses(dripping.send(whole), 1)) == 429)
        assert answer(dripping.send(begun))[0].status == 429
        held[0].sendall(b"a")
        assert next(statuses(other.send(DETECTION + b"\r\n"), 1)) == 200


def test_slow_readers_of_histories_leave_detections_alone(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.answer(200, b"x" * 2_000_000)
    with Client(gateway) as reader:
        request = b"GET /extractbeacon HTTP/1.1\r\nHost: x\r\n\r\n"
        held = [reader.send(request, receive_bytes=4096) for _ in range(52)]
        eventually(lambda: sum(len(upstream.requests) for upstream in gateway.ingest) == 52)
        refused, _ = answer(reader.send(request))
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        for upstream in gateway.ingest:
            upstream.answer(200, b"ok")
        assert gateway.timed("POST", "/newbeacondetect").status == 200
        # Nothing waits for them: the services gave their answers to the gateway and are free.
        waits = [gateway.timed("POST", "/newbeacondetect").seconds for _ in range(5)]
        assert statistics.median(waits) < 2  # one of them may wait for this machine
        assert next(statuses(held[0], 1)) == 200


@pytest.mark.parametrize(
    ("address", "own", "places"),
    [
        ("/extractbeacon", 52, 62),
        ("/api/v1/staff/{}/detections?format=csv", 52, 62),
        ("/api/v1/now", 56, 64),
        ("/retrieveformonitoring", 44, 50),
        ("/monitoring/latest", 96, 128),
    ],
)
def test_slow_readers_leave_places_to_other_clients(
    gateway: Gateway, address: str, own: int, places: int
) -> None:
    for upstream in [*gateway.ingest, gateway.monitoring]:
        upstream.answer(200, b"x" * 2_000_000)

    def asked(number: int) -> bytes:
        return f"GET {address.format(number)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    def status(client: Client, number: int) -> int:
        return next(statuses(client.send(asked(number), receive_bytes=4096), 1))

    with Client(gateway) as slow, Client(gateway, "127.0.0.2") as other:
        # One after the other: of several at once, the last might get the place of one before it.
        assert {status(slow, number) for number in range(own)} == {200}
        assert status(slow, 0) == 429
        assert {status(other, number) for number in range(places - own)} == {200}
        with Client(gateway, "127.0.0.3") as late:
            assert status(late, 0) == 503
            # Detections have places of their own, and so have the other kinds.
            assert next(statuses(late.send(DETECTION + b"\r\n"), 1)) == 200


@pytest.mark.long
def test_a_stalled_client_is_cut_off(gateway: Gateway) -> None:
    stalled = [b"GET / HTTP/1.1\r\nHost:", b"POST /newbeacondetect HTTP/1.1\r\nHost: x\r\n"]
    stalled[1] += b"Content-Length: 9\r\n\r\nabc"
    with Client(gateway) as client:
        began = time.monotonic()
        for connection in [client.send(data) for data in stalled]:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(100) == b""
        assert 9 < time.monotonic() - began < 20
    assert gateway.ingest[0].requests == gateway.ingest[1].requests == []


def test_the_status_is_for_this_machine_only(gateway: Gateway) -> None:
    assert "Active connections: 1" in gateway.request("GET", "/nginx_status").text
    with Client(gateway, "127.0.0.2") as stranger:
        refused, body = answer(
            stranger.send(b"GET /nginx_status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        )
        assert refused.status == 403
        assert "only the gateway's machine" in body["error"]


@pytest.mark.long
@pytest.mark.parametrize(("connections", "are_kept"), [("3072", False), ("6000", True)])
def test_as_many_idle_phones_are_held_as_it_is_told(
    make_gateway: Callable[..., Gateway], connections: str, *, are_kept: bool
) -> None:
    gateway = make_gateway(connections=connections, client_rate="100000").start()
    with Client(gateway) as client:
        phones = [client.send(b"") for _ in range(3500)]
        for phone in phones:
            phone.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            phone.settimeout(0)

        def closed() -> int:
            return sum(has_ended(phone) for phone in phones)

        # One more always finds a place: those that idle for longest have made it.
        assert gateway.timed("GET", "/healthz").status == 200
        if not are_kept:
            eventually(lambda: closed() > 0, 30)
        assert (closed() == 0) is are_kept
    assert gateway.timed("GET", "/healthz").status == 200


def has_ended(connection: socket.socket) -> bool:
    """Tell whether the other end has closed it, after whatever it sent."""
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
