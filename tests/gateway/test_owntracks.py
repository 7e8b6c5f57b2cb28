"""OwnTracks through the gateway: an iPhone deletes what gets a 4xx, and keeps what gets a 5xx."""

import base64
import http.client
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from common.routes import SMALL_BODY_BYTES
from ingest.access import tokens
from ingest.rules.roles import Role
from ingest.storage.access.tokens import Token
from tests.gateway.conftest import OPEN, Gateway
from tests.gateway.test_busy import drip, hold
from tests.gateway.test_limits import Client, answer, statuses
from tests.service import Service, running

PATH = "/owntracks"
SEEN: dict[str, Any] = {
    "_type": "beacon",
    "uuid": "ca271eae-5fa8-4e80-8f08-2a302a95a959",
    "major": 1,
    "minor": 7,
    "tst": 1_790_000_000,
    "rssi": -67,
}
TAKEN = (200, "[]")
POST = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode()


@pytest.fixture
def gateway(make_gateway: Callable[..., Gateway]) -> Gateway:
    gateway = make_gateway(owntracks="on").start()
    for upstream in gateway.ingest:
        upstream.answer(200, b"[]", {"Content-Type": "application/json"})
    return gateway


def post(gateway: Gateway, **more: Any) -> tuple[int, str]:
    response = gateway.request("POST", PATH, **{"json": SEEN} | more)
    assert response.headers["Content-Type"] == "application/json"
    return response.status_code, response.text


def test_it_is_like_any_unknown_address_where_it_is_off(
    make_gateway: Callable[..., Gateway],
) -> None:
    off = make_gateway().start()
    assert post(off) == (404, off.request("POST", "/nothing", json=SEEN).text)
    assert off.ingest[0].requests == off.ingest[1].requests == []


def test_a_service_gets_the_message_and_who_sends_it(gateway: Gateway) -> None:
    sent = {"X-Limit-U": "jane", "X-Limit-D": "phone", "Authorization": "Basic x", "Cookie": "a=b"}
    assert post(gateway, headers=sent, params={"token": "x"}) == TAKEN
    [(method, path, headers, body)] = [r for service in gateway.ingest for r in service.requests]
    assert (method, path, json.loads(body)) == ("POST", f"{PATH}?token=x", SEEN)
    read = {"host", "x-request-id", "x-request-start", "content-length"}
    assert set(headers) == read | {"x-limit-u", "x-limit-d", "authorization"}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "needs a valid token with the role ingest: as the password"),
        (403, "needs a valid token with the role ingest"),
        (404, "set WAYMARK_OWNTRACKS=on for all parts"),
        (400, "cannot take this request"),
    ],
)
def test_what_a_service_refuses_the_phone_keeps_and_no_circuit_opens(
    gateway: Gateway, status: int, words: str
) -> None:
    for upstream in gateway.ingest:
        upstream.answer(status, b'{"error":"no"}')
    for _ in range(20):
        response = gateway.request("POST", PATH, json=SEEN)
        assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
        assert words in response.json()["error"]
        assert "X-Circuit-State" not in response.headers
    # A 503 of the services would have been sent to both, and left them out after five.
    assert sum(len(upstream.requests) for upstream in gateway.ingest) == 20


def test_a_service_speaks_for_itself_where_it_could_not_store(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.answer(
            503, b'{"error":"nothing was stored"}', {"Content-Type": "application/json"}
        )
    assert post(gateway) == (503, '{"error":"nothing was stored"}')
    assert all(upstream.requests for upstream in gateway.ingest)
    for upstream in gateway.ingest:
        upstream.answer(500, b"{}", {"Content-Type": "application/json"})
    assert post(gateway) == (500, "{}")


def test_a_service_that_has_waited_for_the_body_too_long_gives_the_phone_no_answer(
    gateway: Gateway,
) -> None:
    for upstream in gateway.ingest:
        upstream.answer(408, b"{}")
    with pytest.raises(requests.ConnectionError):  # nginx answers no 408
        post(gateway)


@pytest.mark.parametrize("way", ["whole", "chunked"])
def test_a_message_that_is_too_large_is_answered_and_counted(gateway: Gateway, way: str) -> None:
    card = json.dumps({"_type": "card", "face": "x" * 10 * SMALL_BODY_BYTES}).encode()
    body = iter([card]) if way == "chunked" else card
    assert post(gateway, json=None, data=body) == TAKEN
    [request] = [request for service in gateway.ingest for request in service.requests]
    assert json.loads(request[3]) == {"_type": "too large"}
    assert request[2]["content-length"] == str(len(request[3]))
    for upstream in gateway.ingest:
        upstream.close()
    assert post(gateway, json=None, data=card)[0] == 503


@pytest.mark.parametrize("monitoring", ["up", "down"])
def test_the_phone_keeps_it_while_the_circuit_is_open(gateway: Gateway, monitoring: str) -> None:
    for upstream in gateway.ingest:
        upstream.close()
    if monitoring == "down":
        gateway.monitoring.close()
    assert [post(gateway) for _ in range(12)] == [(503, OPEN)] * 12


@pytest.mark.long
def test_who_sends_too_many_keeps_them(gateway: Gateway) -> None:
    with Client(gateway) as client:
        connections = [client.send(POST * 200) for _ in range(8)]
        said = Counter(s for connection in connections for s in statuses(connection, 200))
    assert said.keys() == {200, 503}
    assert said[503] > 100


@pytest.mark.long
def test_without_a_place_the_phone_keeps_it(make_gateway: Callable[..., Gateway]) -> None:
    gateway = make_gateway(client_rate="100000", owntracks="on").start()
    drip(gateway)
    with Client(gateway) as one, Client(gateway, "127.0.0.2") as other:
        # The places are those of all detections.
        hold(gateway, [one] * 448 + [other] * 64, "/newbeacondetect")
        for client, words in ((one, "too many requests"), (other, "busy")):
            response, said = answer(client.send(POST))
            assert response.status == 503
            assert words in said["error"]


def test_the_name_and_the_origin_by_which_it_is_asked_lose_nothing(gateway: Gateway) -> None:
    for sent in ({"Host": "other.example"}, {"Origin": "http://a.example"}):
        response = gateway.request("POST", PATH, json=SEEN, headers=sent)
        assert (response.status_code, response.text) == TAKEN
        assert "Access-Control-Allow-Origin" not in response.headers


def test_no_token_in_an_address_stands_in_a_log(gateway: Gateway) -> None:
    secret = tokens.generate()
    post(gateway, params={"token": secret})
    for upstream in gateway.ingest:
        upstream.close()
    post(gateway, params={"token": secret})
    connection = http.client.HTTPConnection(*gateway.address, timeout=30)
    connection.request("POST", f"{PATH}?token={secret}&x={'x' * 20_000}")
    assert connection.getresponse().status == 414
    connection.close()
    assert [line["path"] for line in gateway.logged()][:2] == [PATH] * 2
    for file in (gateway.log, gateway.errors):
        assert secret not in file.read_text()


@pytest.fixture(scope="module")
def service(mongod: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    """Return a real service that requires tokens, and a token for phones."""
    secret = tokens.generate()
    digest = tokens.digest(secret)
    token = Token(digest[:8], digest, "phones", Role.INGEST, 1)
    settings = {"WAYMARK_ACCESS": "required", "WAYMARK_OWNTRACKS": "on"}
    with MongoClient[dict[str, Any]](mongod) as client:
        for collection in ("staff", "latest", "notes", "tokens"):
            client["ICT3102"][collection].delete_many({})
        client["ICT3102"]["tokens"].insert_one(token.document())
    made = Service(mongod, tmp_path_factory.mktemp("service"), **settings)
    with running(made):
        yield made, secret


def basic(user: str, password: str) -> dict[str, str]:
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


def test_a_phone_with_a_token_is_stored_and_one_without_keeps_its_message(
    service: tuple[Service, str], make_gateway: Callable[..., Gateway]
) -> None:
    running_service, secret = service
    address = f"127.0.0.1:{running_service.port}"
    gateway = make_gateway(owntracks="on", access="required", ingest=address).start()
    good: list[dict[str, Any]] = [
        {"headers": basic("jane", secret)},
        {"params": {"u": "jane", "token": secret}},
        {"headers": {"Authorization": f"Bearer {secret}", "X-Limit-U": "jane"}},
    ]
    for number, more in enumerate(good):
        assert post(gateway, json=SEEN | {"tst": SEEN["tst"] + number}, **more) == TAKEN
    for more in ({}, {"headers": basic("jane", secret[:-1])}, {"params": {"token": "x"}}):
        status, text = post(gateway, **more)
        assert status == 503
        assert "needs a valid token" in text
        assert secret not in text
    assert post(gateway, json=None, data=b"x" * 2 * SMALL_BODY_BYTES, **good[0]) == TAKEN
    assert post(gateway, json=None, data=b"x" * 2 * SMALL_BODY_BYTES)[0] == 503
    admin = {"Authorization": f"Bearer {secret}"}
    assert gateway.request("GET", PATH, headers=admin).status_code == 405
