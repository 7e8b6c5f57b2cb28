"""What the service keeps of the gateway's answers, and what it makes of failures."""

import json
import threading
import time
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from monitoring import create_app
from monitoring.config import Config
from monitoring.keeper import MAX_ANSWER_BYTES, MAX_KEPT_ANSWERS, Answer, GatewayUnavailable, Keeper
from tests.upstream import Upstream

STAFF = b'{"as_of":100,"data":[{"staff_id":7}]}'


def keeper(*answers: Answer | Exception) -> tuple[Keeper, list[Answer | None], list[float]]:
    """Return a keeper that is given these answers, what it was asked with, and its clock."""
    left, asked, now = list(answers), list[Answer | None](), [100.0]

    def get(_: str, known: Answer | None) -> Answer:
        asked.append(known)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Keeper(get, lambda: now[0]), asked, now


def test_one_read_serves_many_pages_and_a_failure_keeps_the_last() -> None:
    first, second = Answer(200, b"1", "a", 99.5), Answer(200, b"2", "b", 129.5)
    kept, asked, now = keeper(first, GatewayUnavailable("open", "503"), second)
    assert [kept.read("/staff", 2).answer for _ in range(10)] == [first] * 10
    assert asked == [None]
    now[0] = 110.0
    blind = kept.read("/staff", 2)
    assert (blind.circuit, blind.answer) == ("open", first)
    now[0] = 130.0
    assert kept.read("/staff", 2)[:2] == ("closed", second)
    assert asked == [None, first, first]  # each read is conditional


def test_addresses_are_kept_apart_and_not_for_ever() -> None:
    answers = [Answer(200, b"%d" % number, "", 0.0) for number in range(MAX_KEPT_ANSWERS + 2)]
    kept, asked, _ = keeper(*answers, answers[0])
    for number in range(MAX_KEPT_ANSWERS + 2):
        assert kept.read(f"/{number}", 60).answer == answers[number]
    assert kept.read(f"/{MAX_KEPT_ANSWERS + 1}", 60).answer == answers[-1]
    assert len(asked) == MAX_KEPT_ANSWERS + 2
    assert kept.read("/0", 60).answer == answers[0]  # was dropped, so it is read again
    assert asked[-1] is None


def test_large_answers_do_not_pile_up() -> None:
    large = [Answer(200, b"x" * 1_000_000, "", 0.0) for _ in range(5)]
    kept, asked, _ = keeper(*large, large[0])
    for number in range(5):
        kept.read(f"/{number}", 60)
    kept.read("/0", 60)
    assert len(asked) == 6


def test_a_hanging_gateway_does_not_hold_every_page() -> None:
    release = threading.Event()

    def get(*_: Any) -> Answer:
        release.wait(10)
        return Answer(200, b"[]", "", 0.0)

    kept = Keeper(get)
    first = threading.Thread(target=kept.read, args=("/staff", 2))
    first.start()
    began = time.monotonic()
    assert kept.read("/staff", 2).circuit == "unknown"
    assert time.monotonic() - began < 5
    release.set()
    first.join()


def service(upstream: Upstream, snapshot_seconds: int = 2) -> FlaskClient:
    config = Config(
        gateway_url=upstream.url, gateway_timeout_seconds=1, snapshot_seconds=snapshot_seconds
    )
    return create_app(config).test_client()


def passed_on(upstream: Upstream, path: str = "staff") -> TestResponse:
    return service(upstream).get(f"/monitoring/api/{path}")


def test_it_passes_on_what_the_api_says_with_its_time(upstream: Upstream) -> None:
    upstream.answer(200, STAFF, {"Date": "Thu, 01 Jan 1970 00:01:40 GMT", "ETag": '"v1"'})
    client = service(upstream, snapshot_seconds=0)
    answer = client.get("/monitoring/api/staff?x=1")
    assert (answer.status_code, answer.data) == (200, STAFF)
    assert answer.headers["X-Taken-At"] == "100"
    assert answer.headers["X-Circuit-State"] == "closed"
    again = client.get(
        "/monitoring/api/staff?x=1", headers={"If-None-Match": answer.headers["ETag"]}
    )
    assert (again.status_code, again.data) == (304, b"")
    assert [request[1] for request in upstream.requests] == ["/api/v1/staff?x=1"] * 2
    assert upstream.requests[1][2]["if-none-match"] == '"v1"'
    latest = client.get("/monitoring/latest")
    assert latest.headers["Cache-Control"] == "no-store"
    known = latest.get_json()
    assert (known["circuit"], known["taken_at"], known["staff"]) == (
        "closed",
        100,
        [{"staff_id": 7}],
    )
    assert abs(known["now"] - time.time()) < 5


def test_an_unchanged_answer_is_as_new_as_the_304(upstream: Upstream) -> None:
    upstream.answer(200, STAFF, {"Date": "Thu, 01 Jan 1970 00:01:40 GMT", "ETag": '"v1"'})
    client = service(upstream, snapshot_seconds=0)
    client.get("/monitoring/api/staff")
    upstream.answer(304, b"", {"Date": "Thu, 01 Jan 1970 00:03:20 GMT"})
    answer = client.get("/monitoring/api/staff")
    assert (answer.data, answer.headers["X-Taken-At"]) == (STAFF, "200")


def test_what_the_api_refuses_is_passed_on(upstream: Upstream) -> None:
    upstream.answer(404, b'{"code":"not_found"}')
    answer = passed_on(upstream, "staff/nobody/detections")
    assert (answer.status_code, answer.get_json()) == (404, {"code": "not_found"})


@pytest.mark.parametrize("path", ["changes", "staff/a%2Fb/detections", "../readyz", "beacons/x"])
def test_nothing_else_is_passed_on(upstream: Upstream, path: str) -> None:
    assert passed_on(upstream, path).status_code == 404
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("status", "headers", "body", "circuit"),
    [
        (503, {"X-Circuit-State": "open"}, b"{}", "open"),
        (503, {}, b"{}", "unknown"),
        (500, {}, b"oops", "unknown"),
        (429, {}, b"{}", "unknown"),
        (200, {}, b"not json", "unknown"),
        (404, {}, b"<html>", "unknown"),
    ],
)
def test_it_admits_what_it_cannot_tell(
    upstream: Upstream, status: int, headers: dict[str, str], body: bytes, circuit: str
) -> None:
    upstream.answer(status, body, headers)
    client = service(upstream)
    answer = client.get("/monitoring/api/staff")
    assert (answer.status_code, answer.get_json()) == (200, None)
    assert answer.headers["X-Circuit-State"] == circuit
    assert "X-Taken-At" not in answer.headers
    known = client.get("/monitoring/latest").get_json()
    assert (known["circuit"], known["taken_at"], known["staff"]) == (circuit, None, [])


def test_a_failure_keeps_the_last_answer_and_its_time(upstream: Upstream) -> None:
    upstream.answer(200, STAFF, {"Date": "Thu, 01 Jan 1970 00:01:40 GMT"})
    client = service(upstream, snapshot_seconds=0)
    client.get("/monitoring/api/staff")
    upstream.close()
    answer = client.get("/monitoring/api/staff")
    assert json.loads(answer.data) == json.loads(STAFF)
    assert (answer.headers["X-Circuit-State"], answer.headers["X-Taken-At"]) == ("unknown", "100")


def test_an_answer_too_large_to_keep_is_none(upstream: Upstream) -> None:
    upstream.answer(200, b"[" + b"1," * MAX_ANSWER_BYTES + b"1]")
    answer = passed_on(upstream)
    assert (answer.get_json(), answer.headers["X-Circuit-State"]) == (None, "unknown")


def test_no_gateway_at_all(client: FlaskClient) -> None:
    assert client.get("/monitoring/latest").get_json()["circuit"] == "unknown"
    assert client.get("/monitoring/api/system").get_json()["circuit"]["state"] == "unknown"
    assert client.get("/healthz").status_code == 200
