"""Crowded rooms: shaded by how many are there, which is said as a number, too."""

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.page.conftest import Opener, loaded
from tests.page.house import ROOMS, furnished, person

ON_4 = [room for room in ROOMS if room["level"] == "4"]
COUNTS = (2, 3, 6, 12)
LIGHT_ENOUGH = 4.5  # WCAG AA, of text on what is under it
APART = 1.05
FILLS = """(selector) => [...document.querySelectorAll(selector)].map(
  (mark) => getComputedStyle(mark).fill.match(/[\\d.]+/g).slice(0, 3).map(Number))"""


def crowds() -> list[dict[str, Any]]:
    """Return two people in a room of level 4, three in the next one, and so on."""
    rooms = [room for room, count in zip(ON_4, COUNTS, strict=False) for _ in range(count)]
    return [person(100 + n, room) for n, room in enumerate(rooms)]


def luminance(rgb: list[float]) -> float:
    parts = [part / 255 for part in rgb]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(color: list[float], other: list[float]) -> float:
    low, high = sorted(map(luminance, (color, other)))
    return (high + 0.05) / (low + 0.05)


def fills(page: Page, selector: str) -> list[list[float]]:
    colours: list[list[float]] = page.evaluate(FILLS, selector)
    assert colours
    return colours


PICTURES = {
    "?level=4": (
        "#plan .zone[data-crowd='%d'] polygon",
        "#plan .names .crowd-%d",
        "#plan .outline",
    ),
    "": ("#section [data-crowd='%d'] rect", "#section [data-crowd='%d'] text", "#section .air"),
    "?wall": (
        "#section [data-crowd='%d'] rect",
        "#section [data-crowd='%d'] text",
        "#section .air",
    ),
}


@pytest.mark.parametrize(
    ("path", "scheme"), [("?level=4", "light"), ("", "dark"), ("?wall", "dark")]
)
def test_a_room_is_shaded_by_how_many_are_there(opened: Opener, path: str, scheme: str) -> None:
    size = (1920, 1080) if path == "?wall" else (1280, 800)
    page = opened(path, size, prepare=furnished(crowds()), color_scheme=scheme)
    loaded(page)
    shade, label, ground = PICTURES[path]
    (before, *_) = fills(page, ground)
    for step, count in enumerate(COUNTS[1:], start=1):
        expect_number(page, path, step, count)
        (fill,), (ink,) = fills(page, shade % step), fills(page, label % step)
        assert contrast(fill, before) > APART, "as light as the step before"
        assert contrast(fill, ink) >= LIGHT_ENOUGH
        before = fill
    expect(page.locator(shade.replace("='%d'", ""))).to_have_count(3)  # two are no crowd
    assert Axe().run(page).response["violations"] == []


def expect_number(page: Page, path: str, step: int, count: int) -> None:
    """Expect a room's number in its label; on the wall, where its marker may be it, once."""
    if path == "?wall":
        texts = page.locator("#section :is(.crowds, .markers) text")
        expect(texts.filter(has_text=re.compile(f"^{count}$"))).to_have_count(1)
    else:
        ending = re.compile(rf"(^|\D){count}$")
        expect(page.locator(PICTURES[path][1] % step)).to_have_text([ending])


@pytest.mark.parametrize(
    ("path", "media"),
    [
        ("?level=4", {"forced_colors": "active"}),
        ("?wall", {"forced_colors": "active"}),
        ("", {"media": "print"}),
    ],
)
def test_without_colours_the_number_tells_it(
    opened: Opener, path: str, media: dict[str, Any]
) -> None:
    page = opened(path, prepare=furnished(crowds()))
    loaded(page)
    page.emulate_media(**media)
    for step, count in enumerate(COUNTS[1:], start=1):
        expect_number(page, path, step, count)
        if path != "?wall":
            expect(page.locator(PICTURES[path][1] % step)).to_be_visible()
