"""Ten pages at once, and a full house: 500 beacons and 200 staff."""

import json
import time
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from monitoring.page_data import MOST_PEOPLE
from scripts.processes.waiting import eventually
from tests.page.conftest import Office, Opener, loaded
from tests.page.house import crowd as people
from tests.page.house import furnished, named

pytestmark = pytest.mark.long

BEACONS, STAFF = 500, 200
PAGES, WATCHED_SECONDS = 10, 8


def ingested(office: Office, since: float) -> int:
    """Return how many requests of the page the gateway passed to the ingest services."""
    count = 0
    for line in (office.data / "log" / "requests.log").read_text().splitlines():
        entry = json.loads(line)
        written_at = time.mktime(time.strptime(entry["time"][:19], "%Y-%m-%dT%H:%M:%S"))
        zone = int(entry["time"][19:22]) * 3600
        if written_at - time.timezone - zone < since or not entry["path"].startswith("/api/v1/"):
            continue
        count += (
            entry["path"] != "/api/v1/system"
        )  # the health monitor reads it, with or without pages
    return count


def test_ten_pages_cost_what_one_does(opened: Opener, office: Office) -> None:
    for _ in range(PAGES):
        loaded(opened("?level=4"))
    began = time.time()
    eventually(lambda: time.time() - began > WATCHED_SECONDS, WATCHED_SECONDS + 30)
    watched = time.time() - began
    count = ingested(office, began)
    # One read in 2 s for everybody (SNAPSHOT_SECONDS), and now and then the directory.
    assert 2 <= count <= watched / 2 + 4, f"{count} requests in {watched:.0f} s"


@pytest.fixture
def crowd(office: Office) -> None:
    """Fill a level with beacons and staff."""
    rows = [f"AABB00{n:06X},51,Spot {n},{n % 25 * 4},{n // 25 * 4}" for n in range(BEACONS)]
    body = "mac,level,location,x,y\n" + "\n".join(rows)
    text = {"Content-Type": "text/csv"}
    done = office.api("POST", "/beacons/import", data=body, headers=text)
    assert done.status_code == 200, done.text
    # Each service learns of them within 2 s: with ten answers in a row, both have.
    eventually(lambda: all(count_of_beacons(office) >= BEACONS for _ in range(10)), 30)
    now = int(time.time())
    everyone = [
        {"staff_id": f"c{n}", "mac": f"AABB00{n % 60:06X}", "rssi": -50, "timestamp": now}
        for n in range(STAFF)
    ]
    answer = office.api("POST", "/detections", json={"detections": everyone})
    assert answer.json()["counts"]["stored"] == STAFF, answer.text


def count_of_beacons(office: Office) -> int:
    return len(office.api("GET", "/beacons").json()["data"])


def test_it_works_with_500_beacons_and_200_staff(
    opened: Opener, office: Office, crowd: None
) -> None:
    page = opened("?level=51")
    expect(page.locator("#plan .zone")).to_have_count(BEACONS)
    expect(page.locator("#people [data-staff]")).to_have_count(STAFF)
    expect(page.locator("#levels [aria-current]")).to_contain_text(str(STAFF))
    shown = page.locator("#plan .marker:not(.more)").count()
    more = page.locator("#plan .marker.more text").all_text_contents()
    assert shown + sum(int(text.lstrip("+")) for text in more) == STAFF, "nobody is dropped"
    page.locator("#search").fill("c199")
    expect(page.locator("#people [data-staff]")).to_have_count(1)
    page.locator("#people [data-staff='c199']").click()
    expect(page.locator("#person")).to_contain_text("Spot 19, level 51")
    page.get_by_role("link", name="All levels").click()
    expect(page.locator("#section .strip")).not_to_have_count(0)
    page.goto(page.url.split("?")[0] + "/coverage?level=51")
    expect(page.locator("#plan .zone")).to_have_count(BEACONS)
    took_ms = page.evaluate(
        """async () => {
            const { zones } = await import("/monitoring/static/rules/places/geometry.js");
            const at = (n) => ({ x: n % 25, y: Math.floor(n / 25) });
            const spots = Array.from({ length: 500 }, (_, n) => at(n));
            const began = performance.now();
            zones(spots, { left: -1, right: 26, top: -1, bottom: 21 });
            return performance.now() - began;
        }"""
    )
    assert took_ms < 3000


def test_of_more_people_than_it_can_show_it_says_so_and_shows_a_team(opened: Opener) -> None:
    everybody = people(MOST_PEOPLE)
    house = furnished(everybody, [named(100, "Jane Tan", "Night")])
    answers: list[str] = []

    def prepare(page: Page) -> None:
        house(page)
        page.route("**/monitoring/api/staff", first_page)
        page.route("**/monitoring/api/staff?team=Night", team)

    def first_page(route: Route) -> None:
        answers.append("first")
        tell(route, everybody, {"X-More": "true"})

    def team(route: Route) -> None:
        answers.append("team")
        tell(route, everybody[:1], {})

    page = opened("", prepare=prepare)
    loaded(page)
    expect(page.locator("#missing")).to_contain_text("choose a team")
    expect(page.locator("#summary")).to_contain_text("At least ")
    expect(page.locator("#people [data-staff]")).to_have_count(500)
    expect(page.locator("#nobody")).to_contain_text("Only the first 500 are listed")
    assert "team" not in answers
    page.locator("#team").select_option("Night")
    expect(page.locator("#missing")).to_be_hidden()
    expect(page.locator("#people [data-staff]")).to_have_count(1)
    expect(page.locator("#summary")).to_contain_text("1 person of the team Night")
    page.locator("#team").select_option("")
    expect(page.locator("#missing")).to_be_visible()


def tell(route: Route, staff: list[dict[str, Any]], more: dict[str, str]) -> None:
    now = time.time()
    heard = [{"timestamp": now - person["age_seconds"]} | person for person in staff]
    headers = {"X-Circuit-State": "closed", "X-Taken-At": f"{now:.0f}"} | more
    route.fulfill(headers=headers, json={"as_of": now, "complete": True, "data": heard})
