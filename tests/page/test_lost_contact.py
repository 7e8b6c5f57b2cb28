"""Who dropped out is told; and a screen reader hears what changes, once."""

import json
import re
import time
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.page.conftest import Opener, loaded
from tests.page.house import ROOMS, crowd, furnished, person


def lost() -> list[dict[str, Any]]:
    """Return two who were heard 20 and 50 minutes ago."""
    return [
        person(name, ROOMS[room], ago) | {"timestamp": time.time() - ago}
        for name, room, ago in (("lost-1", 3, 1200), ("lost-2", 20, 3000))
    ]


def test_who_dropped_out_is_told_until_dismissed(opened: Opener) -> None:
    page = opened(prepare=furnished([*crowd(14), *lost(), person("home", ROOMS[5], 2 * 86400)]))
    chip = page.get_by_role("button", name="2 people lost contact")
    chip.click()
    rows = page.locator("#lost li")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("Staff lost-1")
    expect(rows.nth(0)).to_contain_text("last in Room 1-03, level 1")
    expect(rows.nth(0)).to_contain_text(re.compile(r"2\d min ago"))
    assert Axe().run(page).response["violations"] == []
    rows.nth(1).get_by_role("button", name="Staff lost-2", exact=True).click()
    expect(page.locator("#person")).to_contain_text("Staff lost-2")
    expect(page.locator("#section .marker.picked")).to_have_attribute("data-staff", "lost-2")
    page.get_by_role("button", name="Dismiss staff lost-1").click()
    expect(rows).to_have_count(1)
    page.reload()
    page.get_by_role("button", name="1 person lost contact").click()
    page.get_by_role("button", name="Dismiss all").click()
    expect(page.locator("#lost")).to_be_hidden()
    expect(page.locator("#lost-chip")).to_be_hidden()


def test_they_are_ghosts_on_the_plan_until_dismissed(opened: Opener) -> None:
    home = person("home", ROOMS[5], 2 * 86400)
    page = opened(prepare=furnished([*crowd(14), *lost(), home]))
    ghosts = page.locator("#section .marker.gone")
    expect(ghosts).to_have_count(2)
    expect(ghosts.and_(page.locator("[data-staff=lost-1]"))).to_be_visible()
    count = page.locator("#levels").get_by_text(re.compile("^All")).inner_text()
    page.get_by_role("button", name="2 people lost contact").click()
    page.get_by_role("button", name="Dismiss staff lost-1").click()
    expect(ghosts).to_have_count(1)
    assert page.locator("#levels").get_by_text(re.compile("^All")).inner_text() == count
    ghosts.click()
    expect(page.locator("#person")).to_contain_text("Staff lost-2")
    page.get_by_role("button", name="Dismiss all").click()
    page.keyboard.press("Escape")
    expect(ghosts).to_have_count(0)


def test_nobody_lost_is_no_chip(opened: Opener) -> None:
    page = opened(prepare=furnished(crowd(14)))
    loaded(page)
    expect(page.locator("#lost-chip")).to_be_hidden()


WATCH = """() => {
  window.spoken = [];
  for (const node of document.querySelectorAll("[role=alert], [role=status], [aria-live]"))
    new MutationObserver(() => window.spoken.push(node.textContent.trim())).observe(node, {
      childList: true, characterData: true, subtree: true });
}"""


def wrong(page: Page) -> None:
    headers = {"X-Circuit-State": "unknown", "Content-Type": "application/json"}
    body = json.dumps({"as_of": 0, "data": lost()})
    address = "**/monitoring/api/staff"
    page.unroute(address)
    taken = f"{time.time() - 5:.0f}"
    told = headers | {"X-Taken-At": taken}
    page.route(address, lambda route: route.fulfill(headers=told, body=body))


def test_an_alert_is_spoken_once_though_its_age_grows(opened: Opener) -> None:
    page = opened(prepare=furnished(crowd(14)))
    loaded(page)
    page.evaluate(WATCH)
    wrong(page)
    age = page.locator("#banner-age")
    expect(age).to_contain_text(re.compile(r"known at .* ago"))
    for _ in range(2):
        before = age.inner_text()
        expect(age).not_to_have_text(before)
    spoken: list[Any] = page.evaluate("spoken.filter(Boolean)")
    assert len([text for text in spoken if "cannot read this" in text]) == 1, spoken


def test_the_number_of_people_is_not_spoken_at_each_change(opened: Opener) -> None:
    page = opened(prepare=furnished(crowd(14)))
    loaded(page)
    page.evaluate(WATCH)
    furnished(crowd(15))(page)
    expect(page.locator("#summary")).to_contain_text("15 people")
    assert page.evaluate("spoken") == []
