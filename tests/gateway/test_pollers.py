"""The short cache of /retrieveformonitoring: cheap for the services, honest about its age."""

import json
import math
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime

import pytest
import requests

from scripts.processes.waiting import eventually
from tests.gateway.conftest import FAST_SECONDS, OPEN, SLOW_SECONDS, Gateway, seconds_of

URL = "/retrieveformonitoring"
BODY = json.dumps({"location": [{"staff_id": 7, "location": "Lobby B"}] * 200}).encode()
JSON = {"Content-Type": "application/json", "Vary": "Accept-Encoding"}  # as the service


def hits(gateway: Gateway) -> int:
    return sum(len(upstream.requests) for upstream in gateway.ingest)


def prepare(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.answer(200, BODY, JSON)


def poll(gateway: Gateway, pollers: int, seconds: float) -> list[requests.Response]:
    """Let pollers ask twice a second; return all that they were answered."""
    answers: list[requests.Response] = []

    def ask() -> None:
        with requests.Session() as session:
            session.trust_env = False
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                answers.append(session.get(f"{gateway.url}{URL}", timeout=30))
                time.sleep(0.5)

    threads = [threading.Thread(target=ask) for _ in range(pollers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.long
def test_fifty_pollers_cost_six_requests_and_outlive_the_services_for_a_while(
    gateway: Gateway,
) -> None:
    prepare(gateway)
    began = time.monotonic()
    answers = poll(gateway, 50, 10)
    took = time.monotonic() - began
    assert len(answers) > 300  # 1000 where the clients are fast
    assert {(answer.status_code, answer.content) for answer in answers} == {(200, BODY)}
    assert 3 <= hits(gateway) <= 1 + math.ceil(took / 2)
    for upstream in gateway.ingest:
        upstream.close()
    last = gateway.request("GET", URL).headers["Date"]
    before = len(gateway.logged())
    stale = poll(gateway, 50, 8)
    assert {(answer.status_code, answer.content) for answer in stale} == {(200, BODY)}
    assert {answer.headers["Date"] for answer in stale} == {last}
    waits = seconds_of(gateway.logged()[before:])
    assert statistics.median(waits) < FAST_SECONDS
    assert waits[-1] < SLOW_SECONDS


@pytest.mark.long
def test_no_answer_is_older_than_30_s_with_all_that_was_waited_for_it(gateway: Gateway) -> None:
    prepare(gateway)
    taken = parsedate_to_datetime(gateway.request("GET", URL).headers["Date"]).timestamp()
    for upstream in gateway.ingest:
        upstream.faulty_path = "/retrieveformonitoring"  # silence.py finds them alive
        upstream.fault = "hang"  # whoever asks waits for both services, and for their time-outs
    ages: list[float] = []

    def ask(wait: float) -> requests.Response:
        time.sleep(wait)
        answer = gateway.request("GET", URL)
        if answer.status_code == 200:
            assert parsedate_to_datetime(answer.headers["Date"]).timestamp() == taken
            ages.append(time.time() - taken)
        return answer

    with ThreadPoolExecutor(50) as clients:  # one every half second, however long the others wait
        answers = list(clients.map(ask, [number / 2 for number in range(50)]))
    assert 22 < max(ages) <= 30, "the oldest has waited"
    late = answers[-1]
    assert (late.status_code, late.text) == (503, OPEN)
    assert late.headers["X-Circuit-State"] == "open"


def test_an_open_circuit_is_never_cached(gateway: Gateway) -> None:
    prepare(gateway)
    for upstream in gateway.ingest:
        upstream.close()
    assert gateway.request("GET", URL).status_code == 503
    for upstream in gateway.ingest:
        upstream.reopen()
    assert gateway.request("GET", URL).content == BODY


@pytest.mark.long
def test_a_cold_cache_before_hanging_services_is_answered_soon(gateway: Gateway) -> None:
    prepare(gateway)
    for upstream in gateway.ingest:
        upstream.fault = "hang"
    answers = poll(gateway, 40, 0.1)  # one address has 44 places
    assert {answer.text for answer in answers} == {OPEN}
    # 1 s for the lock, 3 s for a service; a queue would make the last of them wait 13 s.
    assert max(answer.elapsed.total_seconds() for answer in answers) < 8
    # Then few try the services again; most wait for the lock alone.
    waits = [answer.elapsed.total_seconds() for answer in poll(gateway, 40, 0.1)]
    assert statistics.median(waits) < 2.5


def test_hanging_services_do_not_stall_a_warm_poller(gateway: Gateway) -> None:
    prepare(gateway)
    with requests.Session() as session:
        session.trust_env = False
        assert session.get(f"{gateway.url}{URL}").content == BODY
        for upstream in gateway.ingest:
            upstream.fault = "hang"
        time.sleep(3.1)
        # Twice on what would be one connection: the second must not wait for the first's update.
        stale = [session.get(f"{gateway.url}{URL}", timeout=10) for _ in range(2)]
    eventually(lambda: hits(gateway) == 2)
    time.sleep(0.3)  # and no more come
    assert hits(gateway) == 2
    assert [answer.content for answer in stale] == [BODY, BODY]
    # Who waits for a service that hangs waits for 2.5 s or more; this machine may stall for less.
    assert all(answer.elapsed.total_seconds() < 2 for answer in stale)


def test_every_kind_of_poller_shares_one_answer(gateway: Gateway) -> None:
    prepare(gateway)
    for method, path, encoding in [
        ("POST", URL, "identity"),
        ("GET", URL, "gzip"),
        ("GET", f"{URL}?anything", "identity"),
        ("GET", URL, "gzip"),
        ("HEAD", URL, "gzip"),
    ]:
        answer = gateway.request(method, path, headers={"Accept-Encoding": encoding}, data=b"x=1")
        assert answer.status_code == 200
        assert answer.content == (b"" if method == "HEAD" else BODY)
        assert (answer.headers.get("Content-Encoding") == "gzip") == (encoding == "gzip")
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert "Cache-Control" not in answer.headers
        assert len(answer.headers["X-Request-ID"]) == 32
    assert hits(gateway) == 1
    (request,) = gateway.ingest[0].requests + gateway.ingest[1].requests
    assert (request[0], request[3]) == ("GET", b"")
    log = gateway.logged()
    assert request[2]["x-request-id"] == log[0]["request_id"]
    assert [line["cache"] for line in log] == ["MISS", "HIT", "HIT", "HIT", "HIT"]
