"""As nobody, as each role, with what is good no more or never was: over every route and port."""

import contextlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ingest.rules.roles import Role
from monitoring.screens import SCREENS
from tests.security import routes, sweep
from tests.security.site import Guarded
from tests.security.test_api import check
from tests.security.test_page import NAMES, mac, watched
from tests.security.visitors import NOBODY, THOROUGH

pytestmark = pytest.mark.long


def wrong(findings: list[sweep.Asked]) -> list[str]:
    return [
        f"{route.route.method} {route.route.path} as {route.visitor.name} at the {route.target}: "
        f"{route.answer.status}: {route.wrong}"
        for route in findings
        if route.wrong
    ]


def test_the_list_of_visitors_is_whole(guarded: Guarded) -> None:
    names = [visitor.name for visitor in guarded.visitors]
    assert len(set(names)) == len(names)
    assert set(names) >= THOROUGH
    assert {visitor.role for visitor in guarded.visitors} == set(Role)


def test_a_stranger_gets_nothing_at_any_port_and_changes_nothing(guarded: Guarded) -> None:
    strangers = [visitor for visitor in guarded.visitors if visitor.role is Role.NOBODY]
    everything = routes.everything(guarded.document)
    before = guarded.stored()
    findings = sweep.sweep(guarded.ports, everything, strangers)
    assert wrong(findings) == []
    assert len(findings) > len(everything) * len(strangers)
    assert guarded.stored() == before


def test_each_role_gets_its_own_and_no_more(guarded: Guarded) -> None:
    known = [visitor for visitor in guarded.visitors if visitor.role is not Role.NOBODY]
    findings = sweep.sweep(guarded.ports, routes.everything(guarded.document), known)
    assert wrong(findings) == []
    # The document tells the roles; here stands what they have to be.
    got = {
        role: {
            f"{route.route.method} {route.route.path}"
            for route in findings
            if route.visitor.role is role and route.answer.status not in (401, 403, 503)
            if route.route.role is not Role.NOBODY
        }
        for role in (Role.INGEST, Role.READ, Role.ADMIN)
    }
    assert got[Role.INGEST] == {
        "GET /newbeacondetect",
        "POST /newbeacondetect",
        "POST /owntracks",
        "POST /api/v1/detections",
    }
    assert not got[Role.READ] & got[Role.INGEST]
    assert got[Role.ADMIN] > got[Role.READ] | got[Role.INGEST]
    posts = {"POST /extractbeacon", "POST /retrieveformonitoring"}
    own = {"DELETE /api/v1/session", "PUT /api/v1/session/password"}
    assert {route for route in got[Role.READ] if not route.startswith("GET")} == posts | own


def test_no_address_has_more_methods_than_it_declares(guarded: Guarded) -> None:
    undeclared = list(routes.undeclared(routes.everything(guarded.document)))
    admin = next(visitor for visitor in guarded.visitors if visitor.name == "admin")
    assert wrong(sweep.sweep(guarded.ports, undeclared, [NOBODY, admin])) == []


def test_what_is_stored_stays_text_on_every_screen_of_an_admin(
    guarded: Guarded, browser: Browser
) -> None:
    """Labels of tokens, and what the audit tells of beacons."""
    made = []
    for number, name in enumerate(NAMES):
        place = {"level": name, "location": name}
        assert guarded.api("PUT", f"/beacons/{mac(number)}", json=place).ok
        answer = guarded.api("POST", "/tokens", json={"label": name, "role": "read"})
        made.append(answer.json()["id"])
    keeper = next(visitor for visitor in guarded.visitors if visitor.name == "keeper's cookie")
    name, _, value = keeper.headers["Cookie"].partition("=")
    with contextlib.closing(browser.new_context()) as context:
        context.add_cookies([{"name": name, "value": value, "url": guarded.url}])
        page = context.new_page()
        for screen in SCREENS:
            with watched(page):
                page.goto(f"{guarded.url}/monitoring/{screen}", wait_until="networkidle")
                expect(page).to_have_url(f"{guarded.url}/monitoring/{screen}")
    for number, token_id in enumerate(made):
        assert guarded.api("DELETE", f"/beacons/{mac(number)}").ok
        assert guarded.api("DELETE", f"/tokens/{token_id}").ok


def test_no_log_holds_what_somebody_came_with(guarded: Guarded) -> None:
    """Comes last: by then all of them have come."""
    secrets = [visitor.secret for visitor in guarded.visitors if len(visitor.secret) > 20]
    for file in (guarded.data / "log").iterdir():
        text = file.read_text(errors="replace")
        assert [secret for secret in secrets if secret in text] == [], file


def test_schemathesis_finds_nothing_as_an_admin(guarded: Guarded, tmp_path: Path) -> None:
    """What the other roles are refused, the test of each role shows."""
    token = next(visitor for visitor in guarded.visitors if visitor.name == Role.ADMIN.value)
    header = f"Authorization: {token.headers['Authorization']}"
    # What is refused there is a 503, which the sweep looks at.
    exclude = ("--exclude-path", sweep.KEPT)
    check(guarded.url, tmp_path, "--phases", "coverage", "--header", header, *exclude)
