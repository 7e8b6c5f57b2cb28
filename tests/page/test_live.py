"""Live: where is everyone?"""

import re
import time
from datetime import datetime
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scripts.processes.waiting import eventually
from tests.page.conftest import Office, Opener, loaded
from tests.page.house import crowd, furnished

LOBBY_B_6 = "C2A628060008"
LOBBY_B_3 = "C2A628030008"  # no other test puts anybody there: a ghost is drawn where there is room
STRANGER = "AABBCCDDEE01"


def row(page: Page, staff_id: object) -> Any:
    return page.locator(f"#people [data-staff='{staff_id}']")


def placed(office: Office, staff_id: str, mac: str) -> str:
    """Hear a beacon, and tell where that is now: the services learn of an edit within seconds."""
    office.hear(staff_id, mac)
    everyone = office.api("GET", "/staff").json()["data"]
    return next(str(person["location"]) for person in everyone if person["staff_id"] == staff_id)


def test_everybody_is_in_the_list_and_in_the_building(opened: Opener, office: Office) -> None:
    assert office.detect(0).status_code == 200
    page = opened()
    for staff_id in range(1, 15):
        level = str((staff_id + 1) // 2)
        expect(row(page, staff_id)).to_contain_text(f"Level {level}")
        expect(row(page, staff_id)).to_contain_text("now")
    expect(row(page, 0)).to_contain_text("Team 6 Beacon 1")
    expect(row(page, 0)).to_contain_text("Unknown level")
    expect(page.locator("#summary")).to_contain_text("heard in the last 15 minutes")
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.locator("#section .strip").last).to_be_visible()
    shown = page.locator("#section .marker")
    eventually(lambda: shown.count() >= 8, 30)
    # From the top: the highest level first, what is unknown below the ground.
    levels = page.locator("#section .level").all_text_contents()
    assert levels[-8:] == [*(f"Level {level}" for level in range(7, 0, -1)), "Unknown"]


def test_a_level_has_an_address_a_plan_and_a_list(opened: Opener) -> None:
    page = opened()
    page.locator("#levels a[href$='level=4']").click()
    expect(page).to_have_url(re.compile(r"\?level=4$"))
    expect(page.locator("#plan .zone")).to_have_count(8)
    expect(page.locator("#plan .marker:not(.more)")).to_have_count(2)
    expect(page.locator("#people [data-staff]")).to_have_count(2)
    expect(page.locator("#levels [aria-current]")).to_contain_text("Level 4")
    expect(page.locator("#plan")).to_contain_text("Lobby B")
    page.go_back()
    expect(page.locator("#section")).to_be_visible()
    expect(row(page, 1)).to_be_visible()
    page.go_forward()
    expect(row(page, 7)).to_be_visible()
    expect(row(page, 1)).to_have_count(0)


@pytest.mark.long
def test_slash_searches_and_the_order_can_be_chosen(opened: Opener, office: Office) -> None:
    page = opened()
    expect(row(page, 14)).to_be_visible()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("level 5")
    expect(page.locator("#people [data-staff]")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"q=level\+5"))
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("nobody like this")
    expect(page.locator("#nobody")).to_contain_text("Nobody matches")
    page.locator("#search").fill("")
    office.hear("zz-last", LOBBY_B_6, ago=200)
    page.locator("#sort").select_option("heard")
    page.mouse.move(5, 5)
    expect(row(page, "zz-last")).to_contain_text("min ago")
    heard = "[...document.querySelectorAll('#people .row:not(.gone) time')].map((t) => t.dateTime)"
    times = page.evaluate(heard)
    assert len(times) >= 15
    assert times == sorted(times, reverse=True)
    page.reload()
    expect(page.locator("#sort")).to_have_value("heard")


def test_a_person_has_details_and_a_trail(opened: Opener, office: Office) -> None:
    for ago, mac in ((600, "C2A628060001"), (480, "C2A628060002"), (5, LOBBY_B_6)):
        office.hear("walker", mac, ago=ago)
    office.shown("walker")
    page = opened("?level=6")
    row(page, "walker").click()
    details = page.locator("#person")
    expect(details).to_contain_text("Staff walker")
    expect(details).to_contain_text("Lobby B, level 6")
    expect(details).to_contain_text("C2:A6:28:06:00:08, -60 dBm")
    expect(details.locator(".steps li")).to_have_count(3)
    expect(page.locator("#plan .trail circle")).to_have_count(3)
    expect(page.locator("#plan .marker.picked")).to_have_attribute("data-staff", "walker")
    expect(page).to_have_url(re.compile("person=walker"))
    expect(details.get_by_role("link")).to_have_attribute(
        "href", re.compile("replay.person=walker")
    )
    page.keyboard.press("Escape")
    expect(details).to_be_hidden()
    page.locator("#plan .marker[data-staff='walker']").click()
    expect(details).to_be_visible()
    details.get_by_role("button", name="Close").click()
    expect(details).to_be_hidden()


SEEN_AGO = (("just", 2), ("pause", 130), ("long", 800), ("lost", 7500), ("home", 13 * 3600 + 300))


def test_freshness_is_told_in_words_and_shape(opened: Opener, office: Office) -> None:
    for staff_id, ago in SEEN_AGO:
        office.hear(staff_id, LOBBY_B_3, ago=ago)
    office.shown("home")
    page = opened("?level=3")
    expected = [
        ("just", "now", "now"),
        ("pause", "recent", "2 min ago"),
        ("long", "stale", "stale 13 min"),
    ]
    for staff_id, mark, words in expected:
        expect(row(page, staff_id).locator(".heard")).to_have_text(re.compile(words))
        expect(row(page, staff_id).locator(f".mark.{mark}")).to_be_visible()
        expect(page.locator(f"#plan .marker.{mark}[data-staff='{staff_id}']")).to_be_attached()
    expect(page.locator("#plan .marker.gone[data-staff='lost']")).to_be_attached()
    # Who was heard before this shift is in the list, at its end, and not on the plan.
    expect(page.locator("#people [data-staff]").last).to_contain_text("Staff lost")
    expect(row(page, "home")).to_contain_text("stale 13 h")
    expect(page.locator("#plan .marker[data-staff='home']")).to_have_count(0)


@pytest.mark.parametrize(("staff_id", "ago"), [("ahead", -7200), ("behind", 7200)])
def test_a_phone_whose_clock_is_wrong_was_heard_when_we_heard_it(
    opened: Opener, office: Office, staff_id: str, ago: int
) -> None:
    now = int(time.time())
    heard = {"staff_id": staff_id, "mac": LOBBY_B_6, "rssi": -60, "timestamp": now - ago}
    sent = {"detections": [heard]} | ({"sent_at": now - ago} if staff_id == "behind" else {})
    assert office.api("POST", "/detections", json=sent).status_code == 200
    office.shown(staff_id)
    page = opened(f"?level=6&person={staff_id}")
    wrong = re.compile(f"(1 h 59 min|2 h) {staff_id}")
    expect(page.locator("#person .facts")).to_contain_text(wrong)
    expect(row(page, staff_id)).to_contain_text(wrong)
    at = row(page, staff_id).locator("time").get_attribute("datetime")
    assert at is not None
    assert datetime.fromisoformat(at).timestamp() == pytest.approx(now, abs=60)


def test_unknown_beacons_and_levels_have_their_place(opened: Opener, office: Office) -> None:
    office.hear("lost", STRANGER)
    office.shown("lost")
    page = opened()
    expect(row(page, "lost")).to_contain_text("unknown beacon AA:BB:CC:DD:EE:01")
    expect(
        page.locator("#section .marker[data-staff='lost'], #section .marker.more")
    ).not_to_have_count(0)
    page.get_by_role("link", name=re.compile("^Unknown level")).click()
    expect(page.locator("#plan .marker[data-staff='lost']")).to_be_visible()
    expect(page.locator("#plan")).to_contain_text("No position in the directory")


@pytest.mark.long
def test_markers_glide_and_nothing_jumps(opened: Opener, office: Office) -> None:
    office.hear("glider", "C2A628050001", ago=1)
    office.shown("glider")
    page = opened("?level=5")
    expect(page.locator("#plan .marker[data-staff='glider']")).to_be_visible()
    expect(page.locator("#people [data-staff]")).to_have_count(3)
    page.evaluate(
        """() => {
            window.shifts = 0;
            new PerformanceObserver((list) => {
                for (const shift of list.getEntries()) window.shifts += shift.value;
            }).observe({ type: "layout-shift" });
            window.nodes = [...document.querySelectorAll(".marker, #people [data-staff]")];
            window.glider = document.querySelector(".marker[data-staff='glider']");
            window.place = window.glider.style.transform;
        }"""
    )
    office.hear("glider", "C2A628050008")
    eventually(lambda: page.evaluate("glider.style.transform !== place"), 60)
    assert page.evaluate("nodes.every((node) => node.isConnected)"), "they are not made anew"
    assert page.evaluate("shifts") < 0.02
    duration = "getComputedStyle(document.querySelector('.marker')).transitionDuration"
    assert page.evaluate(duration) == "1.2s"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(duration) in ("0s", "0.01s")


def test_times_are_in_the_viewers_zone_and_utc_on_hover(opened: Opener) -> None:
    page = opened("?person=7")
    heard = page.locator("#person .facts time")
    expect(heard).to_have_attribute("title", re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$"))
    text, title = heard.inner_text(), heard.get_attribute("title") or ""
    there = re.search(r"(\d\d):\d\d:\d\d", text)
    utc = re.search(r"(\d\d):\d\d:\d\d UTC", title)
    assert there, text
    assert utc, title
    assert (int(there[1]) - int(utc[1])) % 24 == 8  # Singapore


def test_on_its_own_port_it_shows_and_says_what_it_cannot_do(
    opened: Opener, office: Office
) -> None:
    page = opened()
    port = office.environment["WAYMARK_MONITORING_PORT"]
    page.goto(f"http://127.0.0.1:{port}/monitoring/directory")
    expect(page.locator("#beacons tbody tr").first).to_be_visible()
    expect(page.locator(".notice:visible")).to_contain_text("own port")
    expect(page.locator("#add")).to_be_disabled()
    page.goto(f"http://127.0.0.1:{port}/monitoring?level=4")
    expect(row(page, 7)).to_be_visible()
    loaded(page)


@pytest.mark.long
@pytest.mark.parametrize("size", [(360, 740), (1280, 800), (3840, 2160)])
def test_it_fits_every_screen(opened: Opener, size: tuple[int, int]) -> None:
    page = opened("?person=7", size)
    for path in ("?person=7", "?level=4", "/replay?person=7", "/coverage", "/directory", "/system"):
        if path != "?person=7":
            page.goto(page.url.split("/monitoring")[0] + "/monitoring" + path)
        loaded(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0], path


def test_the_longest_names_fit(opened: Opener, office: Office) -> None:
    long = {"level": "longest", "location": "y" * 64}
    try:
        assert office.api("PUT", "/beacons/AABBCCDDEE08", json=long).status_code == 200
        eventually(lambda: placed(office, "x" * 64, "AABBCCDDEE08") == "y" * 64, 30)
        for width in (360, 1280):
            page = opened(f"?level=longest&person={'x' * 64}", (width, 800))
            expect(row(page, "x" * 64)).to_be_visible()
            expect(page.locator("#person")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        office.api("DELETE", "/beacons/AABBCCDDEE08")


def test_nobody_of_that_name_is_said(opened: Opener) -> None:
    page = opened("?person=nobody-at-all")
    expect(page.locator("#person")).to_contain_text("nothing was ever heard of staff member")


def test_a_level_that_is_not_there_is_told(opened: Opener) -> None:
    page = opened("?level=99", prepare=furnished(crowd(14)))
    notice = page.get_by_text("There is no level 99: all levels are shown.")
    expect(notice).to_be_visible()
    page.locator("#levels").get_by_text("Level 4").click()
    expect(notice).to_be_hidden()
