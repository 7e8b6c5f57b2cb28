"""Honest when blind: the last snapshot stays, grey, with its time and a banner."""

import json
import re
import time
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import Office, Opener

pytestmark = pytest.mark.long

STAFF = "**/monitoring/api/staff"


def answered(page: Page, data: Any, circuit: str = "closed", taken: float | None = None) -> None:
    """Put an answer of our own making behind the page: states that a stack is rarely in."""
    headers = {"X-Circuit-State": circuit, "Content-Type": "application/json"}
    if taken is not None:
        headers["X-Taken-At"] = f"{taken:.0f}"
    page.unroute(STAFF)
    page.route(STAFF, lambda route: route.fulfill(headers=headers, body=json.dumps(data)))


def test_nobody_ever_is_not_the_same_as_unknown(opened: Opener, office: Office) -> None:
    now = time.time()
    page = opened(prepare=lambda page: answered(page, {"as_of": now, "data": []}, taken=now))
    expect(page.locator("#empty")).to_contain_text("No detections yet")
    expect(page.locator("#empty")).to_contain_text(f"curl '{office.url}/newbeacondetect?")
    expect(page.locator("#banner")).to_be_hidden()


def test_blind_from_the_start_is_never_an_empty_building(opened: Opener) -> None:
    page = opened(prepare=lambda page: answered(page, None, "unknown"))
    expect(page.locator("#banner")).to_contain_text("cannot be told now")
    expect(page.locator("#banner")).to_contain_text("tried again every 5 seconds")
    expect(page.locator("#summary")).to_have_text("No positions to show yet")
    expect(page.locator("#empty")).to_be_hidden()
    expect(page.locator("#section")).to_be_hidden()
    expect(page.locator("#nobody")).to_have_text("Positions cannot be told now.")
    expect(page.locator("#people .skeleton")).to_have_count(0)
    counts = page.locator("#levels .count").all_text_contents()
    assert set(counts) == {"?"}, "0 would say that nobody is there"


def test_loading_shows_where_things_will_be(opened: Opener) -> None:
    held: list[Route] = []
    page = opened(prepare=lambda page: page.route(STAFF, lambda route: held.append(route)))
    expect(page.locator("#skeleton")).to_be_visible()
    expect(page.locator("#people .skeleton")).to_have_count(7)
    expect(page.locator("#summary")).to_have_text("Loading…")
    for route in held:
        route.continue_()
    expect(page.locator("#skeleton")).to_be_hidden()
    expect(page.locator("#people .skeleton")).to_have_count(0)


def test_a_part_that_does_not_arrive_is_asked_for_again(opened: Opener) -> None:
    page = opened(prepare=lambda page: page.route("**/rules/words.js", lambda route: route.abort()))
    expect(page.locator("#banner")).to_contain_text("did not arrive")
    page.unroute("**/rules/words.js")
    expect(page.locator("#people [data-staff='7']")).to_be_visible()
    expect(page.locator("#banner")).to_be_hidden()


def test_a_lost_network_is_said_on_every_screen(opened: Opener) -> None:
    for path in ("", "/coverage", "/directory", "/system"):
        page = opened(path)
        expect(page.locator("#updated")).to_contain_text("Updated")
        page.context.set_offline(True)
        expect(page.locator("#banner")).to_contain_text(
            "cannot reach Waymark since", timeout=45_000
        )
        expect(page.locator("#updated")).to_contain_text("As of")
        # All of it is grey, and says of when it is; System says nothing of now.
        for part in page.locator("main > :not(dialog)").all():
            expect(part).to_have_css("filter", "grayscale(1)")
        then = re.compile(r"^At \d\d:\d\d:\d\d: $")
        expect(page.locator("#summary")).to_have_attribute("data-then", then)
        if path == "/system":
            expect(page.locator("#summary")).to_have_text("Waymark said “Everything is healthy”")
            states = page.locator("#board .big strong, #services .state").all_text_contents()
            assert states == ["Was closed"] * 2 + ["Was healthy"] * 4
        page.context.set_offline(False)
        expect(page.locator("#banner")).to_be_hidden(timeout=45_000)


def test_the_circuit_opens_and_closes_again(opened: Opener, office: Office) -> None:
    live, system = opened("?level=4"), opened("/system")
    expect(live.locator("#people [data-staff='7']")).to_be_visible()
    circuits = [system.locator("#ingest-circuit"), system.locator("#reads-circuit")]
    words = system.locator("#board .big strong")
    for circuit in circuits:
        expect(circuit).to_contain_text("Closed: ")
    expect(words).to_have_text(["Detections come in", "Everything can be read"])
    expect(system.locator("#services tbody tr")).to_have_count(4)
    office.supervisorctl("stop", "ingest-2")
    try:
        for circuit in circuits:
            expect(circuit).to_contain_text("Half-open: ", timeout=60_000)
        gone = system.locator("#services tr", has_text="ingest-2")
        expect(gone).to_contain_text(re.compile(r"silent since \d\d:\d\d:\d\d"))
        expect(live.locator("#banner")).to_be_hidden()
        office.supervisorctl("stop", "ingest-1")
        for circuit in circuits:
            expect(circuit).to_contain_text("Open: ", timeout=60_000)
        expect(words).to_have_text(["No detections come in", "Nothing can be read"])
        expect(system.locator("#ingest-since")).to_contain_text(re.compile(r"since \d\d:\d\d:\d\d"))
        one_sentence = re.compile(r"^No ingest service answers since \d\d:\d\d:\d\d\. Phones have")
        expect(system.locator("#summary")).to_have_text(one_sentence, timeout=60_000)
        banner = live.locator("#banner")
        expect(banner).to_have_text(one_sentence, timeout=60_000)
        expect(banner).to_contain_text(re.compile(r"known at \d\d:\d\d:\d\d, .* ago"))
        # The last snapshot stays: people, plan and list, in grey.
        expect(live.locator("#people [data-staff='7']")).to_be_visible()
        expect(live.locator("#plan .marker")).not_to_have_count(0)
        expect(live.locator("main > .split")).to_have_css("filter", "grayscale(1)")
        expect(live.locator("#empty")).to_be_hidden()
        # Nobody is "now" any more: it tells at what time, and stays legible.
        heard = live.locator("#people [data-staff='7'] .heard")
        expect(heard).to_have_text(re.compile(r"at \d\d:\d\d:\d\d"))
        assert Axe().run(live).response["violations"] == []
    finally:
        office.supervisorctl("start", "ingest-1", "ingest-2")
    expect(live.locator("#banner")).to_be_hidden(timeout=90_000)
    expect(live.locator("main > .split")).to_have_css("filter", "none")
    for circuit in circuits:
        expect(circuit).to_contain_text("Closed: ", timeout=90_000)


def incomplete(page: Page) -> None:
    """Take people out of all answers, as a part of the database that does not answer does."""
    now = time.time()
    answered(page, {"as_of": now, "complete": False, "data": []}, taken=now)
    spot = {"level": "4", "x": 0, "y": 0, "macs": [], "last_visited": None, "location": "Lobby"}
    coverage = json.dumps({"complete": False, "data": [spot]})
    headers = {"X-Circuit-State": "closed", "Content-Type": "application/json"}
    page.route("**/api/coverage", lambda route: route.fulfill(headers=headers, body=coverage))


def test_people_who_are_missing_are_not_nobody(opened: Opener) -> None:
    live = opened(prepare=incomplete)
    expect(live.locator("#missing")).to_contain_text("Some people may be missing")
    expect(live.locator("#empty")).to_be_hidden()
    expect(live.locator("#summary")).to_have_text("Who was heard cannot be told now")
    expect(live.locator("#levels .count").first).to_have_text("0+")
    expect(live.locator("#people ~ #nobody")).to_contain_text("cannot be told now")
    coverage = opened("/coverage", prepare=incomplete)
    expect(coverage.locator("#missing")).to_be_visible()
    expect(coverage.locator("#summary")).to_contain_text("At most 1 of 1")
    expect(coverage.locator("#gaps")).to_contain_text("Nearest: cannot be told now")
    assert "obody was heard" not in live.inner_text("body") + coverage.inner_text("body")
    for path in ("/replay", "/directory"):
        expect(opened(path, prepare=incomplete).locator("#missing")).to_be_visible()
    assert Axe().run(live).response["violations"] == []


def test_busy_is_not_an_open_circuit(opened: Opener) -> None:
    live = opened()
    expect(live.locator("#people [data-staff='7']")).to_be_visible()
    expect(live.locator("#missing")).to_be_hidden()
    live.unroute(STAFF)
    headers = {"X-Circuit-State": "busy", "Retry-After": "1"}
    refused = json.dumps({"error": "busy: all places are taken"})
    live.route(STAFF, lambda route: route.fulfill(status=503, headers=headers, body=refused))
    expect(live.locator("#banner")).to_contain_text("Waymark is busy since")
    expect(live.locator("#banner")).not_to_contain_text("circuit")
    expect(live.locator("#people [data-staff='7']")).to_be_visible()
    live.unroute(STAFF)
    expect(live.locator("#banner")).to_be_hidden()
