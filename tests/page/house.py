"""A house full of made-up people: what a stack with 14 ambassadors is never in."""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from mongo.directory import parse

DIRECTORY = Path(__file__).resolve().parents[2] / "mongo" / "directory.csv"
BEACONS = [beacon._asdict() for beacon in parse(DIRECTORY.read_text("utf-8"))]
ROOMS = [beacon for beacon in BEACONS if beacon["level"] != "unknown"]


def person(staff_id: object, beacon: dict[str, Any], ago: float = 5) -> dict[str, Any]:
    """Return where somebody is, as the API says it."""
    return {
        "staff_id": staff_id,
        "age_seconds": ago,
        "level": beacon["level"],
        "location": beacon["location"],
        "mac": beacon["mac"],
        "rssi": -60,
        "known": True,
    }


def crowd(count: int) -> list[dict[str, Any]]:
    """Return people in all rooms: most of them heard now, a third of them stale."""
    ages = (5, 20, 400, 10, 150, 800)
    return [
        person(100 + n, ROOMS[(n * 7 + n // 11) % len(ROOMS)], ages[n % 6]) for n in range(count)
    ]


def named(staff_id: object, name: str, team: str = "", *, on_duty: bool = True) -> dict[str, Any]:
    """Return what the office says of somebody, as the API says it."""
    return {"staff_id": staff_id, "name": name, "team": team, "note": "", "on_duty": on_duty}


def furnished(
    people: Iterable[dict[str, Any]], names: Iterable[dict[str, Any]] = ()
) -> Callable[[Page], None]:
    """Return what puts people into the building of a page, as `prepare` of a screen.

    Who has no time of their own grows no older: a slow machine makes nobody stale.
    """
    everyone = list(people)
    entries = list(names)

    def prepare(page: Page) -> None:
        began = time.time()

        def staff() -> dict[str, Any]:
            now = time.time()
            heard = [{"timestamp": now - person["age_seconds"]} | person for person in everyone]
            return {"as_of": now, "complete": True, "data": heard}

        answer(page, "**/monitoring/api/staff", staff)
        answer(page, "**/monitoring/api/people", lambda: {"data": entries})
        answer(page, "**/monitoring/api/coverage?*", coverage)
        answer(page, "**/monitoring/api/coverage", coverage)
        answer(page, "**/detections?*", walk)
        answer(page, "**/monitoring/api/beacons", lambda: {"as_of": began, "data": BEACONS})

    return prepare


def coverage() -> dict[str, Any]:
    """Return when each room was visited last: some now, some long ago, some never."""
    now = time.time()
    visits = [
        {"last_visited": None if n % 9 == 8 else now - n * 61, "macs": [room["mac"]]} | room
        for n, room in enumerate(ROOMS)
    ]
    return {"as_of": now, "complete": True, "data": visits}


def walk() -> dict[str, Any]:
    """Return half an hour of somebody's history, newest first: through the rooms of a level."""
    now = int(time.time())
    rooms = [room for room in ROOMS if room["level"] == "4"]
    people = [
        rooms[ago // 120 % len(rooms)] | {"id": str(ago), "timestamp": now - ago, "rssi": -60}
        for ago in range(30, 1800, 12)
    ]
    return {"data": people, "next": None}


def answer(page: Page, address: str, make: Callable[[], Any]) -> None:
    """Let a page's reads of an address give what `make` makes."""
    headers = {"X-Circuit-State": "closed", "Content-Type": "application/json"}
    page.route(
        address,
        lambda route: route.fulfill(
            headers=headers | {"X-Taken-At": f"{time.time():.0f}"}, body=json.dumps(make())
        ),
    )
