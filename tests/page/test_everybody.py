"""Everybody can use it: by keyboard, by thumb, and with a screen reader."""

import re
import time
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.page.conftest import Opener, loaded
from tests.page.house import ROOMS, answer, crowd, furnished, person

SCREENS = [
    "?level=4&person=7",
    "",
    "/replay?person=7",
    "/coverage?gap=1",
    "/people",
    "/directory",
    "/system",
]


OPEN = ["?wall", "?wall&level=4", "/coverage?level=4", "?room=Room+4-03&room_level=4"]
GREY = ("", "/coverage?gap=1", "?wall")  # one of each kind: what is grey, and why, is said alike


def full(page: Page) -> None:
    """Put a crowd, who is lost, who was in a room and silent beacons into the page."""
    now = int(time.time())
    away = [person(f"away-{n}", ROOMS[n], 1200) | {"timestamp": now - 1200} for n in range(3)]
    away[0]["lost_contact"] = {"state": "acknowledged", "by": "anna", "at": now}
    furnished([*crowd(100), person(7, ROOMS[25]), *away])(page)
    visit = {"staff_id": 7, "level": "4", "from": now - 90, "to": now - 60, "detections": 3}
    answer(page, "**/api/v1/visits?*", lambda: {"data": [visit], "next": None})


def violations(page: Page) -> list[Any]:
    return [
        (page.url, row["id"], [node["html"][:120] for node in row["nodes"][:3]])
        for row in Axe().run(page).response["violations"]
    ]


@pytest.mark.long
@pytest.mark.parametrize(("size", "scheme"), [((390, 844), "light"), ((1280, 800), "dark")])
def test_axe_finds_nothing_nor_when_all_is_grey(
    opened: Opener, size: tuple[int, int], scheme: str
) -> None:
    look = {"color_scheme": scheme, "reduced_motion": "reduce"}
    faults = []
    for path in (*SCREENS, *OPEN):
        page = opened(path, size, prepare=full, **look)
        loaded(page)
        if path == "":
            page.locator("#lost-chip").click()
        faults += violations(page)
        if path in GREY:
            page.route("**/api/**", lambda route: route.abort())
            page.evaluate("dispatchEvent(new Event('online'))")  # so it reads again at once
            expect(page.locator("#banner")).to_be_visible(timeout=60_000)
            faults += violations(page)
        page.close()
    assert faults == []


def test_a_dialog_is_accessible_too(opened: Opener) -> None:
    page = opened("/directory")
    loaded(page)
    for name in ("Add a beacon", "Import CSV"):
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert Axe().run(page).response["violations"] == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name=name)).to_be_focused()


def focused(page: Page) -> str:
    said = page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id")
    return str(said)


def tab_to(page: Page, text: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if focused(page).startswith(text):
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert page.evaluate(outline) != "none", f"nobody sees that {text} has the focus"
            return
    raise AssertionError(f"{text} is not reached by Tab; the last was {focused(page)}")


@pytest.mark.long
def test_the_keyboard_alone_is_enough(opened: Opener) -> None:
    page = opened()
    loaded(page)
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    tab_to(page, "Level 4")
    page.keyboard.press("Enter")
    expect(page.locator("#plan .zone")).to_have_count(8)
    tab_to(page, "Staff 7")
    page.keyboard.press("Enter")
    expect(page.locator("#person")).to_contain_text("Staff 7")
    page.keyboard.press("Shift+Tab")
    tab_to(page, "Staff 7")
    page.keyboard.press("Escape")
    expect(page.locator("#person")).to_be_hidden()
    page.goto(page.url.split("?")[0] + "/replay?person=7")
    expect(page.locator("#player")).to_be_visible()
    tab_to(page, "scrubber")
    before = page.locator("#scrubber").input_value()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#scrubber").input_value() < before
    tab_to(page, "▶ Play")
    page.keyboard.press("Space")
    page.goto(page.url.split("/replay")[0] + "/directory")
    loaded(page)
    tab_to(page, "Add a beacon")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Beacon (MAC or other id)")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert focused(page) == "Add a beacon"


@pytest.mark.long
def test_targets_are_large_enough_for_a_thumb(opened: Opener) -> None:
    page = opened("", (360, 740), has_touch=True)
    home = page.url
    for screen in SCREENS:
        page.goto(home + screen)
        loaded(page)
        small = page.evaluate(
            """() => [...document.querySelectorAll("a, button, input, select")]
                .filter((node) => node.checkVisibility() && !node.closest("p, .skip, label.check"))
                .map((node) => [node.getBoundingClientRect().height, node.outerHTML.slice(0, 80)])
                .filter(([height]) => height < 43.5)"""
        )
        assert small == [], screen


def test_a_newcomer_finds_the_four_answers(opened: Opener) -> None:
    page = opened()
    loaded(page)
    # Who is on level 4 now?
    page.locator("#levels a[href$='level=4']").click()
    expect(page.locator("#people")).to_contain_text("Staff 7")
    expect(page.locator("#people")).to_contain_text("Staff 8")
    expect(page.locator("#people")).not_to_contain_text("Staff 14")
    # When was level 6, Lobby B last visited?
    page.get_by_role("link", name="Coverage").click()
    spot = page.get_by_role("region", name="Level 6", exact=True).locator("li", has_text="Lobby B")
    expect(spot.locator("time")).to_have_text(re.compile(r"now|never|\d+ (s|min|h)"))
    # Where was staff 3 at a time?
    page.get_by_role("link", name="Replay").click()
    page.get_by_label("Person").fill("3")
    page.get_by_role("button", name="Last 15 minutes").click()
    expect(page.locator("#place")).to_contain_text("level 2, ")
    # Is the system healthy?
    page.get_by_role("link", name="System").click()
    expect(page.locator("#summary")).to_have_text("Everything is healthy")
