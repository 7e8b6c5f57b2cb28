"""Coverage: what is unwatched?"""

import re
import time

import pytest
from playwright.sync_api import Page, expect

from scripts.processes.waiting import eventually
from tests.page.conftest import Office, Opener
from tests.page.house import ROOMS, answer, crowd, furnished

# A level of its own, which the demo does not walk.
LEVEL = "21"
SPOTS = {"AABB21000001": ("West", 0), "AABB21000002": ("Middle", 20), "AABB21000003": ("East", 50)}


def build(office: Office) -> None:
    for mac, (location, x) in SPOTS.items():
        body = {"level": LEVEL, "location": location, "x": x, "y": 0}
        assert office.api("PUT", f"/beacons/{mac}", json=body).status_code == 200
    # West an hour ago, Middle now, East never.
    eventually(lambda: known(office, "AABB21000001", 3700), 30)
    # What is heard last may go to the service that does not know the beacon yet.
    eventually(lambda: known(office, "AABB21000002", 0) and is_at(office, "Middle"), 30)


def is_at(office: Office, location: str) -> bool:
    staff = office.api("GET", "/staff").json()["data"]
    return any((person["staff_id"], person["location"]) == ("watch", location) for person in staff)


def known(office: Office, mac: str, ago: int) -> bool:
    """Tell whether a detection got its place: the other service learns of a beacon within 2 s."""
    office.hear("watch", mac, ago=ago)
    seen = office.api("GET", "/staff/watch/detections", params={"limit": 1000}).json()["data"]
    near = [
        detection for detection in seen if abs(detection["timestamp"] - (time.time() - ago)) < 30
    ]
    return any(detection["mac"] == mac and detection["level"] == LEVEL for detection in near)


@pytest.mark.long
def test_gaps_are_striped_named_and_have_somebody_near(opened: Opener, office: Office) -> None:
    build(office)
    page = opened("/coverage?gap=45")
    level = page.get_by_role("region", name=f"Level {LEVEL}")
    tile = level.locator("li")
    expect(tile.filter(has_text="West")).to_have_class(re.compile("gap"))
    expect(tile.filter(has_text="West")).to_contain_text("1 h 1 min")
    expect(tile.filter(has_text="Middle")).to_have_class(re.compile("ok"))
    expect(tile.filter(has_text="East")).to_contain_text("never")
    gap = page.locator("#gaps li").filter(has_text=f"East, level {LEVEL}")
    expect(gap).to_contain_text("Nearest: Staff watch, 30 m away, Middle")
    never = re.compile(r"registered \d+ (s|min) ago, not heard yet")
    expect(gap).to_contain_text(never)
    expect(page.locator("#gaps li").first).to_contain_text(never)
    visited = level.locator("li", has_text="West").locator("time")
    expect(visited).to_have_attribute("title", re.compile("UTC$"))
    # The office decides what a gap is.
    page.get_by_label("A gap is").fill("90")
    page.keyboard.press("Enter")
    expect(tile.filter(has_text="West")).to_have_class(re.compile("soon"))
    expect(page).to_have_url(re.compile("gap=90"))
    page.goto(page.url.split("?")[0])
    expect(page.get_by_label("A gap is")).to_have_value("90")


def test_a_level_shows_its_gaps_on_the_plan(opened: Opener, office: Office) -> None:
    build(office)
    page = opened("/coverage?gap=45")
    page.get_by_role("link", name=re.compile(f"^Level {LEVEL} ")).click()
    expect(page.locator("#plan .zone.gap")).to_have_count(2)
    expect(page.locator("#plan .zone.ok")).to_have_count(1)
    expect(page.locator("#plan")).to_contain_text("never")
    expect(page.locator("#gaps li")).to_have_count(2)
    page.go_back()
    expect(page.get_by_role("region", name="Level 6").locator("li")).to_have_count(8)


def test_without_an_answer_it_does_not_say_that_all_is_well(opened: Opener) -> None:
    unknown = {"X-Circuit-State": "unknown", "Content-Type": "application/json"}
    page = opened(
        "/coverage",
        prepare=lambda page: page.route(
            "**/monitoring/api/coverage", lambda route: route.fulfill(headers=unknown, body="null")
        ),
    )
    expect(page.locator("#banner")).to_contain_text("cannot be told now")
    expect(page.locator("#no-gaps")).to_be_hidden()


@pytest.mark.parametrize("size", [(390, 844), (1280, 800)])
def test_the_name_of_a_gap_is_not_broken_by_what_is_said_of_it(
    opened: Opener, size: tuple[int, int]
) -> None:
    def prepare(page: Page) -> None:
        furnished(crowd(3))(page)
        now = time.time()
        new = ROOMS[0] | {"last_visited": None, "registered_at": now - 60, "macs": []}
        coverage = {"as_of": now, "complete": True, "data": [new]}
        answer(page, "**/monitoring/api/coverage", lambda: coverage)

    page = opened("/coverage", size, prepare=prepare)
    gap = page.locator("#gaps li")
    expect(gap).to_contain_text("registered 1 min ago, not heard yet")
    lines = """(name) => {
      const text = document.createRange();
      text.selectNodeContents(name);
      return new Set([...text.getClientRects()].map(({ top }) => Math.round(top))).size;
    }"""
    assert gap.locator("strong").evaluate(lines) == 1
