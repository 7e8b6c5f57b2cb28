"""Whom the settings let in, where people are led, and which addresses nobody listens at."""

import pytest

from ingest.rules.openid import MAX_AGE_SECONDS, is_private, page_address, role_of
from ingest.rules.roles import Role


def test_a_log_in_at_the_provider_may_take_ten_minutes() -> None:
    assert MAX_AGE_SECONDS == 600


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("anna@a.example", Role.ADMIN),
        ("ben@b.example", Role.READ),
        ("ben@c@b.example", Role.READ),
        ("both", Role.ADMIN),
        ("guest", Role.READ),
        ("ben@xb.example", None),
        ("ben@b.example@c.example", None),
        ("*", None),
        ("b.example", None),
        ("", None),
    ],
)
def test_what_the_settings_say_of_a_name(name: str, role: Role | None) -> None:
    assert role_of(name, ["anna@a.example", "both"], ["guest", "both", "*@b.example"]) is role


def test_a_name_without_a_domain_has_none() -> None:
    assert role_of("anna", [], ["*@", "*@anna"]) is None


@pytest.mark.parametrize(
    ("asked", "led"),
    [
        *((page, True) for page in ("/monitoring", "/monitoring?a=b", "/monitoring/replay?x=%20")),
        ("/monitoring/" + "x" * 988, True),
        ("/monitoring/" + "x" * 989, False),
        *((page, False) for page in ("", "/", "//evil.example", "/monitoringx", "/monitoring/ x")),
        *((page, False) for page in ("http://evil.example/monitoring", "/monitoring/\n", "/docs")),
    ],
)
def test_people_are_led_to_the_page_alone(asked: str, *, led: bool) -> None:
    assert page_address(asked) == (asked if led else "/monitoring")


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://login.example/x", True),
        ("https://login.example:8443", True),
        ("http://localhost:9000", True),
        ("http://127.0.0.9", True),
        ("http://[::1]:9000", True),
        ("http://login.example", False),
        ("http://10.0.0.1", False),
        ("http://localhost.example", False),
        ("https://", False),
        ("https://x:70000", False),
        ("https://x:port", False),
        ("https://[::1", False),
        ("http://", False),
        ("ftp://localhost", False),
        ("wss://login.example", False),
        ("ftp://login.example", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_an_address_that_nobody_can_listen_to(url: str, *, private: bool) -> None:
    assert is_private(url) is private
