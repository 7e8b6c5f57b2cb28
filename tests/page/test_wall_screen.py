"""The wall screen: read from across a room, and it never looks alive when it is not."""

import json
import re
import time
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.page.conftest import Opener, loaded
from tests.page.house import ROOMS, answer, crowd, furnished, person

WALLS = [(1366, 768), (1920, 1080), (3840, 2160)]
STRANGERS = [
    {"mac": f"AABBCCDDEE{n:02}", "count": n + 2, "staff": [n], "last_heard": 0} for n in range(30)
]
# 15 arc minutes at 3 m on a screen of 55 inches (685 mm high) are 13.1 mm for a capital letter,
# which is 0.7 of its font size.
LEAST_OF_HEIGHT = 13.1 / 0.7 / 685
# Each text that can be seen: its size in px, and whether all of it is on the screen.
TEXTS = """() => {
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (parent.closest("title, script, noscript, .visually-hidden, .skip")) continue;
    if (!node.textContent.trim()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    texts.push({ text: node.textContent.trim(), px: parseFloat(getComputedStyle(parent).fontSize),
      isInside: box.left >= -1 && box.top >= -1 && box.right <= innerWidth + 1
        && box.bottom <= innerHeight + 1 });
  }
  return texts;
}"""


def lost(count: int) -> list[dict[str, Any]]:
    """Return people who were heard 20 minutes ago and longer."""
    now = time.time()
    return [
        person(f"lost-{n}", ROOMS[n % len(ROOMS)], 1200 + 60 * n)
        | {"timestamp": now - 1200 - 60 * n}
        for n in range(count)
    ]


def house(people: int, missing: int = 0, strangers: int = 0) -> Any:
    """Return what puts people, the lost and unknown beacons into the page."""
    fill = furnished([*crowd(people), *lost(missing)])

    def prepare(page: Page) -> None:
        fill(page)
        beacons = [beacon | {"last_heard": time.time() - 90} for beacon in STRANGERS[:strangers]]
        answer(page, "**/monitoring/api/beacons/unknown", lambda: {"data": beacons})

    return prepare


def still(page: Page) -> None:
    loaded(page)
    expect(page.locator("#gaps")).to_have_attribute("data-count", re.compile(r"\d+"))
    expect(page.locator("#unknown")).to_have_attribute("data-count", re.compile(r"\d+"))
    page.evaluate("Promise.all(document.getAnimations().map((animation) => animation.finished))")


@pytest.mark.parametrize(("size", "people"), list(zip(WALLS, (14, 300, 300), strict=True)))
def test_all_of_it_is_read_from_three_metres(
    opened: Opener, size: tuple[int, int], people: int
) -> None:
    page = opened("?wall", size, prepare=house(people, 12, 6), reduced_motion="reduce")
    still(page)
    texts = page.evaluate(TEXTS)
    assert len(texts) > 60
    small = [text for text in texts if text["px"] < LEAST_OF_HEIGHT * size[1]]
    assert small == []
    assert [text for text in texts if not text["isInside"]] == []
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    assert page.evaluate(
        "document.getElementById('section').scrollHeight <= "
        "document.getElementById('section').clientHeight + 1"
    )
    for place in ("Lobby A", "4-01", "4-02", "4-06", "Lobby B"):
        expect(page.locator("#section .strip[data-level='4'] .name", has_text=place)).to_have_count(
            1
        )
    for gone in ("#levels", "#people", "#search", "nav"):
        expect(page.locator(gone)).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_exceptions_stand_beside_the_building(opened: Opener, scheme: str) -> None:
    prepare = house(14, 2, 1)
    page = opened("?wall", (1920, 1080), prepare=prepare, color_scheme=scheme)
    still(page)
    column = page.get_by_role("complementary", name="Exceptions")
    expect(column.get_by_role("heading", name="Lost contact 2")).to_be_visible()
    expect(page.locator("#lost li").last).to_contain_text(re.compile(r"Staff lost-0 .*2\d min"))
    expect(page.locator("#lost li").last).to_contain_text(f"{ROOMS[0]['location']}, level 1")
    gaps = page.locator("#gaps li")
    expect(gaps.first).to_contain_text("never")
    expect(page.locator("#unknown li")).to_contain_text("AA:BB:CC:DD:EE:00")
    assert Axe().run(page).response["violations"] == []


def test_what_does_not_fit_is_counted(opened: Opener) -> None:
    page = opened("?wall", (1920, 1080), prepare=house(14, 40, 30))
    still(page)
    for name, count in (("lost", 40), ("unknown", 30)):
        section = page.locator(f"#{name}")
        shown = section.locator("li:not([hidden])")
        left = count - shown.count()
        assert 0 < left < count
        expect(section.locator("p")).to_have_text(f"and {left} more")
    column = page.locator("#exceptions")
    assert column.evaluate("(box) => box.scrollHeight <= box.clientHeight + 1")


def test_no_line_of_the_column_is_cut_on_a_narrower_screen(opened: Opener) -> None:
    """The address of an unknown beacon pushed its age over the edge."""
    page = opened("?wall", (1280, 900), prepare=house(14, 2, 2), reduced_motion="reduce")
    still(page)
    cut = """[...document.querySelectorAll("#exceptions li")].filter((line) =>
      line.lastElementChild.getBoundingClientRect().right >
      document.getElementById("exceptions").getBoundingClientRect().right)"""
    assert page.evaluate(f"{cut}.length") == 0


def test_nothing_exceptional_is_said_too(opened: Opener) -> None:
    page = opened("?wall&gap=10000", (1920, 1080), prepare=house(14))
    answer(page, "**/monitoring/api/coverage", lambda: {"as_of": 0, "complete": True, "data": []})
    page.reload()
    still(page)
    expect(page.locator("#lost")).to_contain_text("Nobody of this shift")
    expect(page.locator("#gaps")).to_contain_text("Every place was visited in 10000 min")
    expect(page.locator("#unknown")).to_contain_text("None")


def test_what_cannot_be_told_is_no_empty_list(opened: Opener) -> None:
    page = opened("?wall", (1920, 1080), prepare=house(14))
    still(page)
    page.unroute("**/monitoring/api/beacons/unknown")
    page.route("**/monitoring/api/beacons/unknown", lambda route: route.fulfill(status=503))
    page.reload()
    expect(page.locator("#unknown")).to_contain_text("This cannot be told now.")
    expect(page.locator("#clock")).not_to_have_attribute("data-stopped", "true")


def test_the_clock_stops_with_what_it_shows(opened: Opener) -> None:
    page = opened("?wall", (1920, 1080), prepare=house(14))
    still(page)
    clock = page.locator("#clock time")
    first = clock.inner_text()
    expect(clock).not_to_have_text(first)  # it ticks
    address = "**/monitoring/api/staff"
    headers = {
        "X-Circuit-State": "unknown",
        "Content-Type": "application/json",
        "X-Taken-At": f"{time.time() - 5:.0f}",
    }
    page.unroute(address)
    page.route(address, lambda route: route.fulfill(headers=headers, body=json.dumps({"data": []})))
    expect(page.locator("#clock")).to_have_attribute("data-stopped", "true", timeout=30_000)
    expect(page.locator("#banner")).to_be_visible()
    stopped = clock.inner_text()
    says = page.locator("#clock span")
    before = says.inner_text()
    expect(says).not_to_have_text(before)  # how long ago goes on
    assert clock.inner_text() == stopped
    page.unroute(address)
    house(14)(page)
    expect(page.locator("#clock")).not_to_have_attribute("data-stopped", "true", timeout=30_000)


def test_a_page_that_failed_stops_its_clock(opened: Opener) -> None:
    page = opened("?wall", (1920, 1080), prepare=house(14))
    still(page)
    page.evaluate("document.body.dataset.failed = 'true'")  # as boot.js says it
    expect(page.locator("#clock")).to_have_attribute("data-stopped", "true")


def test_one_level_is_a_plan(opened: Opener) -> None:
    page = opened("?wall&level=1", (1920, 1080), prepare=house(60, 14))
    still(page)
    expect(page.locator("#plan")).to_contain_text("Room 1-03")
    expect(page.locator("#summary")).to_contain_text("on level 1")
    expect(page.locator("#lost li")).to_have_count(8)
    texts = page.evaluate(TEXTS)
    assert [text for text in texts if text["px"] < LEAST_OF_HEIGHT * 1080] == []
    assert [text for text in texts if not text["isInside"]] == []


def test_live_leads_to_it_and_it_leads_back(opened: Opener) -> None:
    page = opened("?level=4", (1920, 1080), prepare=house(14))
    loaded(page)
    page.get_by_role("link", name="Wall view").click()
    expect(page).to_have_url(re.compile(r"/monitoring\?.*wall"))
    still(page)
    page.get_by_role("link", name="Waymark").click()
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
