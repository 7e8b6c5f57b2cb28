"""The monitoring page in a real browser: in front of a running stack, and in each of its states."""

import json
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from tests.system.conftest import Stack, kill_tree

CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    assert program, "./scripts/test installs chromium"
    expect.set_options(timeout=20_000)  # ms; a busy machine draws slowly
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []
    context.close()


def show(page: Page, stack: Stack, snapshot: dict[str, Any]) -> None:
    """Open the page with a snapshot of our own making behind it."""

    def answer(route: Route) -> None:
        route.fulfill(content_type="application/json", body=json.dumps(snapshot))

    page.route("**/monitoring/latest", answer)
    page.goto(f"{stack.url}/monitoring")


def snapshot(circuit: str = "closed", *ages: int, taken: int = 0) -> dict[str, Any]:
    now = time.time()
    staff = [
        {
            "staff_id": number,
            "level": "4",
            "location": "Lobby B",
            "timestamp": int(now) - age,
            "rssi": -60,
            "mac": "C2A628040008",
        }
        for number, age in enumerate(ages, start=1)
    ]
    return {"circuit": circuit, "now": now, "taken_at": now - taken, "staff": staff, "detail": ""}


def test_it_shows_staff_0_and_the_walking_demo(page: Page, stack: Stack) -> None:
    assert stack.detect(0).status_code == 200
    deadline = time.monotonic() + 60
    while len(stack.get("/monitoring/latest").json()["staff"]) < 15:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    page.goto(f"{stack.url}/monitoring")
    row = page.locator("tr[data-staff='0']")
    expect(row).to_contain_text("Team 6 Beacon 1")
    expect(row).to_contain_text("-20 dBm")
    expect(row).to_contain_text("C2:A6:28:38:4B:08")
    expect(row).to_contain_text("now")
    for staff_id in range(1, 15):
        level = str((staff_id + 1) // 2)
        cell = page.locator(f"tr[data-staff='{staff_id}'] td.level")
        expect(cell).to_have_text(level)
    expect(page.locator("#banner")).to_be_hidden()
    # On its own port it is the same page.
    port = stack.environment["WAYMARK_MONITORING_PORT"]
    page.goto(f"http://127.0.0.1:{port}/monitoring")
    expect(page.locator("tr[data-staff='14']")).to_be_visible()


def test_freshness_is_told_in_words_and_shape(page: Page, stack: Stack) -> None:
    show(page, stack, snapshot("closed", 5, 130, 840))
    expected = [("now", "now"), ("recent", "2 min ago"), ("stale", "stale 14 min")]
    for number, (mark, words) in enumerate(expected, start=1):
        cell = page.locator(f"tr[data-staff='{number}'] td.heard")
        expect(cell).to_have_text(words)
        expect(cell.locator(f".mark.{mark}")).to_be_visible()


def test_nobody_is_not_the_same_as_unknown(page: Page, stack: Stack) -> None:
    show(page, stack, snapshot("closed"))
    expect(page.locator("#empty")).to_contain_text("Nobody was heard in the last 15 minutes")
    expect(page.locator("#empty")).to_contain_text(f"curl '{stack.url}/newbeacondetect?")
    expect(page.locator("#staff")).to_be_hidden()


def test_an_open_circuit_is_said_and_the_last_snapshot_stays(page: Page, stack: Stack) -> None:
    show(page, stack, snapshot("open", 200, taken=180))
    expect(page.locator("#banner")).to_contain_text("The circuit is open")
    expect(page.locator("#banner")).to_contain_text("3 min ago")
    expect(page.locator("#staff.snapshot tr[data-staff='1']")).to_be_visible()
    expect(page.locator("#empty")).to_be_hidden()


def test_blind_from_the_start_is_never_an_empty_building(page: Page, stack: Stack) -> None:
    show(page, stack, snapshot("unknown") | {"taken_at": None})
    expect(page.locator("#banner")).to_contain_text("nobody's position can be told")
    expect(page.locator("#empty")).to_be_hidden()
    expect(page.locator("#summary")).to_have_text("No positions to show yet")


def test_a_lost_network_is_said(page: Page, stack: Stack) -> None:
    page.route("**/monitoring/latest", lambda route: route.abort())
    page.goto(f"{stack.url}/monitoring")
    expect(page.locator("#banner")).to_contain_text("This page cannot reach Waymark")


def test_names_are_text_and_never_markup(page: Page, stack: Stack) -> None:
    evil = snapshot("closed", 5)
    evil["staff"][0] |= {"location": "<img src=x onerror=alert(1)>"}
    show(page, stack, evil)
    expect(page.locator("td.place")).to_have_text("<img src=x onerror=alert(1)>")


@pytest.mark.parametrize("size", [(360, 740), (1280, 800), (3840, 2160)])
def test_it_fits_every_screen(browser: Browser, stack: Stack, size: tuple[int, int]) -> None:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    page = context.new_page()
    page.goto(f"{stack.url}/monitoring")
    expect(page.locator("tr[data-staff='14']")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_the_longest_names_fit(page: Page, stack: Stack, width: int) -> None:
    long = snapshot("closed", 130)
    long["staff"][0] |= {"staff_id": "x" * 64, "location": "y" * 64}
    page.set_viewport_size({"width": width, "height": 800})
    show(page, stack, long)
    expect(page.locator("td.place")).to_be_visible()
    assert page.locator("#staff").evaluate("table => table.scrollWidth <= table.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_refreshes_by_itself_and_says_when_the_circuit_opens(page: Page, fresh: Stack) -> None:
    fresh.up()
    assert fresh.detect(5).status_code == 200
    page.clock.install()
    page.goto(f"{fresh.url}/monitoring")
    expect(page.locator("tr[data-staff='5']")).to_be_visible()
    expect(page.locator("tr[data-staff='6']")).to_have_count(0)
    assert fresh.detect(6).status_code == 200
    time.sleep(6)  # as old as the answer that pollers share may be
    page.clock.fast_forward(31_000)
    expect(page.locator("tr[data-staff='6']")).to_be_visible()
    kill_tree(fresh.supervisor_pid())
    page.clock.fast_forward(31_000)
    expect(page.locator("#banner")).to_contain_text("This page cannot reach Waymark")
    expect(page.locator("#staff.snapshot tr[data-staff='6']")).to_be_visible()
    fresh.up()
    page.clock.fast_forward(31_000)
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.locator("tr[data-staff='6']")).to_be_visible()
