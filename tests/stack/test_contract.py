"""The legacy contract through the gateway of a running stack."""

import json
import socket
import time
from typing import Any

import pytest

from scripts.processes.waiting import eventually
from tests.stack.conftest import Stack

GOOD = {"user_address": "90", "beacon_address": "C2A628384B08", "rssi": "-20"}
RANGE = {"staff_id": "90", "start_time": "0", "end_time": "4102444800"}


def test_the_readmes_first_detection(stack: Stack) -> None:
    url = "/newbeacondetect?user_address=0&beacon_address=C2A628384B08&rssi=-20"
    before = int(time.time())
    answer = stack.get(url)
    assert (answer.status_code, answer.text) == (200, "New Beacon Detection Added")
    newest = stack.history(0)[0]
    assert newest["level"] == "unknown"
    assert newest["location"] == "Team 6 Beacon 1"
    assert newest["timestamp"] >= before
    expected = {"staff_id": 0, "rssi": -20, "mac": "C2A628384B08"} | newest
    # Pollers share an answer that is a few seconds old.
    url = "/retrieveformonitoring"
    eventually(lambda: expected in stack.get(url).json()["location"], 15)


@pytest.mark.parametrize(
    ("path", "good", "bad", "named"),
    [
        ("/newbeacondetect", GOOD, {"user_address": None}, "user_address"),
        ("/newbeacondetect", GOOD, {"beacon_address": {"$gt": ""}}, "beacon_address"),
        ("/newbeacondetect", GOOD, {"timestamp": "100"}, "timestamp"),  # a device without a clock
        ("/newbeacondetect", GOOD, {"event_id": "a b"}, "event_id"),
        ("/extractbeacon", RANGE, {"start_time": "2", "end_time": "1"}, "start_time"),
        ("/extractbeacon", RANGE, {"end_time": "1e300"}, "end_time"),
    ],
)
def test_bad_input_is_named(
    stack: Stack, path: str, good: dict[str, str], bad: dict[str, Any], named: str
) -> None:
    values = {name: value for name, value in (good | bad).items() if value is not None}
    dresses: list[dict[str, Any]] = [{"json": values}]
    if not any(isinstance(value, dict) for value in values.values()):
        dresses += [{"data": values}, {"params": values}]
    for dress in dresses:
        for method in ("GET", "POST") if "params" in dress else ("POST",):
            answer = stack.session.request(method, stack.url + path, timeout=30, **dress)
            assert (answer.status_code, answer.json()["parameter"]) == (400, named)
            assert "Traceback" not in answer.text
    assert stack.history(90) == []


def test_a_long_address_line_is_not_an_error_of_ours(stack: Stack) -> None:
    longest = "x" * 16_000
    assert stack.get(f"/newbeacondetect?user_address={longest}").status_code == 400
    assert stack.get(f"/newbeacondetect?user_address={longest * 2}").status_code == 414


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-Ssl": "on"},
        {"X-Forwarded-Protocol": "ssl", "X-Forwarded-Proto": "https"},
        {f"X-{number}": "x" for number in range(300)},
        {"X-Long": "x" * 8180},
    ],
    ids=["ssl", "protocol", "many", "long"],
)
@pytest.mark.parametrize("path", ["/newbeacondetect", "/monitoring"])
def test_headers_that_proxies_and_phones_add_do_no_harm(
    stack: Stack, path: str, headers: dict[str, str]
) -> None:
    values = GOOD | {"user_address": "headers"}
    url = stack.url + path
    answer = stack.session.get(url, params=values, headers=headers, timeout=30)
    assert answer.status_code == 200, answer.text


def test_vary_is_said_once(stack: Stack) -> None:
    for path in ("/retrieveformonitoring", "/monitoring", "/monitoring/static/screens/live.js"):
        for encoding in ("gzip", "identity"):
            headers = {"Accept-Encoding": encoding}
            answer = stack.session.get(f"{stack.url}{path}", headers=headers, timeout=30)
            assert answer.headers["Vary"] == "Accept-Encoding", path


def test_an_answer_leaves_in_one_piece(stack: Stack) -> None:
    # Else a service that is killed at the wrong moment leaves a client half an answer.
    for port in stack.environment["WAYMARK_INGEST_PORTS"].split():
        for path in ("/healthz", "/newbeacondetect"):
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as connection:
                    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                    piece = connection.recv(65536)
                assert piece.startswith(b"HTTP/1.1 ")
                assert piece.endswith(b"}\n"), piece


def test_the_api_through_the_gateway(stack: Stack) -> None:
    item = {"mac": "C2:A6:28:38:4B:08", "rssi": -60, "timestamp": "2026-01-01T00:00:00.000+08:00"}
    cursor = stack.get("/api/v1/changes").text.splitlines()[-1]
    items = [item | {"staff_id": "batch", "event_id": f"{n:036}"} for n in range(1000)]
    url = f"{stack.url}/api/v1/detections"
    for status in ("stored", "duplicate"):
        answer = stack.session.post(url, json={"detections": items}, timeout=30)
        assert answer.json()["counts"][status] == 1000
    assert (
        stack.session.post(url, json={"detections": [*items, item]}, timeout=30).status_code == 413
    )
    seen = 0

    def all_seen() -> bool:
        nonlocal cursor, seen
        after = json.loads(cursor)["next"]
        answer = stack.get("/api/v1/changes", after=after, wait=10)
        if answer.status_code != 503:  # else a busy machine: the same cursor goes on
            assert answer.status_code == 200, answer.text
            *lines, cursor = answer.text.splitlines()
            seen += sum(json.loads(line)["staff_id"] == "batch" for line in lines)
        return seen >= 1000

    eventually(all_seen, 60)
    assert seen == 1000
    page = stack.get("/api/v1/staff/batch/detections", limit=1000).json()
    assert (len(page["data"]), page["truncated"]) == (1000, False)
    for path in ("/docs", "/api/v1/openapi.json", "/api/v1/staff", "/api/v1/coverage"):
        answer = stack.get(path)
        assert answer.status_code == 200
        assert answer.headers["X-Request-ID"]


def test_a_history_comes_compressed_and_not_again_when_nothing_changed(stack: Stack) -> None:
    for number in range(40):
        heard = {"timestamp": 1700000000 + number, "event_id": f"unchanged-{number}"}
        # On a busy machine some wait in a spool, and come into the history while it is compared.
        eventually(lambda: stack.detect("unchanged", **heard).status_code == 200)  # noqa: B023
    wanted = {"staff_id": "unchanged", "start_time": "0", "end_time": "4102444800"}
    first = stack.get("/extractbeacon", **wanted)
    assert (first.headers["Content-Encoding"], len(first.json()["location"])) == ("gzip", 40)
    url = f"{stack.url}/extractbeacon"
    plain = stack.session.get(
        url, params=wanted, headers={"Accept-Encoding": "identity"}, timeout=30
    )
    assert "Content-Encoding" not in plain.headers
    assert plain.content == first.content
    held = {"If-None-Match": first.headers["ETag"]}
    again = [stack.session.get(url, params=wanted, headers=held, timeout=30) for _ in range(4)]
    assert {answer.status_code for answer in again} == {304}  # of both services
    for answer in (first, plain, *again):
        assert answer.headers["Vary"] == "Accept-Encoding"  # twice would read "..., ..."
    stack.detect("unchanged")
    assert stack.session.get(url, params=wanted, headers=held, timeout=30).status_code == 200
