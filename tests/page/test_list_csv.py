"""Each list as a file: all the rows that are shown, and no cell that a spreadsheet runs."""

import csv
import io
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from common import spreadsheet
from tests.page.conftest import ZONE, Opener, loaded
from tests.page.house import ROOMS, answer, crowd, furnished, person

RISKY = ["=1+1", "-7", "@me", "\uff0b8", 'Zoë "Z", x', "plain"]
ODD = ROOMS[3] | {"location": "=cmd, 1", "mac": "AABBCC000001"}


def saved(page: Page, button: str) -> tuple[str, list[dict[str, str]]]:
    """Return the name of the file that a button saves, and its rows as they were meant."""
    with page.expect_download() as download:
        page.locator(button).click()
    text = Path(download.value.path()).read_bytes().decode()
    assert spreadsheet.marked(text.removeprefix("\ufeff")) == text
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    for row in rows:
        for name, value in row.items():
            if name in {"staff_id", "location"}:
                row[name] = spreadsheet.text(value)
                assert spreadsheet.cell(row[name]) == value
    return download.value.suggested_filename, rows


def local(row: dict[str, str], name: str = "time") -> float:
    """Return a row's time in unix seconds, which both of its columns have to tell."""
    moment = datetime.fromisoformat(row[f"local_{name} ({ZONE})"])
    assert moment.utcoffset() is not None
    assert moment == datetime.fromisoformat(row[name])
    return moment.timestamp()


def test_who_is_here_and_who_is_lost(opened: Opener) -> None:
    now = time.time()
    far = [
        person(staff_id, ROOMS[n], 1200) | {"timestamp": now - 1200}
        for n, staff_id in enumerate(RISKY)
    ]
    for one, state in zip(far, ("acknowledged", "gone_home"), strict=False):
        one["lost_contact"] = {"state": state, "by": "=anna", "at": int(now) - 60}
    people = [*crowd(300), person("=here", ODD)]
    page = opened("?sort=heard", prepare=furnished([*people, *far]))
    loaded(page)
    shown = page.locator("#people .who").all_inner_texts()
    name, rows = saved(page, "#people-csv")
    assert [f"Staff {row['staff_id']}" for row in rows] == shown
    assert len(rows) == 307
    assert re.fullmatch(r"staff_\d{4}-\d\d-\d\d_\d{4}\.csv", name)
    present = next(row for row in rows if row["staff_id"] == "=here")
    assert (present["level"], present["location"], present["mac"]) == (
        ODD["level"],
        "=cmd, 1",
        ODD["mac"],
    )
    assert present["heard"] == "now"
    assert abs(local(present) - now) < 60
    said = {row["staff_id"]: row for row in rows if row["said"]}
    assert {staff_id: row["lost_contact"] for staff_id, row in said.items()} == {
        RISKY[0]: "seen to",
        RISKY[1]: "gone home",
    }
    assert {row["said_by"] for row in said.values()} == {"'=anna"}
    assert {local(row, "said") for row in said.values()} == {int(now) - 60}
    page.locator("#lost-chip").click()
    name, rows = saved(page, "#lost-csv")
    lost = page.locator("#lost-people .who").all_inner_texts()
    assert [f"Staff {row['staff_id']}" for row in rows] == lost
    assert {row["staff_id"] for row in rows} == {RISKY[0], *RISKY[2:]}
    assert [row["lost_contact"] for row in rows if row["said"]] == ["seen to"]
    assert all(abs(local(row) - now + 1200) < 2 for row in rows)
    assert name.startswith("lost-contact_")
    page.locator("#search").fill("staff 10")
    expect(page.locator("#people li")).not_to_have_count(307)
    expect(page.locator("#people li.skeleton")).to_have_count(0)
    listed = page.locator("#people .who").all_inner_texts()
    _, rows = saved(page, "#people-csv")
    assert [f"Staff {row['staff_id']}" for row in rows] == listed
    assert Axe().run(page).response["violations"] == []


def test_people_who_are_missing_are_told_by_the_name_of_the_file(opened: Opener) -> None:
    def prepare(page: Page) -> None:
        furnished(crowd(14))(page)
        one = person(7, ROOMS[0]) | {"timestamp": time.time() - 5}
        staff = {"as_of": time.time(), "complete": False, "data": [one]}
        answer(page, "**/monitoring/api/staff", lambda: staff)

    page = opened(prepare=prepare)
    loaded(page)
    name, rows = saved(page, "#people-csv")
    assert name.startswith("staff-incomplete_")
    assert len(rows) == 1


def test_who_was_in_a_room(opened: Opener) -> None:
    at = int(time.time()) // 60 * 60 - 7200
    visits: list[dict[str, Any]] = [
        {"staff_id": staff_id, "level": "4", "from": at - 60 * n, "to": at + 30, "detections": 3}
        for n, staff_id in enumerate(RISKY)
    ]
    visits += [visits[0] | {"staff_id": "long", "from": at - 1000, "to": at + 1000}]

    def prepare(page: Page) -> None:
        furnished(crowd(14))(page)
        answer(page, "**/api/v1/visits?*", lambda: {"data": visits, "next": None})

    page = opened(f"/coverage?room=Room+4-03&room_level=4&at={at}", prepare=prepare)
    expect(page.locator("#room-visits li")).to_have_count(len(visits))
    name, rows = saved(page, "#room-csv")
    day = datetime.fromisoformat(rows[0][f"local_from ({ZONE})"]).date()
    assert re.fullmatch(rf"who-was-in-Room-4-03-level-4_{day}_\d{{4}}\.csv", name)
    assert [row["staff_id"] for row in rows] == [*RISKY, "long"]
    assert {(row["level"], row["location"]) for row in rows} == {("4", "Room 4-03")}
    assert [local(row, "from") for row in rows] == [*(at - 60 * n for n in range(6)), at - 900]
    assert [local(row, "to") for row in rows] == [at + 30] * 6 + [at + 900]
    assert rows[-1]["stay"].startswith("before ")
    assert Axe().run(page).response["violations"] == []


@pytest.mark.parametrize("path", ["/coverage?gap=10", "/coverage?gap=10&level=4"])
def test_gaps(opened: Opener, path: str) -> None:
    page = opened(path, prepare=furnished(crowd(14)))
    loaded(page)
    gaps = page.locator("#gaps li > strong").all_inner_texts()
    name, rows = saved(page, "#gaps-csv")
    assert [f"{row['location']}, level {row['level']}" for row in rows] == gaps
    assert name.startswith("gaps-of-10-minutes_")
    assert rows[0]["unvisited"] == "never"
    assert rows[0]["last_visited"] == ""
    seen = [row for row in rows if row["last_visited"]]
    assert all(local(row, "last_visited") < time.time() - 600 for row in seen)
    assert all(row["macs"] and row["nearest"].startswith("Staff") for row in rows)
    assert Axe().run(page).response["violations"] == []
