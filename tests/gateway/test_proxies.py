"""What a proxy in front of the gateway may say of its clients, and what anybody else may not."""

import json
from collections.abc import Callable

import pytest

from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway

CLOSED = {"access": "required", "admin_token_sha256": "0" * 64}
Maker = Callable[..., Gateway]
SAID = {"X-Forwarded-For": "203.0.113.9, 198.51.100.7", "X-Forwarded-Proto": "https"}


def passed_on(gateway: Gateway) -> tuple[str, str]:
    """Return what an ingest service is told of who asks, and of TLS."""
    for upstream in gateway.ingest:
        upstream.answer(200, b"{}")
    gateway.request("GET", "/api/v1/staff", headers=SAID)
    [(_, _, headers, _)] = [request for upstream in gateway.ingest for request in upstream.requests]
    return headers["x-forwarded-for"], headers["x-forwarded-proto"]


@pytest.mark.parametrize("proxies", ["127.0.0.1", "10.0.0.0/8 127.0.0.0/8 ::1"])
def test_who_is_trusted_tells_the_client(make_gateway: Maker, proxies: str) -> None:
    gateway = make_gateway(**CLOSED, trusted_proxies=proxies).start()
    assert passed_on(gateway) == ("198.51.100.7", "https")
    logged = eventually(
        lambda: [line for line in gateway.log.read_text().splitlines() if "staff" in line]
    )
    assert [json.loads(line)["client"] for line in logged] == ["198.51.100.7"]
    # What only this machine may see: the proxy's clients are elsewhere.
    assert gateway.request("GET", "/nginx_status", headers=SAID).status_code == 403
    assert gateway.request("GET", "/nginx_status").status_code == 200


def test_several_proxies_in_a_row_are_passed_over(make_gateway: Maker) -> None:
    gateway = make_gateway(**CLOSED, trusted_proxies="127.0.0.1 198.51.100.0/24").start()
    assert passed_on(gateway)[0] == "203.0.113.9"


@pytest.mark.parametrize("proxies", ["", "10.0.0.0/8"])
def test_nobody_else_does(make_gateway: Maker, proxies: str) -> None:
    gateway = make_gateway(**CLOSED, trusted_proxies=proxies).start()
    assert passed_on(gateway) == ("127.0.0.1", "http")


@pytest.mark.long
def test_each_client_of_a_proxy_has_limits_of_its_own(make_gateway: Maker) -> None:
    gateway = make_gateway(**CLOSED, trusted_proxies="127.0.0.1", client_rate="1").start()
    for upstream in gateway.ingest:
        upstream.answer(200, b"{}")

    def refused(client: str) -> bool:
        headers = {"X-Forwarded-For": client}
        return gateway.request("GET", "/api/v1/staff", headers=headers).status_code == 429

    assert any(refused("203.0.113.9") for _ in range(1000))
    assert not refused("203.0.113.10")
