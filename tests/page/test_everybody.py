"""Everybody can use it: by keyboard, by thumb, and with a screen reader."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.page.conftest import Opener, loaded

SCREENS = ["?level=4&person=7", "", "/replay?person=7", "/coverage?gap=1", "/directory", "/system"]


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Opener, scheme: str) -> None:
    page = opened(SCREENS[0], color_scheme=scheme, reduced_motion="reduce")
    home = page.url.split("/monitoring")[0] + "/monitoring"
    found = []
    for screen in SCREENS:
        page.goto(home + screen)
        loaded(page)
        if screen.startswith("/replay"):
            expect(page.locator("#player")).to_be_visible()
        for violation in Axe().run(page).response["violations"]:
            where = [node["html"][:120] for node in violation["nodes"][:3]]
            found.append((screen, violation["impact"], violation["id"], where))
    assert found == []


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
    expect(page.get_by_label("Beacon (MAC)")).to_be_focused()
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
