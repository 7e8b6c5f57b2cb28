"""Who waits, and for how long, while services fail: facts about NGINX, not about our text."""

import contextlib
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
import requests

from scripts.processes.waiting import eventually
from tests.gateway.conftest import FAST_SECONDS, OPEN, SLOW_SECONDS, Answer, Gateway, seconds_of
from tests.upstream import Upstream

# Who waits at any time while all services hang: 4 at each as its backup, and one half-open at each.
TRYING = 10

# An address of each group, and of the pollers; how a service may be silent.
ADDRESSES = {
    "/newbeacondetect": "POST",
    "/api/v1/detections": "POST",
    "/api/v1/staff": "GET",
    "/extractbeacon": "GET",
    "/api/v1/beacons": "GET",
    "/retrieveformonitoring": "GET",
}

Log = list[dict[str, str]]


def touched(gateway: Gateway, number: int) -> int:
    """Return how many requests were tried at one of the ingest services."""
    port = f":{gateway.ingest[number].port}"
    return sum(port in line["upstream"] for line in gateway.logged())


def slow(log: Log) -> Log:
    """Return the requests that waited for something."""
    return [line for line in log if float(line["seconds"]) > SLOW_SECONDS]


def eventually_stored(gateway: Gateway) -> float:
    """Return the seconds until a detection is taken again."""
    began = time.monotonic()
    eventually(lambda: gateway.request("POST", "/newbeacondetect").status_code == 200)
    return time.monotonic() - began


def taken(gateway: Gateway, load: Callable[[], list[Answer]]) -> tuple[list[Answer], Log]:
    """Return the answers of a load that were all 200, and what the gateway logged meanwhile.

    While this machine stalls for seconds no service answers in time: then another load tells.
    """
    for _ in range(3):
        before = len(gateway.logged())
        answers = load()
        counted = Counter(answer.status for answer in answers)
        if set(counted) == {200}:
            break
        eventually_stored(gateway)
    assert set(counted) == {200}, counted
    return answers, gateway.logged()[before:]


def test_a_refusing_service_is_asked_five_times(gateway: Gateway) -> None:
    gateway.ingest[0].close()
    began = time.monotonic()
    assert {gateway.timed("GET", "/newbeacondetect").status for _ in range(100)} == {200}
    half_open = time.monotonic() - began  # once in a second or two
    assert 1 <= touched(gateway, 0) <= 5 + half_open


@pytest.mark.long
def test_a_killed_service_is_not_noticed_and_used_again(
    gateway: Gateway, later: Callable[[Callable[[], None], float], None]
) -> None:
    killed = time.time() + 1
    later(gateway.ingest[0].close, 1)
    later(gateway.ingest[0].reopen, 4)
    answers = gateway.load(60, 26)
    assert Counter(answer.status for answer in answers) == {200: 60 * 26}
    starts = [float(request[2]["x-request-start"]) for request in gateway.ingest[0].requests]
    again = min(start for start in starts if start > killed + 3)
    assert again - killed < 3 + 3


@pytest.mark.long
def test_hanging_services_open_the_circuit_though_clients_hang_up(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.fault = "hang"
    gateway.load(35, 10, method="GET", timeout=1)
    eventually(lambda: len(gateway.logged()) == 350)  # the last of them is over for NGINX as well
    log = gateway.logged()
    # Those of the first 3 s wait: nobody can know yet. Then few, each for two services at most.
    assert len(slow(log)) <= 3 * 35 + 10 + 3 * TRYING
    assert {line["status"] for line in log} == {"503"}
    assert seconds_of(log[-100:])[-TRYING * 2] < SLOW_SECONDS
    assert seconds_of(log)[-1] < 7
    assert statistics.median(seconds_of(log)) < FAST_SECONDS
    both = gateway.ingest[0].requests + gateway.ingest[1].requests
    both = [request for request in both if request[1] != "/healthz"]  # silence.py asks that
    assert max(Counter(request[2]["x-request-id"] for request in both).values()) <= 2
    for upstream in gateway.ingest:
        upstream.fault = ""
    assert eventually_stored(gateway) < 5


@pytest.mark.long
def test_a_hanging_monitoring_service_costs_few_clients(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.close()
    gateway.monitoring.fault = "hang"
    answers = gateway.load(35, 6)
    assert {answer.status for answer in answers} == {503}
    assert len(slow(gateway.logged())) <= 8 + 3
    assert seconds_of(gateway.logged())[-1] < 3  # it waits for 2 s, and not for two of them
    gateway.monitoring.fault = ""
    gateway.monitoring.requests.clear()
    time.sleep(10)
    assert gateway.request("GET", "/api/v1/x").text == OPEN
    assert gateway.monitoring.requests[0][1] == "/api/v1/x"


@pytest.mark.long
def test_a_service_that_is_alone_has_a_circuit_too(make_gateway: Callable[..., Gateway]) -> None:
    gateway = make_gateway()
    gateway.settings["ingest"] = f"127.0.0.1:{gateway.ingest[0].port}"
    gateway.start()
    gateway.ingest[0].fault = "hang"
    answers = gateway.load(35, 6)
    assert {answer.status for answer in answers} == {503}
    assert len(slow(gateway.logged())) <= 3 * 35 + 10 + 2 * TRYING


def test_one_hanging_service_costs_few_clients(gateway: Gateway) -> None:
    gateway.ingest[0].fault = "hang"
    _, log = taken(gateway, lambda: gateway.load(20, 8))
    # Each took a connection there, which least_conn avoids; more do where this machine stalls.
    assert 1 <= len(slow(log)) <= 20
    # Each waits once, and then the other service answers.
    waits = [wait for wait in seconds_of(log) if wait > 2]
    assert statistics.median(waits) < 3  # what a phone waits for an answer


def test_hanging_histories_leave_detections_alone(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.fault, upstream.faulty_path = "hang", "/extractbeacon"
    histories = (15, 6, "/extractbeacon")

    def detections() -> list[Answer]:
        asking = threading.Thread(target=gateway.load, args=histories, kwargs={"timeout": 1})
        asking.start()
        answers = gateway.load(20, 6)
        asking.join()
        return answers

    answers, log = taken(gateway, detections)
    waited = [line for line in slow(log) if line["path"] == "/newbeacondetect"]
    assert len(waited) < len(answers) / 2  # a machine that stalls makes some wait


@pytest.mark.long
def test_the_faster_service_gets_more(gateway: Gateway) -> None:
    gateway.ingest[0].delay_seconds = 1
    answers = gateway.load(20, 15)  # long: a moment that this machine stalls counts little
    assert {answer.status for answer in answers} == {200}
    assert len(gateway.ingest[0].requests) < len(answers) / 4


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("services", [1, 2])
def test_resetting_services(gateway: Gateway, method: str, services: int) -> None:
    for upstream in gateway.ingest[:services]:
        upstream.fault = "reset"
    answers = [gateway.request(method, "/newbeacondetect") for _ in range(30)]
    expected = (200, "ok") if services == 1 else (503, OPEN)
    assert {(answer.status_code, answer.text) for answer in answers} == {expected}


@pytest.mark.parametrize("status", [500, 502, 503])
def test_what_both_services_answer(gateway: Gateway, status: int) -> None:
    for upstream in gateway.ingest:
        upstream.answer(status, b'{"error":"x"}', {"Content-Type": "application/json"})
    answers = [gateway.request("POST", "/newbeacondetect") for _ in range(20)]
    assert answers[0].status_code == status
    for upstream in gateway.ingest:
        upstream.answer(200, b"ok")
    # 500 is the service's own answer to a request: it opens nothing. The others open the circuit.
    assert (OPEN in {answer.text for answer in answers}) == (status != 500)
    assert gateway.timed("POST", "/newbeacondetect").status == 200  # who is well again is used


def test_an_answer_that_breaks_off_never_looks_complete(gateway: Gateway) -> None:
    body = b'{"location":[' + b"1," * 5000 + b"1]}"
    for upstream in gateway.ingest:
        upstream.answer(200, body, {"Content-Type": "application/json"})
        upstream.fault = "die"
    for encoding in ("gzip", "identity"):
        for path in ("/newbeacondetect", "/extractbeacon"):
            with pytest.raises(requests.RequestException):
                gateway.request("GET", path, headers={"Accept-Encoding": encoding})
    polled = gateway.timed("GET", "/retrieveformonitoring").status
    for upstream in gateway.ingest:
        upstream.fault = ""
    assert polled in (0, 503)
    assert gateway.request("GET", "/retrieveformonitoring").content == body


@pytest.mark.long
def test_a_dripping_service_holds_only_its_own_clients(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.answer(200, b"x" * 20)
    gateway.ingest[0].fault = "drip"  # 10 s for an answer, though no pause is longer than 3 s
    answers = gateway.load(20, 6)
    assert {answer.status for answer in answers} == {200}
    assert sum(answer.seconds > 1 for answer in answers) <= 32


def test_a_lone_client_waits_once_while_all_services_hang(gateway: Gateway) -> None:
    """NGINX's counts are too few of him: the next requests are answered at once, of any kind."""
    stored, read = ("POST", "/newbeacondetect"), ("GET", "/api/v1/staff")
    for upstream in gateway.ingest:
        upstream.fault = "hang"
    assert gateway.timed(*stored).status == 503
    eventually(lambda: gateway.timed(*stored).seconds < FAST_SECONDS)
    waited = len(slow(gateway.logged()))
    for request in [stored, read] * 10:
        assert gateway.timed(*request).status == 503
    log = gateway.logged()
    assert len(slow(log)) == waited <= 3
    assert touched(gateway, 0) == touched(gateway, 1) == waited
    gateway.ingest[1].fault = ""  # one that answers is enough
    assert eventually_stored(gateway) < 5
    assert not (gateway.run / "silent").exists()


@contextlib.contextmanager
def silent(upstream: Upstream, how: str) -> Iterator[None]:
    """Make a service silent, and let it answer again."""
    if how == "hangs":
        upstream.fault = "hang"
        yield
        upstream.fault = ""
        return
    upstream.close()
    with contextlib.ExitStack() as held:
        deaf = held.enter_context(socket.create_server((upstream.host, upstream.port), backlog=0))
        for _ in range(3):  # nobody takes these, so there is no room for another
            waiting = held.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(deaf.getsockname())
        yield
    upstream.reopen()


def asked(upstream: Upstream) -> int:
    """Return how many requests of clients a service got."""
    return sum(path != "/healthz" for _, path, *_ in list(upstream.requests))


@pytest.mark.parametrize(
    ("found_by", "number", "how"),
    [
        ("/newbeacondetect", 0, "hangs"),
        ("/api/v1/staff", 1, "takes no connection"),
        pytest.param("/api/v1/detections", 1, "hangs", marks=pytest.mark.long),
        pytest.param("/extractbeacon", 0, "takes no connection", marks=pytest.mark.long),
        pytest.param("/api/v1/beacons", 1, "hangs", marks=pytest.mark.long),
    ],
)
def test_a_lone_client_waits_once_while_one_service_is_silent(
    gateway: Gateway, found_by: str, number: int, how: str
) -> None:
    """He asks every few seconds, when the circuit has half opened again: whatever he asks for."""
    upstream = gateway.ingest[number]
    gateway.ingest[1 - number].answer(200, b"[]", {"Cache-Control": "no-store"})
    with silent(upstream, how):

        def waits() -> bool:
            return gateway.timed(ADDRESSES[found_by], found_by, timeout=40).seconds > SLOW_SECONDS

        eventually(waits)
        time.sleep(2.5)
        met = asked(upstream)
        for _ in range(3):
            for path, method in ADDRESSES.items():
                answer = gateway.timed(method, path)
                # Some ms, but a machine may stall; who waits for a service waits for a second.
                assert (answer.status, answer.seconds < SLOW_SECONDS) == (200, True), path
            time.sleep(2.2)
        assert asked(upstream) == met
    for path, method in ADDRESSES.items():
        if path != "/retrieveformonitoring":  # which is cached

            def used(path: str = path, method: str = method) -> bool:
                assert gateway.timed(method, path).status == 200
                return any(request[1] == path for request in upstream.requests[:])

            upstream.requests.clear()
            eventually(used, 5)
