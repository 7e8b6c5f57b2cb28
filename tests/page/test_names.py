"""Whoever has a name is called by it on every screen, found by it, and exported with it."""

import re
import time
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.page.conftest import Opener, Sheets, loaded
from tests.page.house import ROOMS, answer, furnished, named, person
from tests.page.test_list_csv import saved
from tests.page.test_lost_contact import NOTED

NAMES = [
    named(7, "Jane Tan", "Front desk"),
    named(8, "Mohammed Abdul Rahman", "Security"),
    named(9, "Siti Lim", "Security"),
    named("away", "Ravi Kumar", "Front desk"),
    named("off", "Off Duty", "Front desk", on_duty=False),
    named(11, "Siti Lim", "Front desk"),
]
LOST_SECONDS = 1200


def house() -> list[dict[str, Any]]:
    now = int(time.time())
    far = [
        person(staff_id, ROOMS[n], LOST_SECONDS) | {"timestamp": now - LOST_SECONDS}
        for n, staff_id in enumerate(("away", "off", "stray"))
    ]
    return [person(staff_id, ROOMS[25]) for staff_id in (7, 8, 12)] + far


def opened_by(opener: Opener, path: str, **more: Any) -> Page:
    page = opener(path, prepare=furnished(house(), NAMES), **more)
    loaded(page)
    return page


def test_live_calls_people_by_name_and_has_their_ids_beside(opened: Opener) -> None:
    page = opened_by(opened, "?level=4")
    who = page.locator("#people .who")
    expect(who.first).to_have_text("Jane Tan 7")
    page.locator("#levels a").first.click()
    present = ["Jane Tan 7", "Mohammed Abdul Rahman 8", "Staff 12"]
    expect(who).to_have_text([*present, "Off Duty off", "Ravi Kumar away", "Staff stray"])
    expect(page.locator("#people li", has_text="Off Duty")).to_contain_text("; off duty")
    markers = page.locator("#section .marker")
    expect(markers.and_(page.locator("[data-staff='7']")).locator("text")).to_have_text("Jane Tan")
    page.locator("#people [data-staff='8']").click()
    expect(page.locator("#person h2")).to_have_text("Mohammed Abdul Rahman")
    expect(page.locator("#person .facts")).to_contain_text("Security")
    marker = page.locator("#section .marker[data-staff='8']")
    expect(marker.locator("text")).to_have_text("Mohammed")
    expect(marker.locator("title")).to_have_text(re.compile("^Mohammed Abdul Rahman: level 4, "))


def test_nobody_off_duty_has_lost_contact(opened: Opener) -> None:
    page = opened_by(opened, "")
    expect(page.locator("#lost-chip")).to_have_text("2 people lost contact")
    page.locator("#lost-chip").click()
    expect(page.locator("#lost-people .who")).to_have_text(["Ravi Kumar away", "Staff stray"])
    expect(page.get_by_role("button", name="Seen to: Ravi Kumar")).to_be_visible()
    _, rows = saved(page, "#lost-csv")
    assert [(row["staff_id"], row["name"], row["team"]) for row in rows] == [
        ("away", "Ravi Kumar", "Front desk"),
        ("stray", "", ""),
    ]
    page.goto(page.url + "?wall")
    expect(page.locator("#lost li strong")).to_have_text(["Ravi Kumar", "Staff stray"])


@pytest.mark.parametrize(
    ("typed", "staff_ids"),
    [
        ("jane", ["7"]),
        ("staff 7", ["7"]),
        ("SECURITY", ["8"]),
        ("front desk", ["7", "off", "away"]),
    ],
)
def test_a_search_finds_by_name_id_and_team(
    opened: Opener, typed: str, staff_ids: list[str]
) -> None:
    page = opened_by(opened, "")
    page.locator("#search").fill(typed)
    expect(page.locator("#people [data-staff]")).to_have_count(len(staff_ids))
    rows = page.locator("#people [data-staff]")
    shown = [row.get_attribute("data-staff") for row in rows.all()]
    assert sorted(map(str, shown)) == sorted(staff_ids)
    _, saved_rows = saved(page, "#people-csv")
    assert [row["staff_id"] for row in saved_rows] == shown


def test_ids_are_shown_while_names_cannot_be_read(opened: Opener) -> None:
    def prepare(page: Page) -> None:
        furnished(house(), NAMES)(page)
        page.route("**/api/**/people", lambda route: route.abort())
        page.route("**/monitoring/api/people", lambda route: route.abort())

    page = opened("", prepare=prepare)
    loaded(page)
    expect(page.locator("#people [data-staff='7'] .who")).to_have_text("Staff 7")
    expect(page.locator("#banner")).to_be_hidden()
    page.unroute("**/monitoring/api/people")
    page.unroute("**/api/**/people")
    answer(page, "**/api/**/people", lambda: {"data": NAMES})
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator("#people [data-staff='7'] .who")).to_have_text("Jane Tan 7")


def test_replay_takes_a_name_and_asks_which_of_several(opened: Opener) -> None:
    page = opened_by(opened, "/replay?person=8")
    field, show = page.get_by_label("Person"), page.get_by_role("button", name="Show", exact=True)
    expect(field).to_have_value("Mohammed Abdul Rahman")
    field.fill("jane")
    show.click()
    expect(page).to_have_url(re.compile(r"person=7&"))
    expect(field).to_have_value("Jane Tan")
    expect(page.locator("#plan .marker text")).to_have_text("Jane Tan")
    expect(page.get_by_role("heading", level=1)).to_have_text("Where was Jane Tan 7?")
    field.fill("Siti Lim")
    show.click()
    expect(page.locator("#state")).to_have_text("“Siti Lim” may be 2 people. Which one?")
    expect(page.get_by_role("heading", level=1)).to_have_text("Where was …?")
    page.get_by_role("button", name="Siti Lim, staff 11, Front desk").click()
    expect(page).to_have_url(re.compile(r"person=11&"))
    expect(field).to_have_value("Siti Lim (11)")
    page.get_by_label("Together with").fill("jane tan, siti, 12")
    show.click()
    page.get_by_role("button", name="Siti Lim, staff 9, Security").click()
    expect(page).to_have_url(re.compile(r"with=7\+9\+12&|with=7\+9\+12$"))
    expect(page.locator("#companions a")).to_have_text(["Jane Tan 7", "Siti Lim (9)", "Staff 12"])
    suggested = page.locator("#names option").first
    expect(suggested).to_have_attribute("value", "Jane Tan")
    expect(suggested).to_have_text("staff 7, Front desk")
    assert Axe().run(page).response["violations"] == []


def test_live_of_a_team_counts_and_lists_its_people_alone(opened: Opener, sheets: Sheets) -> None:
    page = opened_by(opened, "")
    page.get_by_label("Team").select_option("Front desk")
    expect(page).to_have_url(re.compile(r"team=Front\+desk"))
    expect(page.locator("#people .who")).to_have_text(
        ["Jane Tan 7", "Off Duty off", "Ravi Kumar away"]
    )
    expect(page.locator("#summary")).to_have_text(
        "1 person of the team Front desk heard in the last 15 minutes, 2 longer ago"
    )
    expect(page.locator("#lost-chip")).to_have_text("1 person lost contact")
    expect(page.locator("#levels a").first).to_have_attribute(
        "title", "All levels: 1 person of the team Front desk"
    )
    expect(page.locator("#section .marker:not(.gone)")).to_have_count(1)
    name, rows = saved(page, "#people-csv")
    assert name.startswith("staff-Front-desk_")
    assert {row["team"] for row in rows} == {"Front desk"}
    text = " ".join("\n".join(sheets(page)).split())
    assert "Of the people, the team Front desk alone." in text
    page.go_back()
    expect(page.locator("#people .who")).to_have_count(6)
    page.goto(page.url.split("?")[0] + "?wall&team=Security")
    expect(page.locator("#summary")).to_contain_text("1 person of the team Security heard")
    expect(page.locator("#lost li")).to_have_count(0)


def test_another_team_is_no_news_of_who_is_lost(opened: Opener) -> None:
    def prepare(page: Page) -> None:
        page.add_init_script(f"({NOTED})()")
        furnished(house(), NAMES)(page)

    page = opened("?team=Security", prepare=prepare)
    page.locator("#lost-chip").click()
    page.get_by_label("Sound when somebody is lost").check()
    tones = page.evaluate("tones")
    assert tones > 0
    page.get_by_label("Team").select_option("")
    expect(page.locator("#lost-people li")).to_have_count(2)
    assert page.evaluate("tones") == tones


def test_a_team_that_is_not_there_or_cannot_be_told_is_said(opened: Opener) -> None:
    page = opened_by(opened, "?team=Nobody")
    expect(page.locator("#no-team")).to_have_text("There is no team Nobody: everybody is shown.")
    expect(page.locator("#people .who")).to_have_count(6)

    def unread(page: Page) -> None:
        furnished(house(), NAMES)(page)
        page.route("**/monitoring/api/people", lambda route: route.abort())
        page.route("**/api/v1/people", lambda route: route.abort())

    page = opened("?team=Security", prepare=unread)
    expect(page.locator("#no-team")).to_contain_text("of the team Security cannot be told now")
    expect(page.locator("#people .who")).to_have_count(6)


def test_coverage_and_replay_of_a_team(opened: Opener) -> None:
    now = int(time.time())
    visits = [
        {"staff_id": n, "level": "4", "from": now - 90, "to": now - 60, "detections": 3}
        for n in (7, 8, 12)
    ]
    page = opened_by(opened, "/coverage?gap=1&team=Security")
    answer(page, "**/api/v1/visits?*", lambda: {"data": visits, "next": None})
    nearest = page.locator("#gaps .quiet").first
    expect(nearest).to_contain_text("Nearest of the team Security: Mohammed Abdul Rahman")
    expect(page.locator("#summary")).to_contain_text("unvisited by the team Security for 1 minutes")
    with page.expect_request("**/monitoring/api/coverage?team=Front%20desk"):
        page.get_by_label("Visits by the team").select_option("Front desk")
    expect(page.locator("#summary")).to_contain_text("by the team Front desk")
    page.go_back()
    expect(page.locator("#summary")).to_contain_text("by the team Security")
    page.get_by_role("button", name="Who was in a room?").click()
    expect(page.locator("#room-visits a")).to_have_text("Mohammed Abdul Rahman 8")
    expect(page.locator("#room-state")).to_contain_text("1 person of the team Security heard")
    page = opened_by(opened, "/replay?person=7")
    page.get_by_label("Suggest people of the team").select_option("Security")
    suggested = page.locator("#names option")
    expect(suggested).to_have_count(1)
    expect(suggested).to_have_attribute("value", "Mohammed Abdul Rahman")
    page.get_by_label("Person").fill("Siti Lim")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile("person=9&"))


def test_paper_has_names_and_ids(opened: Opener, sheets: Sheets) -> None:
    page = opened_by(opened, "")
    text = " ".join("\n".join(sheets(page)).split())
    assert "Jane Tan 7" in text
    page.goto(page.url + "/replay?person=7")
    expect(page.locator("#player")).to_be_visible()
    assert "Visits of Jane Tan, staff 7, Front desk" in "\n".join(sheets(page))


def test_who_was_in_a_room_and_who_is_nearest_to_a_gap(opened: Opener) -> None:
    now = int(time.time())
    visit = {"staff_id": 7, "level": "4", "from": now - 90, "to": now - 60, "detections": 3}
    page = opened_by(opened, "/coverage?gap=1")
    answer(page, "**/api/v1/visits?*", lambda: {"data": [visit], "next": None})
    gaps = page.locator("#gaps li", has_text="level 4")
    expect(gaps.first).to_contain_text(re.compile("Nearest: (Jane Tan|Mohammed|Staff 12)"))
    page.get_by_role("button", name="Who was in a room?").click()
    expect(page.locator("#room-visits a")).to_have_text("Jane Tan 7")
    _, rows = saved(page, "#room-csv")
    who = [rows[0][column] for column in ("staff_id", "name", "team")]
    assert who == ["7", "Jane Tan", "Front desk"]
