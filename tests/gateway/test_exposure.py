"""Nobody lets other machines in without tokens; who lets them in with less is told so."""

from collections.abc import Callable

import pytest

from gateway.render import Config, ConfigError, check_exposure
from scripts.processes.process import NotHealthyError
from tests.gateway.conftest import Gateway

TLS = {"tls_certificate": "c", "tls_key": "k"}
CLOSED = {"access": "required", "admin_token_sha256": "0" * 64}


@pytest.mark.parametrize(
    ("settings", "beyond"),
    [
        ({}, None),
        (TLS, None),
        ({"listen": "127.0.0.1:80 127.8.9.1:8080 [::1]:8080 localhost:1 unix:/run/w.sock"}, None),
        ({"listen": "0.0.0.0:8080"}, "0.0.0.0"),
        ({"listen": "127.0.0.1:8080 [::]:8080"}, "[::]"),
        ({"listen": "8080"}, "*"),
        ({"listen": "*:8080 10.0.0.1:80"}, "*, 10.0.0.1"),
        ({"listen": "127.0.0.1.example.com:80"}, "127.0.0.1.example.com"),
        (TLS | {"tls_listen": "10.0.0.1:443"}, "10.0.0.1"),
        (TLS | {"internal_listen": "10.0.0.2:81"}, "10.0.0.2"),
        ({"tls_listen": "10.0.0.1:443"}, None),  # without a certificate it does not listen there
        # In a container only who published the port knows who reaches it.
        ({"listen": "0.0.0.0:8080", "published": "127.0.0.1"}, None),
        ({"listen": "0.0.0.0:8080", "published": "::1"}, None),
        ({"listen": "0.0.0.0:8080", "published": "0.0.0.0"}, "0.0.0.0"),
        ({"trusted_proxies": "127.0.0.1"}, "through 127.0.0.1"),
        (
            {"listen": "10.0.0.1:80", "trusted_proxies": "10.1.2.3 ::1"},
            "10.0.0.1, through 10.1.2.3, ::1",
        ),
        ({"listen": "0.0.0.0:8080", "published": "192.168.1.5"}, "192.168.1.5"),
    ],
)
def test_the_addresses_that_are_open_to_others_are_named(
    settings: dict[str, str], beyond: str | None
) -> None:
    assert check_exposure(Config(**settings | CLOSED)) == []
    if beyond is None:
        assert check_exposure(Config(**settings)) == []
        return
    for lacking in ({}, CLOSED | {"access": "open"}, CLOSED | {"admin_token_sha256": ""}):
        with pytest.raises(ConfigError) as refused:
            check_exposure(Config(**settings | lacking))
        way = beyond if beyond.startswith("through") else f"on {beyond}"
        assert f"({way})" in str(refused.value)
        assert str(refused.value).endswith(": run ./scripts/configure")
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "less", [{"legacy_access": "open"}, {"legacy_parameter": "allowed"}], ids=str
)
def test_what_is_less_than_that_is_told(less: dict[str, str]) -> None:
    public = Config(listen="0.0.0.0:8080", **CLOSED)
    [warning] = check_exposure(public._replace(**less))
    [(name, value)] = less.items()
    assert f"WAYMARK_{name.upper()}={value}" in warning
    assert check_exposure(Config(**less)) == []


def test_the_gateway_does_not_start_so(make_gateway: Callable[..., Gateway]) -> None:
    with pytest.raises(NotHealthyError, match=r"run \./scripts/configure"):
        make_gateway(published="0.0.0.0").start()
