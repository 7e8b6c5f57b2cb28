"""A wrong answer and a page that fails are said: no empty building and no frozen picture."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import Office, Opener, loaded
from tests.page.house import crowd, furnished

STAFF = "**/monitoring/api/staff"
HEADERS = {"X-Circuit-State": "closed", "Content-Type": "application/json"}


def wrong(page: Page, address: str, body: Any) -> None:
    page.unroute(address)
    page.route(
        address, lambda route: route.fulfill(headers=HEADERS, body=json.dumps(body), status=200)
    )


@pytest.mark.parametrize("body", [{}, None, "x"])
def test_a_wrong_200_is_a_failed_read_and_no_empty_building(opened: Opener, body: Any) -> None:
    page = opened(prepare=lambda page: wrong(page, STAFF, body))
    expect(page.locator("#banner")).to_contain_text("cannot be told now")
    expect(page.locator("#summary")).to_have_text("No positions to show yet")
    expect(page.locator("#empty")).to_be_hidden()
    expect(page.locator("#pulse")).to_have_attribute("data-state", "unknown")
    page.close()
    later = opened(prepare=furnished(crowd(14)))
    loaded(later)
    wrong(later, STAFF, body)
    expect(later.locator("#banner")).to_contain_text("cannot be told now")
    expect(later.locator("#people [data-staff='107']")).to_be_visible()
    expect(later.locator("#updated")).to_contain_text("As of")


@pytest.mark.parametrize(
    ("screen", "address"),
    [
        ("/coverage", "**/monitoring/api/coverage"),
        ("/directory", "**/api/v1/beacons"),
        ("/system", "**/monitoring/api/system"),
        ("", "**/monitoring/api/beacons"),
    ],
)
def test_no_screen_takes_a_wrong_200_for_an_answer(
    opened: Opener, screen: str, address: str
) -> None:
    page = opened(screen, prepare=lambda page: wrong(page, address, {}))
    expect(page.locator("#banner")).to_contain_text("Waymark cannot read this")


def test_a_wrong_history_is_not_an_empty_one(opened: Opener) -> None:
    page = opened("/replay?person=7", prepare=lambda page: wrong(page, "**/detections?*", {}))
    expect(page.locator("#state")).to_contain_text("could not be read")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


@pytest.fixture
def failing(browser: Browser, office: Office) -> Iterator[Page]:
    """Return a page that may fail."""
    with browser.new_context() as context:
        yield context.new_page()


@pytest.mark.parametrize(
    "broken", ["rules/words.js", "screens/live.js", "panels/places/level_tabs.js"]
)
def test_a_module_that_throws_is_said_with_a_way_to_reload(
    failing: Page, office: Office, broken: str
) -> None:
    def throw(route: Any) -> None:
        text = route.fetch().text() + "\nthrow new Error('broken');"
        route.fulfill(body=text, headers={"Content-Type": "text/javascript"})

    failing.route(f"**/{broken}", throw)
    failing.route(STAFF, lambda _: None)  # it does not come: nothing is ever shown
    failing.goto(f"{office.url}/monitoring")
    expect(failing.locator("#failed")).to_contain_text("This page has failed")
    expect(failing.locator("#pulse")).to_be_hidden()
    failing.get_by_label("Search").press("a")  # what still runs draws once more
    assert "Loading…" not in failing.inner_text("body")
    failing.unroute(f"**/{broken}")
    failing.unroute(STAFF)
    failing.get_by_role("button", name="Reload now").click()
    expect(failing.locator("#people [data-staff='7']")).to_be_visible()
    expect(failing.locator("#failed")).to_be_hidden()


def test_a_screen_that_fails_later_says_so(failing: Page, office: Office) -> None:
    furnished(crowd(14))(failing)
    failing.goto(f"{office.url}/monitoring")
    loaded(failing)
    failing.evaluate("document.getElementById('people').remove()")
    expect(failing.locator("#failed")).to_contain_text("It loads itself again")
    expect(failing.locator("#pulse")).to_be_hidden()
