"""Evidence on paper: everybody who is on the screen, and what, when, by whom, what is missing."""

import re
import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.page.conftest import ZONE, Opener, Sheets, loaded
from tests.page.house import ROOMS, answer, crowd, furnished

MANY = 300


def test_live_prints_everybody(opened: Opener, sheets: Sheets) -> None:
    page = opened(prepare=furnished(crowd(MANY)), color_scheme="dark")
    expect(page.locator("#people li")).to_have_count(MANY)
    texts = sheets(page)
    names = re.findall(r"Staff (\d+)", "\n".join(texts))
    assert set(map(int, names)) == {100 + n for n in range(MANY)}
    assert "Nothing is missing that Waymark knows of" in texts[-1]


def test_a_sheet_says_what_is_missing(opened: Opener, sheets: Sheets) -> None:
    page = opened("?level=4&q=staff+1", prepare=furnished(crowd(MANY)))
    loaded(page)
    for sheet in sheets(page):
        said = " ".join(sheet.split())
        assert "Level 4 alone. Only what matches “staff 1” is listed." in said


def test_who_was_in_a_room_prints_all_visits(opened: Opener, sheets: Sheets) -> None:
    now = int(time.time())
    visits = [
        {"staff_id": 500 + n, "from": now - 700 - n, "to": now - 600, "detections": 9}
        for n in range(80)
    ]

    def prepare(page: Page) -> None:
        furnished(crowd(14))(page)
        answer(page, "**/api/v1/visits?*", lambda: {"data": visits, "next": None})

    room = ROOMS[0]
    page = opened(f"?room={room['location']}&room_level={room['level']}", prepare=prepare)
    expect(page.locator("#room-visits li")).to_have_count(len(visits))
    text = "\n".join(sheets(page))
    assert {int(number) for number in re.findall(r"Staff (\d+)", text)} == {
        visit["staff_id"] for visit in visits
    }
    assert "Who was here?" in text


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("/coverage", "#gaps li > :first-child"),
        ("/directory", "#beacons tbody .mac"),
        ("/system", "#services tbody th"),
        ("?wall", "#exceptions li strong"),
    ],
)
def test_each_screen_prints_all_its_rows(
    opened: Opener, sheets: Sheets, path: str, rows: str
) -> None:
    page = opened(path, prepare=furnished(crowd(14)))
    expect(page.locator(rows).first).to_be_visible()
    loaded(page)
    shown = page.locator(rows).all_inner_texts()
    assert len(shown) >= 4
    words = "".join("".join(sheets(page)).split())
    # Word by word: a cell of two lines has its neighbours' between them.
    assert [word for text in shown for word in text.split() if word not in words] == []


STYLES = """(selector) => [...document.querySelectorAll(selector)].map((node) => {
  const its = getComputedStyle(node);
  return [its.backgroundImage !== "none", its.borderTopStyle, its.borderTopWidth].join();
})"""


@pytest.mark.parametrize(
    ("screen", "states", "drawn"),
    [
        ("", ".legend .mark", "#section .marker.now, #section .marker.recent"),
        ("/coverage?level=4", ".legend .swatch", "#plan .zone.gap"),
        ("/coverage", "#levels-board .tile", "#levels-board .tile.gap"),
    ],
)
def test_states_are_shapes_where_colours_are_the_viewers_own(
    opened: Opener, screen: str, states: str, drawn: str
) -> None:
    page = opened(screen, prepare=furnished(crowd(14)), forced_colors="active")
    loaded(page)
    expect(page.locator(drawn).first).to_be_attached()
    legend = page.locator(".legend li").count()
    assert len(set(page.evaluate(STYLES, states))) == legend, "two states look alike"
    assert Axe().run(page).response["violations"] == []


def test_replay_prints_every_visit(opened: Opener, sheets: Sheets) -> None:
    now = int(time.time())
    rooms = [room for room in ROOMS if room["level"] == "4"]
    walk = [
        rooms[n % 8] | {"id": str(n), "timestamp": now - 60 * n - 30, "rssi": -60}
        for n in range(120)
    ]

    def prepare(page: Page) -> None:
        furnished(crowd(14))(page)
        answer(page, "**/detections?*", lambda: {"data": walk, "next": None})

    page = opened(f"/replay?person=7&from={now - 9000}&to={now}", prepare=prepare)
    expect(page.locator("#player")).to_be_visible()
    text = "\n".join(sheets(page))
    begins = {
        f"{datetime.fromtimestamp(detection['timestamp'], ZoneInfo(ZONE)):%H:%M:%S}"
        for detection in walk
    }
    assert begins <= set(re.findall(r"\d\d:\d\d:\d\d", text))
