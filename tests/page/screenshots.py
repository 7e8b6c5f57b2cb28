"""Pictures of every screen, light and dark, on a phone, a laptop and a wall screen.

    ./scripts/screenshots [FOLDER]

A stack of its own with the demo and an hour of made-up walks; the pictures of Live once more with
300 people. The small ones that the README shows go to `docs/screenshots/`.
"""

import random
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from mongo.directory import parse
from tests.page.browser import launched
from tests.stack.conftest import Stack

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "docs" / "screenshots"
SIZES = {"phone": (390, 844), "laptop": (1440, 900), "wall": (3840, 2160)}
SCREENS = {
    "live": "",
    "level": "?level=4&person=7",
    "replay": "/replay?person=7&with=2+9",
    "coverage": "/coverage",
    "people": "/people",
    "directory": "/directory",
    "system": "/system",
    "afar": "?wall",
    "blind": "?level=4",
}
# Name, screen, size, colours, and how many pixels a CSS pixel becomes.
SMALL = [
    ("live", "live", (1280, 760), "light", 0.7),
    ("level", "level", (1280, 760), "dark", 0.7),
    ("replay", "replay", (1280, 900), "light", 0.7),
    ("coverage", "coverage", (1280, 760), "light", 0.7),
    ("phone", "level", (390, 844), "light", 0.7),
]
WALKED_SECONDS, STEP_SECONDS = 3300, 12
LEVELS, CHUNK = 7, 1000
# Invented. Two of the fourteen, and the guards, have no name yet.
NAMES = """staff_id,name,team,note,on_duty
1,Aisha Rahman,Ground floor,,
2,Ben Koh,Ground floor,,
3,Chloe Lim,Wards,,
4,Dinesh Pillai,Wards,,
5,Elena Novak,Wards,,
6,Farid Osman,Wards,,
7,Grace Tan,Wards,Keys of level 4,
8,Hugo Berger,Kitchen,,
9,Isabel Cruz,Kitchen,,
10,Jonas Weiss,Kitchen,,
11,Kavita Nair,Night,,
12,Liam Ong,Night,,
15,Mei Chua,Night,,no
"""
MANY = 300
OF_MANY = ("live", "level", "afar")
WAIT_MS = 120_000  # beside whatever else this machine does


def main() -> None:
    """Take all pictures; the stack is gone afterwards."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "data" / "screenshots")
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        stack = Stack(ROOT, Path(data))
        try:
            stack.up("--demo")
            furnish(stack)
            with launched(playwright) as browser:
                take(browser, stack.url, folder)
                fill(stack)
                take_screens(browser, stack.url, OF_MANY, folder, f"-{MANY}")
        finally:
            stack.down()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}, the small ones in {README}")


def furnish(stack: Stack, seconds: float = 45) -> None:
    """Make an hour of walks that leave some rooms out, and two beacons that nobody knows.

    So long the demo walks then, and the plots of System get something to show.
    """
    chance = random.Random(7)
    beacons = parse((ROOT / "mongo" / "directory.csv").read_text("utf-8"))
    now = int(time.time())
    detections: list[dict[str, object]] = []
    for staff_id in range(1, 2 * LEVELS + 1):
        macs = [beacon.mac for beacon in beacons if beacon.level == str((staff_id + 1) // 2)]
        at = chance.randrange(5)
        for ago in range(WALKED_SECONDS, 120, -STEP_SECONDS):
            if chance.random() < 0.12:
                at = min(max(at + chance.choice((-1, 1)), 0), len(macs) - 2)
            detections.append(heard(staff_id, macs[at], now - ago))
    for number, ago in ((1, 2400), (1, 300), (2, 900)):
        detections.append(heard(number, f"AABBCCDDEE0{number}", now - ago))
    detections += [
        heard("guard-2", "C2A628040005", now - 150),
        heard("guard-5", "C2A628040003", now - 700),
        heard("guard-9", "C2A628040004", now - 2000),  # who is a ghost
    ]
    send(stack, detections)
    answer = stack.session.post(
        f"{stack.url}/api/v1/people/import",
        data=NAMES,
        headers={"Content-Type": "text/csv"},
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    stack.wait_for_people(2 * LEVELS + 3)
    time.sleep(seconds)


def fill(stack: Stack) -> None:
    """Bring the people up to 300, all over the building; some were not heard for a while."""
    chance = random.Random(8)
    beacons = parse((ROOT / "mongo" / "directory.csv").read_text("utf-8"))
    now = int(time.time())
    others = range(100, 100 + MANY - 2 * LEVELS)
    ages = (5, 5, 5, 120, 500)
    send(stack, [heard(n, chance.choice(beacons).mac, now - chance.choice(ages)) for n in others])
    stack.wait_for_people(MANY + 3)


def send(stack: Stack, detections: list[dict[str, object]]) -> None:
    for first in range(0, len(detections), CHUNK):
        body = {"detections": detections[first : first + CHUNK]}
        answer = stack.session.post(f"{stack.url}/api/v1/detections", json=body, timeout=60)
        assert answer.status_code == 200, answer.text


def heard(staff_id: object, mac: str, timestamp: int) -> dict[str, object]:
    """Return one detection as the API takes it."""
    return {"staff_id": staff_id, "mac": mac, "rssi": -60, "timestamp": timestamp}


def take(browser: Browser, url: str, folder: Path) -> None:
    """Take the pictures of a stack that is running."""
    folder.mkdir(parents=True, exist_ok=True)
    README.mkdir(parents=True, exist_ok=True)
    take_screens(browser, url, SCREENS, folder)
    for name, screen, small, scheme, scale in SMALL:
        picture(browser, url, screen, small, scheme, README / f"{name}.png", scale)


def take_screens(
    browser: Browser, url: str, screens: Iterable[str], folder: Path, suffix: str = ""
) -> None:
    """Take pictures of some screens at all sizes, light and dark."""
    for screen, size, scheme in product(screens, SIZES, ("light", "dark")):
        file = folder / f"{screen}{suffix}-{size}-{scheme}.png"
        picture(browser, url, screen, SIZES[size], scheme, file)


def picture(
    browser: Browser,
    url: str,
    screen: str,
    size: tuple[int, int],
    scheme: str,
    file: Path,
    scale: float = 1,
) -> None:
    """Take one picture when the screen shows its data and nothing moves any more."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,  # type: ignore[arg-type]
        device_scale_factor=scale,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="Asia/Singapore",
    )
    page = context.new_page()
    page.goto(f"{url}/monitoring{SCREENS[screen]}")
    expect(page.locator("body[data-loaded='true']")).to_be_attached(timeout=WAIT_MS)
    if screen == "replay":
        expect(page.locator("#player")).to_be_visible(timeout=WAIT_MS)
        expect(page.locator("#companions")).not_to_contain_text("reading", timeout=WAIT_MS)
    if "person" in SCREENS[screen] and screen != "replay":
        expect(page.locator("#person .steps li").first).to_be_visible(timeout=WAIT_MS)
    if screen == "blind":
        context.set_offline(True)
        expect(page.locator("#banner")).to_be_visible(timeout=WAIT_MS)
    page.screenshot(path=file, full_page=size[0] < 1000 and scale == 1)
    context.close()


if __name__ == "__main__":
    main()
