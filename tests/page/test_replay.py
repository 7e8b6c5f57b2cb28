"""Replay: where was somebody?"""

import csv
import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import Office, Opener, loaded

# Minutes ago, and the beacon: ten minutes in a lobby, a silence, then two levels higher.
WALK = [
    *((ago, "C2A628020001") for ago in range(100, 89, -1)),
    *((ago, "C2A628020003") for ago in range(89, 85, -1)),
    *((ago, "C2A628040008") for ago in range(60, 57, -1)),
    *((ago, "C2A628020001") for ago in range(57, 55, -1)),
]


@pytest.fixture(scope="module")
def noon(office: Office) -> int:
    """Let somebody walk; return the unix seconds that the minutes of WALK count from."""
    now = int(time.time())
    for minutes, mac in WALK:
        body = {"beacon_address": mac, "timestamp": now - minutes * 60}
        assert office.detect("patrol", **body).status_code == 200
    return now


def replay(opened: Opener, noon: int, at: int, **more: object) -> Page:
    """Open the last two hours of the patrol at some minutes ago."""
    times = {"from": noon - 7200, "to": noon, "at": noon - at * 60}
    return opened(f"/replay?{urlencode({'person': 'patrol'} | times)}", **more)


def local(timestamp: int) -> str:
    """Return what finds a time as a clock in Singapore shows it; after midnight with its day."""
    clock = time.strftime("%H:%M:%S", time.gmtime(timestamp + 8 * 3600))
    return rf"(\d+ [A-Z][a-z]{{2}}, )?{clock}"


def test_a_moment_of_silence_has_the_last_before_and_the_next_after(
    opened: Opener, noon: int
) -> None:
    start, end = noon - 75 * 60, noon - 74 * 60
    page = opened(f"/replay?{urlencode({'person': 'patrol', 'from': start, 'to': end})}")
    state = page.locator("#state")
    before, after = local(noon - 86 * 60), local(noon - 60 * 60)
    expect(state).to_contain_text(re.compile(f"Last before: {before}, level 2, Room 2-02[.]"))
    expect(state).to_contain_text(re.compile(f"Next after: {after}, level 4, Lobby B[.]"))
    assert Axe().run(page).response["violations"] == []
    page.get_by_role("button", name=re.compile(f"^Go to {after}$")).click()
    expect(page.locator("#place")).to_have_text("level 4, Lobby B")
    expect(page).to_have_url(re.compile(f"at={noon - 60 * 60}"))
    # A time alone, of somebody as a list writes them: some of what was around it.
    page.locator("#person").fill("Staff patrol")
    page.get_by_label("or at").fill(clock_field(noon - 84 * 60))
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#place")).to_have_text("Not heard; last level 2, Room 2-02")
    expect(page.locator("#stay")).to_contain_text(re.compile(f"next {after}, level 4, Lobby B"))
    expect(page).to_have_url(re.compile("person=patrol&"))
    expect(page.locator("#from")).to_have_value(clock_field(noon - 99 * 60))
    # Before the range begins, what came before it.
    page.get_by_label("or at").fill(clock_field(noon - 70 * 60))
    page.get_by_role("button", name="Show").click()
    page.get_by_role("slider", name="Time").press("Home")
    expect(page.locator("#place")).to_have_text("level 2, Lobby A")


def clock_field(timestamp: int) -> str:
    """Return a time as a field holds it, in Singapore."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(timestamp + 8 * 3600))


@pytest.mark.long
def test_a_link_answers_where_somebody_was_at_a_time(opened: Opener, noon: int) -> None:
    page = replay(opened, noon, 95)
    expect(page.locator("#place")).to_have_text("level 2, Lobby A")
    expect(page.locator("#stay")).to_contain_text("11 min")
    expect(page.locator("#moment")).to_contain_text(re.compile(local(noon - 95 * 60)))
    expect(page.locator("#moment")).to_have_attribute("title", re.compile("UTC$"))
    expect(page.locator("#plan .marker.now")).to_have_attribute("data-staff", "patrol")
    # In between nobody knows, and it says so, with what was before and what came next.
    page = replay(opened, noon, 70)
    expect(page.locator("#place")).to_have_text("Not heard; last level 2, Room 2-02")
    following = re.compile(f"next {local(noon - 60 * 60)}, level 4, Lobby B")
    expect(page.locator("#stay")).to_contain_text(following)
    expect(page.locator("#plan .marker.stale")).to_be_attached()
    page = replay(opened, noon, 58)
    expect(page.locator("#place")).to_have_text("level 4, Lobby B")


def test_the_scrubber_moves_through_the_trail(opened: Opener, noon: int) -> None:
    page = replay(opened, noon, 95)
    scrubber = page.get_by_role("slider", name="Time")
    scrubber.focus()
    page.keyboard.press("End")
    expect(page.locator("#place")).to_contain_text("last level 2, Lobby A")
    page.keyboard.press("Home")
    expect(page.locator("#place")).to_have_text("Not heard yet")
    expect(scrubber).to_have_attribute("aria-valuetext", re.compile("Not heard yet"))
    scrubber.fill(str(noon - 87 * 60))
    expect(page.locator("#place")).to_have_text("level 2, Room 2-02")
    expect(page.locator("#plan .trail circle")).to_have_count(2)
    expect(page).to_have_url(re.compile(f"at={noon - 87 * 60}"))


@pytest.mark.long
def test_it_plays_pauses_and_ends(opened: Opener, noon: int) -> None:
    page = replay(opened, noon, 95)
    expect(page.locator("#place")).to_have_text("level 2, Lobby A")
    page.locator("#speed").select_option("300")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#place")).not_to_have_text("level 2, Lobby A")
    page.get_by_role("button", name="Pause").click()
    at = page.get_by_role("slider", name="Time").input_value()
    assert int(at) > noon - 95 * 60
    page.get_by_role("slider", name="Time").fill(str(noon - 300))
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # it has come to the end
    expect(page.get_by_role("slider", name="Time")).to_have_value(str(noon))


def test_time_spent_is_told_by_location(opened: Opener, noon: int) -> None:
    page = replay(opened, noon, 95)
    bars = page.locator("#dwell li")
    expect(bars).to_have_count(3)
    expect(bars.nth(0)).to_contain_text("level 2, Lobby A")
    expect(bars.nth(0)).to_contain_text("12 min, 2 visits")
    expect(bars.nth(1)).to_contain_text("level 2, Room 2-02")
    expect(page.locator("#dwell-summary")).to_contain_text("3 locations, heard for 18 min of 2 h")
    widths = [bars.nth(n).locator(".bar").bounding_box() or {"width": 0} for n in range(3)]
    assert widths[0]["width"] > widths[1]["width"] >= widths[2]["width"] > 0


def test_keys_buttons_and_clicks_lead_from_visit_to_visit(opened: Opener, noon: int) -> None:
    page = replay(opened, noon, 95)
    place = page.locator("#place")
    expect(place).to_have_text("level 2, Lobby A")
    page.keyboard.press("Shift+ArrowRight")
    expect(place).to_have_text("level 2, Room 2-02")
    page.get_by_role("slider", name="Time").focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(place).to_have_text("level 4, Lobby B")
    page.get_by_role("button", name="Previous visit").click()
    expect(place).to_have_text("level 2, Room 2-02")
    page.get_by_role("button", name="Next visit").click()
    expect(place).to_have_text("level 4, Lobby B")
    page.locator("#person").focus()
    page.keyboard.press("Shift+ArrowLeft")  # marks what is typed there, and nothing else
    expect(place).to_have_text("level 4, Lobby B")
    # The time spent: from one visit of a spot to the next, and to the first again.
    for ago in (57, 100, 57):
        page.locator("#dwell button").nth(0).click()
        expect(place).to_have_text("level 2, Lobby A")
        expect(page).to_have_url(re.compile(f"at={noon - ago * 60}"))
    ribbon = page.locator("#ribbon")
    box = ribbon.bounding_box() or {"width": 0}
    ribbon.click(position={"x": box["width"] * (120 - 59) / 120, "y": 5})
    expect(place).to_have_text("level 4, Lobby B")


def test_yesterday_and_an_hour_are_chosen(opened: Opener, noon: int) -> None:
    page = replay(opened, noon, 95)
    page.get_by_role("button", name="Yesterday").click()
    today = datetime.fromtimestamp(noon + 8 * 3600, UTC).date().isoformat()  # Singapore
    expect(page.locator("#to")).to_have_value(f"{today}T00:00")
    expect(page.locator("#from")).to_have_value(re.compile("T00:00$"))
    page.get_by_label("Hour").select_option(index=14)  # the first one is none
    expect(page.locator("#from")).to_have_value(re.compile("T13:00$"))
    expect(page.locator("#to")).to_have_value(re.compile("T14:00$"))
    expect(page.locator("#hour option:checked")).to_have_text("13:00")
    expect(page.locator("#state")).to_contain_text("Staff patrol was not heard between")


def test_a_range_in_the_hour_that_is_repeated_is_kept(opened: Opener) -> None:
    start = int(datetime(2026, 10, 25, 0, 45, tzinfo=UTC).timestamp())  # 02:45, summer time
    end = int(datetime(2026, 10, 25, 1, 30, tzinfo=UTC).timestamp())  # 02:30, winter time
    query = urlencode({"person": "patrol", "from": start, "to": end})
    page = opened(f"/replay?{query}", timezone_id="Europe/Berlin")
    expect(page.locator("#state")).to_contain_text("Staff patrol was not heard between")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile(f"from={start}&to={end}"))
    expect(page.locator("#state")).to_contain_text("Staff patrol was not heard between")


def test_others_are_shown_at_the_same_time(opened: Opener, office: Office, noon: int) -> None:
    for ago in (99, 97, 94, 91):
        body = {"beacon_address": "C2A628020003", "timestamp": noon - ago * 60}
        assert office.detect("guest", **body).status_code == 200
    page = replay(opened, noon, 95, size=(1366, 768))
    page.get_by_label("Together with").fill("Staff guest, nobody-at-all")
    page.get_by_role("button", name="Show").click()
    others = page.locator("#companions li")
    expect(others).to_have_count(2)
    page.locator("#dwell button").nth(0).click()
    page.locator("#dwell button").nth(0).click()  # the first visit again
    expect(page.locator("#place")).to_have_text("level 2, Lobby A")
    expect(others.nth(0)).to_contain_text("Staff guest")
    expect(others.nth(0)).to_contain_text("not heard yet")
    page.get_by_role("slider", name="Time").fill(str(noon - 95 * 60))
    expect(others.nth(0)).to_contain_text("level 2, Room 2-02")
    expect(others.nth(0).locator(".block")).to_have_count(1)
    expect(others.nth(1)).to_contain_text("was never heard")
    expect(page.locator("#plan .marker.now")).to_have_count(2)
    expect(page.locator("#play")).to_be_in_viewport(ratio=1)
    plan, bar = (page.locator(selector).bounding_box() for selector in ("#plan", ".timeline"))
    assert plan
    assert bar
    assert plan["y"] + plan["height"] <= bar["y"]  # nobody is behind it
    others.nth(0).get_by_role("link").click()  # about whom it is can be changed
    expect(page.locator("#place")).to_have_text("level 2, Room 2-02")
    expect(page.locator("#companions")).to_contain_text("Staff patrol")
    page.get_by_label("Together with").fill("1 2 3 4 5")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#state")).to_have_text("5 others are too many: choose up to 4.")


def test_what_is_shown_can_be_downloaded(opened: Opener, noon: int, tmp_path: Path) -> None:
    page = replay(opened, noon, 95)
    expect(page.locator("#player")).to_be_visible()
    for name in ("CSV", "GeoJSON", "GPX"):
        with page.expect_download() as started:
            page.get_by_role("link", name=name).click()
        span = [time.gmtime(t + 8 * 3600) for t in (noon - 7200, noon)]  # Singapore
        first, last = (time.strftime("%Y-%m-%d_%H%M", moment) for moment in span)
        end = last[11:] if first[:10] == last[:10] else last
        assert started.value.suggested_filename == f"staff-patrol_{first}-{end}.{name.lower()}"
        started.value.save_as(tmp_path / name)
    rows = list(csv.DictReader((tmp_path / "CSV").read_text().splitlines()))
    assert len(rows) == len(WALK)
    assert rows[0]["location"] == "Lobby A"
    assert {row["staff_id"] for row in rows} == {"patrol"}
    assert {row["local_time"][-6:] for row in rows} == {"+08:00"}
    shapes = json.loads((tmp_path / "GeoJSON").read_text())["features"]
    assert len(shapes) == len(WALK)
    assert shapes[-1]["geometry"]["coordinates"] == [4, 12]
    track = (tmp_path / "GPX").read_text()
    assert track.count("<trkpt ") == len(WALK)
    assert track.count("<name>Lobby A</name>") == 2  # stays


def test_a_person_and_a_range_are_chosen(opened: Opener, office: Office, noon: int) -> None:
    page = opened("/replay")
    expect(page.locator("#state")).to_have_text("Choose a person.")
    page.keyboard.press("/")
    page.keyboard.type("patrol")
    page.get_by_role("button", name="This shift").click()
    expect(page.locator("#place")).to_contain_text("Lobby A")
    expect(page).to_have_url(re.compile("person=patrol"))
    page.get_by_role("button", name="Last 15 minutes").click()
    expect(page.locator("#state")).to_contain_text("Staff patrol was not heard between")
    page.locator("#person").fill("nobody-at-all")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#state")).to_contain_text("Staff nobody-at-all was never heard.")
    expect(page.get_by_role("button", name="Try again")).to_be_hidden()
    page.go_back()
    expect(page.locator("#person")).to_have_value("patrol")


SCRIPTS, CLOCK = "**/page/dom.js", "**/monitoring/api/staff*"


@pytest.mark.parametrize(
    ("screen", "late"),
    [("", SCRIPTS), ("/replay", SCRIPTS), ("/replay", CLOCK), ("/directory", SCRIPTS)],
)
def test_what_is_typed_before_a_screen_is_ready_is_kept(
    opened: Opener, screen: str, late: str
) -> None:
    held: list[Route] = []

    def hold(page: Page) -> None:
        page.route(late, lambda route: held.append(route))

    page = opened(screen, prepare=hold, wait="commit")
    field = page.locator("[data-search]")
    while not held:
        page.wait_for_timeout(50)
    field.fill("3")
    page.unroute(late)  # lets go what is held, too
    loaded(page)
    expect(field).to_have_value("3")
    expect(page).to_have_url(re.compile("[?&](person|q)=3"))


def test_a_history_that_cannot_be_read_is_asked_for_again(opened: Opener, noon: int) -> None:
    def fail(page: Page) -> None:
        headers = {"X-Circuit-State": "open", "Content-Type": "application/json"}
        page.route(
            "**/detections*", lambda route: route.fulfill(status=503, headers=headers, body="{}")
        )

    page = replay(opened, noon, 95, prepare=fail)
    expect(page.locator("#state")).to_contain_text("The circuit is open")
    page.unroute("**/detections*")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#place")).to_have_text("level 2, Lobby A")


def test_a_viewers_wrong_clock_does_no_harm(opened: Opener, office: Office) -> None:
    office.hear("clocked", "C2A628020001", ago=60)
    ahead = """(() => {
        const real = Date.now, Real = Date, by = 3 * 3600e3;
        window.Date = class extends Real {
            constructor(...given) { given.length ? super(...given) : super(real() + by); }
            static now() { return real() + by; }
        };
    })()"""
    page = opened("/replay?person=clocked", prepare=lambda page: page.add_init_script(ahead))
    expect(page.locator("#place")).to_contain_text("level 2, Lobby A")
    page.get_by_role("button", name="Last 15 minutes").click()
    expect(page.locator("#place")).to_contain_text("level 2, Lobby A")
    assert abs(page.evaluate("Date.now()") / 1000 - time.time() - 3 * 3600) < 600


def test_the_visits_can_be_printed(opened: Opener, office: Office) -> None:
    now = int(time.time())
    for ago, mac in ((900, "C2A628040002"), (800, "C2A628040002"), (300, "C2A628040003")):
        assert office.detect("printed", beacon_address=mac, timestamp=now - ago).status_code == 200
    address = f"/replay?person=printed&from={now - 1000}&to={now}"
    page = opened(address, timezone_id="Asia/Singapore")
    expect(page.locator("#player")).to_be_visible()
    expect(page.get_by_role("button", name="Print")).to_be_visible()
    expect(page.locator(".printed")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.get_by_role("heading", name="Visits of staff printed")).to_be_visible()
    expect(page.locator("#printed-range")).to_contain_text("(Asia/Singapore)")
    rows = page.locator("#printed-visits tr")
    expect(rows).to_have_count(2)
    begun = datetime.fromtimestamp(now - 900, ZoneInfo("Asia/Singapore"))
    expect(rows.nth(0)).to_contain_text(f"{begun:%Y-%m-%d %H:%M:%S}")
    expect(rows.nth(0)).to_contain_text("level 4Room 4-01")
    expect(page.locator("#form")).to_be_hidden()
    expect(page.locator("header")).to_be_hidden()
