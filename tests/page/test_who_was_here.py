"""Who was near a room at a time: asked on Coverage and on the plan, told with links to Replay."""

import json
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from scripts.processes.waiting import eventually
from tests.page.conftest import Office, Opener, loaded
from tests.page.house import ROOMS, crowd, furnished

LEVEL, MAC = "22", "AABB22000001"
ROOM = "/coverage?room=Room+4-03&room_level=4"
WALL, LAPTOP, PHONE = (1920, 1080), (1366, 768), (390, 844)


def visit(staff_id: object, ago: int, lasted: int) -> dict[str, Any]:
    start = int(time.time()) - ago
    return {
        "staff_id": staff_id,
        "level": "4",
        "from": start,
        "to": start + lasted,
        "detections": 9,
    }


def answered(
    visits: list[dict[str, Any]], asked: list[str] | None = None, status: int = 200
) -> Callable[[Page], None]:
    """Return what furnishes a page, and answers its questions with these visits."""

    def prepare(page: Page) -> None:
        def answer(route: Route) -> None:
            if asked is not None:
                asked.append(route.request.url)
            body = {"data": visits, "next": None} if status == 200 else visits[0]
            route.fulfill(status=status, content_type="application/json", body=json.dumps(body))

        furnished(crowd(14))(page)
        page.route("**/api/v1/visits?*", answer)

    return prepare


def test_it_tells_who_was_there_from_when_to_when(opened: Opener, office: Office) -> None:
    minute = int(time.time()) // 60 * 60 - 7200
    for after in (0, 120, 240):
        office.hear("vault-1", MAC, ago=int(time.time()) - minute - after)
    place = {"level": LEVEL, "location": "Vault", "x": 0, "y": 0}
    change = f"/beacons/{MAC}?correct_past=1"  # 503: the database was slow
    eventually(lambda: office.api("PUT", change, json=place).status_code == 200, 120)
    page = opened("/coverage")
    tile = page.get_by_role("button", name=re.compile("^Vault"))
    tile.click()
    dialog = page.get_by_role("dialog", name="Who was here?")
    expect(dialog.get_by_label("Room")).to_have_value(re.compile("Vault"))
    expect(dialog.get_by_label("Within minutes")).to_have_value("15")
    expect(dialog).to_contain_text(f"Nobody was heard in Vault, level {LEVEL}, between")
    dialog.get_by_label("Time").fill(local_time(minute + 60))
    dialog.get_by_role("button", name="Show").click()
    expect(dialog).to_contain_text("1 person heard in Vault")
    link = dialog.get_by_role("link", name="Staff vault-1")
    query = parse_qs(urlsplit(link.get_attribute("href") or "").query)
    assert query["person"] == ["vault-1"]
    assert query["at"] == [str(minute + 60)]
    row = dialog.get_by_role("listitem")
    begin, end = (local_time(at)[11:] for at in (minute, minute + 240))
    # With the day where midnight is near.
    expect(row).to_have_text(re.compile(f"{begin} . (.+, )?{end}$"))
    expect(row.locator("time")).to_have_attribute("title", re.compile("UTC$"))
    expect(page).to_have_url(re.compile(f"room=Vault&room_level={LEVEL}&at={minute + 60}"))
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(tile).to_be_focused()
    expect(page).not_to_have_url(re.compile("room"))
    page.go_back()
    expect(dialog).to_contain_text("1 person heard in Vault")
    dialog.get_by_role("link", name="Staff vault-1").click()
    expect(page.locator("#place")).to_have_text(re.compile("Vault"))


def local_time(seconds: int) -> str:
    """Return a time in the zone of the tests' browser, Singapore."""
    return time.strftime("%Y-%m-%dT%H:%M", time.gmtime(seconds + 8 * 3600))


def test_a_room_of_the_plan_is_asked_for_by_a_click(opened: Opener) -> None:
    asked: list[str] = []
    page = opened("?level=4", prepare=answered([visit(7, 600, 60)], asked))
    loaded(page)
    zone = page.locator("#plan .zone").filter(has_text=re.compile("^Room 4-03$"))
    assert asked == [], "closed, it asks nothing"
    zone.locator("polygon").click(position={"x": 3, "y": 30})
    dialog = page.get_by_role("dialog", name="Who was here?")
    expect(dialog).to_contain_text("1 person heard in Room 4-03, level 4")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("Tab")
    assert len(asked) == 1
    query = parse_qs(urlsplit(asked[0]).query)
    now = time.time()
    assert abs(int(query["from"][0]) - (now - 1200)) < 90
    assert abs(int(query["to"][0]) - (now + 300)) < 90


def test_a_name_is_asked_for_on_all_levels(opened: Opener, office: Office) -> None:
    lobbies = {room["level"]: room["mac"] for room in ROOMS if room["location"] == "Lobby B"}
    minute = int(time.time()) // 60 * 60 - 5 * 3600  # when other tests heard nobody
    for level in ("2", "5"):
        office.hear(f"both-{level}", lobbies[level], ago=int(time.time()) - minute)
    page = opened(f"/coverage?room=Lobby+B&room_level=2&at={minute}")
    dialog = page.get_by_role("dialog", name="Who was here?")
    expect(dialog.get_by_role("listitem")).to_have_text([re.compile("^Staff both-2at")])
    dialog.get_by_label("Room").select_option("Lobby B, any level")
    expect(dialog).to_contain_text("2 people heard in Lobby B, any level, between")
    rows = dialog.get_by_role("listitem")
    expect(rows).to_have_text([re.compile(f"^Staff both-{level}Level {level}at") for level in "25"])
    expect(page).to_have_url(re.compile("room=Lobby(%20|\\+)B&at="))
    assert Axe().run(page).response["violations"] == []
    page.reload()
    expect(rows).to_have_count(2)
    one_level = page.locator("#room option").filter(has_text=re.compile("^Room .*any level$"))
    expect(one_level).to_have_count(0)  # a name of one level needs none


@pytest.mark.parametrize("path", ["/coverage", ""])
def test_the_keyboard_reaches_it(opened: Opener, path: str) -> None:
    page = opened(path, prepare=answered([visit(7, 600, 60)]))
    loaded(page)
    opener = page.get_by_role("button", name="Who was in a room?")
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Who was here?")
    expect(dialog).to_contain_text("heard in Lobby A, level 1")
    expect(dialog.get_by_label("Time")).to_be_focused()
    dialog.get_by_label("Room").select_option("Lobby B, level 4")
    expect(dialog).to_contain_text("heard in Lobby B, level 4")
    dialog.get_by_label("Within minutes").fill("5")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("within=5"))
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()


def test_escape_closes_the_room_and_not_the_person(opened: Opener) -> None:
    prepare = answered([visit(7, 600, 60)])
    page = opened("?person=100&room=Room+4-03&room_level=4", prepare=prepare)
    dialog = page.get_by_role("dialog", name="Who was here?")
    expect(dialog).to_contain_text("1 person")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#person")).to_be_visible()


PROBLEMS: dict[str, tuple[int, dict[str, Any], str]] = {
    "away": (
        503,
        {"detail": "the database does not answer; send the request again"},
        "Who was there could not be read.",
    ),
    "too much": (
        400,
        {"errors": [{"field": "from", "reason": "must be 17 or later"}]},
        "Too much was heard there in that time: choose fewer minutes.",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_failure_is_told_with_what_to_do(opened: Opener, problem: str) -> None:
    status, body, advice = PROBLEMS[problem]
    asked: list[str] = []
    page = opened(ROOM, prepare=answered([body], asked, status))
    dialog = page.get_by_role("dialog", name="Who was here?")
    expect(dialog.get_by_role("status")).to_contain_text(advice)
    expect(dialog).not_to_contain_text("Nobody")
    again = dialog.get_by_role("button", name="Try again")
    expect(again).to_be_visible(visible=status == 503)
    if status == 503:
        again.click()
        expect(dialog.get_by_role("status")).to_contain_text(advice)
        assert len(asked) == 2


def test_a_time_to_come_is_no_empty_room(opened: Opener) -> None:
    page = opened(f"{ROOM}&at={int(time.time()) + 7200}", prepare=answered([]))
    expect(page.locator("#room-state")).to_contain_text("still to come")


def test_an_address_with_no_time_asks_for_one(opened: Opener) -> None:
    asked: list[str] = []
    page = opened(f"{ROOM}&at=1e18&within=x", prepare=answered([], asked))
    expect(page.locator("#room-state")).to_have_text("Choose a time.")
    assert asked == []


@pytest.mark.parametrize(("size", "scheme"), [(WALL, "dark"), (LAPTOP, "light"), (PHONE, "dark")])
def test_it_fits_and_axe_finds_nothing(opened: Opener, size: tuple[int, int], scheme: str) -> None:
    stays = [(7, 1500, 1400), ("ann.lee", 700, 0), *((n, 60 * n, 40) for n in range(1, 12))]
    page = opened(
        ROOM, size, prepare=answered([visit(*stay) for stay in stays]), color_scheme=scheme
    )
    dialog = page.get_by_role("dialog", name="Who was here?")
    expect(dialog.get_by_role("listitem")).to_have_count(13)
    expect(dialog.get_by_role("listitem").first).to_contain_text("before")
    assert Axe().run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for control in dialog.locator("a:visible, button:visible, input, select").all():
        box = control.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size[0]
