"""Directory: which battery has to be changed next."""

import time
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from scripts.processes.waiting import eventually
from tests.page.conftest import Office, Opener, Sheets, loaded
from tests.page.house import ROOMS, answer
from tests.page.test_list_csv import local, saved

DAY_SECONDS = 86_400
WIDE = "document.documentElement.scrollWidth > innerWidth"


def battery(value: float, unit: str, left: float, **more: Any) -> dict[str, Any]:
    """Return a battery without a trend, told an hour ago."""
    fields = {"at": int(time.time()) - 3600, "per_day": None, "empty_at": None, "low": False}
    return {"value": value, "unit": unit, "left": left} | fields | more


def told(batteries: list[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """Return an answer of /beacons/batteries: a battery for each of the first rooms."""
    return [
        {"mac": room["mac"], "level": room["level"], "location": room["location"], "readings": {}}
        | {"battery": battery}
        for room, battery in zip(ROOMS, batteries, strict=False)
    ]


def powered(page: Page) -> None:
    now = int(time.time())
    batteries: list[dict[str, Any] | None] = [
        battery(2490, "mV", 0, empty_at=now - 3600, low=True),
        battery(12, "%", 0.12, per_day=-1, empty_at=now + 12 * DAY_SECONDS, low=True),
        battery(2900, "mV", 0.8, per_day=-1, empty_at=now + 400 * DAY_SECONDS),
        *(battery(90, "%", 0.9, per_day=0) for _ in range(9)),
        None,
    ]
    stranger = {"mac": "AABBCCDDEEFF", "battery": batteries[0]}
    answer(
        page,
        "**/monitoring/api/beacons/batteries",
        lambda: {"data": [stranger, *told(batteries)]},
    )


@pytest.mark.parametrize("size", [(1280, 800), (360, 740)])
@pytest.mark.parametrize("colors", [{}, {"color_scheme": "dark"}, {"forced_colors": "active"}])
def test_each_beacon_has_its_battery_and_ten_are_listed(
    opened: Opener, size: tuple[int, int], colors: dict[str, str]
) -> None:
    page = opened("/directory", size=size, prepare=powered, **colors)
    rows = page.locator("#batteries-next li")
    expect(rows).to_have_count(10)
    expect(rows.nth(0)).to_contain_text("change it now")
    expect(rows.nth(0)).to_contain_text("2,490 mV, low")
    expect(rows.nth(0)).to_contain_text(f"{ROOMS[0]['location']}, level {ROOMS[0]['level']}")
    expect(rows.nth(0)).to_contain_text("told 1 h ago")
    expect(rows.nth(1)).to_contain_text("empty about ")
    expect(rows.nth(1)).to_contain_text("12 %, low")
    expect(rows.nth(3)).to_contain_text("no end in sight")
    expect(rows.filter(has_text="low")).to_have_count(2)
    line = page.locator("#beacons tbody tr").filter(
        has_text=":".join(ROOMS[1]["mac"][n : n + 2] for n in range(0, 12, 2))
    )
    expect(line).to_contain_text("12 %, low")
    bar = line.locator(".meter span")
    expect(bar).to_have_attribute("style", "width: 12%;")
    assert not page.evaluate(WIDE)
    assert Axe().run(page).response["violations"] == []


def test_where_nobody_sends_what_beacons_tell_there_is_no_column(opened: Opener) -> None:
    def prepare(page: Page) -> None:
        answer(page, "**/monitoring/api/beacons/batteries", lambda: {"data": told([None])})

    page = opened("/directory", prepare=prepare)
    expect(page.locator("#beacons tbody tr").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    expect(page.get_by_role("columnheader", name="Battery")).to_have_count(0)
    expect(page.locator("#batteries")).to_be_hidden()


def test_all_batteries_are_a_file_and_the_next_are_printed(opened: Opener, sheets: Sheets) -> None:
    page = opened("/directory", prepare=powered)
    loaded(page)
    expect(page.locator("#batteries-next li")).to_have_count(10)
    name, rows = saved(page, "#batteries-csv")
    assert name.startswith("batteries_")
    assert [row["mac"] for row in rows] == [room["mac"] for room in ROOMS[:12]]
    assert [(row["battery"], row["unit"], row["low"]) for row in rows[:3]] == [
        ("2490", "mV", "low"),
        ("12", "%", "low"),
        ("2900", "mV", ""),
    ]
    assert rows[1]["per_day"] == "-1"
    assert abs(local(rows[1], "empty") - time.time() - 12 * DAY_SECONDS) < 120
    assert (rows[3]["empty"], rows[3]["per_day"]) == ("", "0")
    assert abs(local(rows[3], "told") - time.time() + 3600) < 120
    words = " ".join(" ".join(sheets(page)).split())
    assert "change it now" in words
    assert "12 %, low" in words


@pytest.mark.long
def test_what_a_phone_sends_is_on_the_screen_after_a_minute(opened: Opener, office: Office) -> None:
    mac = ROOMS[0]["mac"]
    for day in range(20):
        raw = f"0201060303aafe1116aafe2000{2600 + 5 * day:04x}1500{99 - day:08x}00000384"
        item = {"staff_id": "battery", "mac": mac, "rssi": -60, "raw": raw}
        item["timestamp"] = int(time.time()) - day * DAY_SECONDS
        assert office.api("POST", "/detections", json=item).status_code == 200

    def is_told() -> bool:
        rows = office.api("GET", "/beacons/batteries").json()["data"]
        return [row["mac"] for row in rows if row["battery"]] == [mac]

    eventually(is_told, 120)
    page = opened("/directory")
    [row] = page.locator("#batteries-next li").all()
    expect(row).to_contain_text("2,600 mV, low")
    expect(row).to_contain_text("empty about ")
