"""Who lets other machines in is told what that means, at each start."""

from collections.abc import Callable

import pytest

from gateway.render import Config, exposure
from tests.gateway.conftest import Gateway

TLS = {"tls_certificate": "c", "tls_key": "k"}


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
        ({"listen": "0.0.0.0:8080", "published": "192.168.1.5"}, "192.168.1.5"),
    ],
)
def test_the_addresses_that_are_open_to_others_are_named(
    settings: dict[str, str], beyond: str | None
) -> None:
    warning = exposure(Config(**settings))
    assert (warning is None) == (beyond is None)
    if warning:
        assert warning.startswith(f"WARNING: open to other machines (on {beyond}), ")
        assert "\n" not in warning


@pytest.mark.parametrize("published", ["127.0.0.1", "0.0.0.0"])
def test_the_gateway_says_it_in_its_log(
    make_gateway: Callable[..., Gateway], published: str
) -> None:
    gateway = make_gateway(published=published).start()
    said = gateway.errors.read_text().count("gateway: WARNING: open to other machines (on 0.0.0.0)")
    assert said == (published == "0.0.0.0")
