"""Sites: who is where, at all of them, on one screen of a service that asks each."""

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from scripts.processes.ports import free_port
from tests.page.conftest import Office, loaded, watch_policy
from tests.page.house import ROOMS
from tests.services.monitoring.conftest import Service
from tests.services.monitoring.test_sites import written

PHONE = (360, 740)


@pytest.fixture(scope="module")
def service(office: Office, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a page over three sites: two names of the same stack, and one that nobody serves."""
    folder = tmp_path_factory.mktemp("sites")
    away = f"http://127.0.0.1:{free_port()}"
    file = written(folder, North=office.url, South=office.url, West=away)
    service = Service(office.url, folder, settings={"SITES_FILE": str(file)})
    service.start()
    yield service
    service.stop()


def visited(browser: Browser, service: Service, errors: list[str], **more: Any) -> Page:
    context = browser.new_context(locale="en-GB", **more)
    watch_policy(context, errors)
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"http://127.0.0.1:{service.port}/monitoring/sites")
    loaded(page)
    return page


@pytest.mark.parametrize("size", [PHONE, (1280, 800)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_sites_on_one_screen(
    browser: Browser, office: Office, service: Service, size: tuple[int, int], scheme: str
) -> None:
    office.hear("wanderer", ROOMS[3]["mac"])
    office.shown("wanderer")
    errors: list[str] = []
    viewport = {"width": size[0], "height": size[1]}
    page = visited(browser, service, errors, viewport=viewport, color_scheme=scheme)
    rows = page.locator("#sites tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("as of")
    expect(rows.nth(2)).to_contain_text("Cannot be read since")
    expect(rows.nth(2).locator("td").first).to_have_text("\N{EN DASH}")
    expect(page.locator("#summary")).to_contain_text("West cannot be read now")
    page.get_by_role("searchbox").fill("wanderer")
    found = page.locator("#people a")
    expect(found).to_have_count(2)
    expect(found.first).to_contain_text("Staff wanderer")
    expect(found.first).to_contain_text("North")
    assert Axe().run(page).response["violations"] == []
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= size[0]
    found.first.click()
    expect(page).to_have_url(f"{office.url}/monitoring?person=wanderer")
    expect(page.locator("#person")).to_be_visible()
    page.context.close()
    assert errors == []


def test_a_search_is_part_of_the_address(browser: Browser, service: Service) -> None:
    errors: list[str] = []
    page = visited(browser, service, errors)
    page.keyboard.press("/")
    page.keyboard.type("nobody of that name")
    expect(page.locator("#none")).to_have_text("Nobody matches “nobody of that name”.")
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("nobody of that name")
    expect(page.locator("#none")).to_be_visible()
    page.context.close()
    assert errors == []
