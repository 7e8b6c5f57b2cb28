"""`/monitoring/api` and `/monitoring/latest`: what they pass on of the gateway's answers."""

import json
import time

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from monitoring import create_app, page_data
from monitoring.config import Config
from monitoring.gateway import MAX_BODY_BYTES
from tests.upstream import Upstream

STAFF = b'{"as_of":100,"data":[{"staff_id":7}]}'


def service(upstream: Upstream, snapshot_seconds: int = 2) -> FlaskClient:
    config = Config(
        gateway_url=upstream.url, gateway_timeout_seconds=1, snapshot_seconds=snapshot_seconds
    )
    return create_app(config).test_client()


def page_read(upstream: Upstream, path: str = "staff") -> TestResponse:
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
    asked = f"/api/v1/staff?x=1&limit={page_data.MOST_PEOPLE}"
    assert [request[1] for request in upstream.requests] == [asked] * 2
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


def test_for_scripts_it_says_whether_people_are_missing(upstream: Upstream) -> None:
    upstream.answer(200, b'{"as_of":100,"complete":false,"data":[{"staff_id":"a]}b"}],"more":1}')
    client = service(upstream)
    known = client.get("/monitoring/latest").get_json()
    assert (known["complete"], known["staff"]) == (False, [{"staff_id": "a]}b"}])
    upstream.answer(200, STAFF)
    assert service(upstream).get("/monitoring/latest").get_json()["complete"] is True


def test_of_more_people_than_a_page_shows_it_says_so(upstream: Upstream) -> None:
    upstream.answer(200, STAFF, {"Link": '</api/v1/staff?limit=1&after=7>; rel="next"'})
    client = service(upstream)
    assert client.get("/monitoring/api/staff").headers["X-More"] == "true"
    assert client.get("/monitoring/latest").get_json()["complete"] is False
    upstream.answer(200, STAFF)
    client = service(upstream)
    assert "X-More" not in client.get("/monitoring/api/staff?team=a").headers
    client.get("/monitoring/api/staff?limit=9")
    assert upstream.requests[-1][1] == "/api/v1/staff?limit=9"


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"x": []}', b'{"data": null, "x": []}'])
def test_for_scripts_a_200_without_a_list_is_no_empty_building(
    upstream: Upstream, body: bytes
) -> None:
    upstream.answer(200, body)
    answer = service(upstream).get("/monitoring/latest")
    assert answer.status_code == 200
    known = answer.get_json()
    assert (known["circuit"], known["taken_at"], known["staff"]) == ("unknown", None, [])


def test_a_megabyte_is_not_parsed_for_each_request(upstream: Upstream) -> None:
    people = [{"staff_id": number, "location": "x" * 40} for number in range(13_000)]
    upstream.answer(200, json.dumps({"as_of": 100, "data": people}).encode())
    client = service(upstream, snapshot_seconds=60)
    first = client.get("/monitoring/latest")
    began = time.process_time()
    again = client.get("/monitoring/latest")
    took = time.process_time() - began
    began = time.process_time()
    assert json.loads(again.data)["staff"] == people == first.get_json()["staff"]
    assert took < (time.process_time() - began) / 2, "it costs far less than parsing it twice here"


def test_an_unchanged_answer_is_as_new_as_the_304(upstream: Upstream) -> None:
    upstream.answer(200, STAFF, {"Date": "Thu, 01 Jan 1970 00:01:40 GMT", "ETag": '"v1"'})
    client = service(upstream, snapshot_seconds=0)
    client.get("/monitoring/api/staff")
    upstream.answer(304, b"", {"Date": "Thu, 01 Jan 1970 00:03:20 GMT"})
    answer = client.get("/monitoring/api/staff")
    assert (answer.data, answer.headers["X-Taken-At"]) == (STAFF, "200")


def test_what_the_api_refuses_is_passed_on(upstream: Upstream) -> None:
    upstream.answer(404, b'{"code":"not_found"}')
    answer = page_read(upstream, "staff/nobody/detections")
    assert (answer.status_code, answer.get_json()) == (404, {"code": "not_found"})


@pytest.mark.parametrize("path", ["changes", "staff/a%2Fb/detections", "../readyz", "beacons/x"])
def test_no_other_path_is_passed_on(upstream: Upstream, path: str) -> None:
    assert page_read(upstream, path).status_code == 404
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("status", "headers", "body", "circuit"),
    [
        (503, {"X-Circuit-State": "open"}, b"{}", "open"),
        (503, {"X-Circuit-State": "busy"}, b"{}", "busy"),
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
    assert known["complete"] is False


def test_a_failure_keeps_the_last_answer_and_its_time(upstream: Upstream) -> None:
    upstream.answer(200, STAFF, {"Date": "Thu, 01 Jan 1970 00:01:40 GMT"})
    client = service(upstream, snapshot_seconds=0)
    client.get("/monitoring/api/staff")
    upstream.close()
    answer = client.get("/monitoring/api/staff")
    assert json.loads(answer.data) == json.loads(STAFF)
    assert (answer.headers["X-Circuit-State"], answer.headers["X-Taken-At"]) == ("unknown", "100")


def test_an_answer_too_large_to_cache_is_none(upstream: Upstream) -> None:
    upstream.answer(200, b"[" + b"1," * MAX_BODY_BYTES + b"1]")
    answer = page_read(upstream)
    assert (answer.get_json(), answer.headers["X-Circuit-State"]) == (None, "unknown")


def test_no_gateway_at_all(client: FlaskClient) -> None:
    assert client.get("/monitoring/latest").get_json()["circuit"] == "unknown"
    circuits = client.get("/monitoring/api/system").get_json()["circuits"]
    assert {name: circuit["state"] for name, circuit in circuits.items()} == {
        "ingest": "unknown",
        "reads": "unknown",
    }
    assert client.get("/healthz").status_code == 200


def test_the_log_of_a_fault_names_nobody(
    client: FlaskClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str, __: str) -> None:
        raise ValueError

    monkeypatch.setattr(page_data, "_read", fail)
    path = "/monitoring/api/people/Zaphod-4711?staff_id=Zaphod-4711"
    answer = client.get(path, headers={"X-Request-ID": "0123"})
    assert (answer.status_code, answer.json) == (500, {"error": "internal server error"})
    [record] = caplog.records
    assert record.getMessage() == "request 0123"
    assert record.exc_info
    assert "Zaphod" not in caplog.text
