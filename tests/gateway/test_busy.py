"""Busy is not open: when all places are taken, the gateway says so itself, and at little cost."""

import json
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psutil
import pytest

from scripts.processes.waiting import eventually
from tests.gateway.conftest import OPEN, Gateway
from tests.gateway.test_limits import Client, answer, statuses

# By path: the places of all clients, and those of one.
PLACES = {
    "/newbeacondetect": (512, 448),
    "/api/v1/detections": (112, 100),
    "/api/v1/now": (64, 56),
    "/extractbeacon": (62, 52),
    "/api/v1/staff/7/detections?format=csv": (62, 52),
}

REQUESTS = 900  # of one connection: after 1000 nginx closes it, and waits for the client's close


@pytest.fixture
def gateway(make_gateway: Callable[..., Gateway]) -> Gateway:
    """Return a gateway whose clients may ask as fast as they can."""
    return make_gateway(client_rate="100000").start()


def asking(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def drip(gateway: Gateway) -> None:
    """Let every answer take five minutes, without ever being silent for 3 s."""
    for upstream in gateway.ingest:
        upstream.answer(200, b"x" * 600)
        upstream.fault = "drip"


Holders = dict[socket.socket, Client]


def hold(
    gateway: Gateway, clients: list[Client], path: str, holders: Holders | None = None
) -> Holders:
    """Have these clients take a place each, few at once, beside those that hold one already.

    On a busy machine the upstreams may be too slow for the gateway: who is refused, or loses the
    place, asks again.
    """
    waiting = holders or {}
    for first in range(0, len(clients), 32):
        group = clients[first : first + 32]
        waiting |= {client.send(asking(path)): client for client in group}
        eventually(partial(all_hold, gateway, waiting, path), 60)
    return waiting


def all_hold(gateway: Gateway, waiting: Holders, path: str) -> bool:
    refused = [connection for connection in waiting if is_answered(connection)]
    if refused:
        close_circuit(gateway, path)
    for connection in refused:
        connection.close()
        client = waiting.pop(connection)
        waiting[client.send(asking(path))] = client
    return dripping(gateway) >= len(waiting)


def close_circuit(gateway: Gateway, path: str) -> None:
    """Answer at once for a moment: no answer that drips ends, which is what closes a circuit."""
    for upstream in gateway.ingest:
        upstream.fault = ""
    with Client(gateway, "127.0.0.4") as another:  # the others may have no place left
        eventually(lambda: next(statuses(another.send(asking(path)), 1)) == 200)
    drip(gateway)


def is_answered(connection: socket.socket) -> bool:
    """Tell whether something came: of an answer that drips the gateway keeps the beginning."""
    with selectors.DefaultSelector() as selector:  # select.select() knows 1024 files
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(0))


def dripping(gateway: Gateway) -> int:
    return sum(service.dripping() for service in gateway.ingest)


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@pytest.mark.parametrize("path", PLACES)
def test_a_client_leaves_places_and_without_any_the_answer_is_busy(
    gateway: Gateway, path: str
) -> None:
    places, own = PLACES[path]
    drip(gateway)
    with (
        Client(gateway) as greedy,
        Client(gateway, "127.0.0.2") as other,
        Client(gateway, "127.0.0.3") as late,
    ):
        holders = hold(gateway, [greedy] * own, path)
        gateway.monitoring.requests.clear()
        refused, body = answer(greedy.send(asking(path)))
        assert (refused.status, refused.headers["X-Circuit-State"]) == (429, None)
        assert "wait a second" in body["error"]
        assert gateway.monitoring.requests == []
        hold(gateway, [other] * (places - own), path, holders)
        gateway.monitoring.requests.clear()
        began = time.monotonic()
        refused, body = answer(late.send(asking(path)))
        assert time.monotonic() - began < 5  # those that hold the places go on for minutes
        assert refused.status == 503
        assert body["error"].startswith("busy: ")
        assert refused.headers["Content-Type"] == "application/json"
        for name, value in [("X-Circuit-State", "busy"), ("Retry-After", "1")]:
            assert refused.headers.get_all(name) == [value]
        assert gateway.monitoring.requests == []


def test_a_probe_sees_that_a_circuit_is_busy_and_takes_no_place(gateway: Gateway) -> None:
    drip(gateway)
    with Client(gateway) as greedy, Client(gateway, "127.0.0.2") as other:
        hold(gateway, [greedy] * 448 + [other] * 64, "/newbeacondetect")
        before = len(gateway.logged())
        for upstream in gateway.ingest:
            upstream.fault = ""
        states = {
            name: gateway.request("GET", f"/_circuit/{name}").headers["X-Circuit-State"]
            for name in ("ingest", "reads")
        }
        assert states == {"ingest": "busy", "reads": "closed"}
        assert {line["circuit"] for line in gateway.logged()[before:]} <= {""}


@pytest.mark.long
def test_a_refusal_costs_the_gateway_at_most_twice_an_insert(
    gateway: Gateway,
) -> None:
    worker = gateway.worker()
    body = b"user_address=7&beacon_address=C2A628384B08&rssi=-20"
    detection = b"POST /newbeacondetect HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b"

    def cost(client: Client, status: int, count: int) -> float:
        """Return the gateway's CPU seconds for so many requests, one after the other.

        0 when one of them is answered otherwise: where this machine stalls, places are lost.
        """
        connection = client.send(b"")
        before = cpu_seconds(worker)
        for _ in range(count):
            connection.sendall(detection % (len(body), body))
            if next(statuses(connection, 1)) != status:
                return 0
        return cpu_seconds(worker) - before

    with Client(gateway) as greedy, Client(gateway, "127.0.0.2") as other:
        accepted = cost(other, 200, REQUESTS)
        drip(gateway)
        holders = hold(gateway, [greedy] * 448 + [other] * 64, "/newbeacondetect")

        def refusals(late: Client) -> float:
            eventually(partial(all_hold, gateway, holders, "/newbeacondetect"), 60)
            return cost(late, 503, REQUESTS)

        with Client(gateway, "127.0.0.3") as late:
            refused = eventually(partial(refusals, late), 120)
    each_us = 1e6 / REQUESTS
    print(f"accepted {accepted * each_us:.0f} us, refused {refused * each_us:.0f} us")
    assert refused < 2 * accepted


@pytest.mark.long  # so many threads want a machine that does little else
def test_400_at_once_from_one_address_are_all_taken(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.delay_seconds = 0.3
    with Client(gateway) as campus:
        held = [campus.send(asking("/newbeacondetect")) for _ in range(400)]
        assert Counter(next(statuses(client, 1)) for client in held) == {200: 400}


def test_an_open_circuit_is_not_busy(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.close()
    with ThreadPoolExecutor(50) as pool:
        load = [pool.submit(gateway.request, "GET", "/api/v1/now") for _ in range(50)]
        answers = [request.result() for request in load]
    assert {(answer.status_code, answer.text) for answer in answers} == {(503, OPEN)}
    assert {answer.headers["X-Circuit-State"] for answer in answers} == {"open"}
    with pytest.raises(KeyError):
        json.loads(answers[0].text)["error"]
