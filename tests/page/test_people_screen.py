"""People: who is who? The names are given here, by hand or by a file, and shown everywhere."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from scripts.processes.waiting import eventually
from tests.page.conftest import Office, Opener, Sheets, loaded
from tests.page.house import ROOMS, answer, furnished, named, person

PHONE = (360, 740)
HEADER = "staff_id,name,team,note,on_duty\n"
ATTIC = ROOMS[50]  # on a level of which no other test counts the people


@pytest.fixture(autouse=True, scope="module")
def _no_names_are_left(office: Office) -> Iterator[None]:
    yield
    for entry in office.api("GET", "/people").json()["data"]:
        office.api("DELETE", f"/people/{entry['staff_id']}")


def line(page: Page, staff_id: object) -> Locator:
    cell = page.locator("td[data-name='Staff']").get_by_text(str(staff_id), exact=True)
    return page.locator("#people tbody tr").filter(has=cell)


def is_known(office: Office, staff_id: object, name: str) -> None:
    """Wait until the page's next read of the names has somebody: it may be 10 s old."""

    def names() -> list[str]:
        people = office.get("/monitoring/api/people").json()["data"]
        return [entry["name"] for entry in people if entry["staff_id"] == staff_id]

    eventually(lambda: names() == [name], 30)


def test_whoever_was_never_named_is_named_and_then_shown_so(opened: Opener, office: Office) -> None:
    office.hear("nameless", ATTIC["mac"])
    page = opened("/people")
    row = page.locator("#unnamed li", has_text="Staff nameless")
    row.get_by_role("button", name="Name staff nameless").click()
    dialog = page.get_by_role("dialog", name="Name staff nameless")
    expect(dialog.get_by_label("Name")).to_be_focused()
    assert Axe().run(page).response["violations"] == []
    dialog.get_by_label("Name").fill(" Ava Lee ")
    dialog.get_by_label("Team").fill("Front desk")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("#done")).to_have_text("Saved Ava Lee, staff nameless.")
    expect(line(page, "nameless")).to_contain_text("Ava Lee")
    expect(row).to_have_count(0)
    is_known(office, "nameless", "Ava Lee")
    office.shown("nameless")
    live = opened("?q=ava")
    expect(live.locator("#people .who")).to_have_text("Ava Lee nameless")
    live.get_by_label("Team").select_option("Front desk")
    expect(live).to_have_url(re.compile("team=Front"))
    expect(live.locator("#summary")).to_contain_text("1 person of the team Front desk heard")
    replay = opened("/replay?person=nameless")
    expect(replay.get_by_label("Person")).to_have_value("Ava Lee")
    with replay.expect_download() as waiting:
        replay.get_by_role("link", name="CSV", exact=True).click()
    assert ",Ava Lee,Front desk" in Path(waiting.value.path()).read_text("utf-8-sig")


def test_what_somebody_else_changed_meanwhile_is_not_written_over(
    opened: Opener, office: Office
) -> None:
    address, person = "/people/905", {"name": "Mia Ong", "team": "Doors"}
    office.api("PUT", address, json=person)
    page = opened("/people")
    edit = line(page, 905).get_by_role("button", name="Edit Mia Ong")
    expect(edit).to_be_visible()
    office.api("PUT", address, json=person | {"team": "Kitchen"})
    edit.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Team")).to_have_value("Kitchen")  # newer than the list
    office.api("PUT", address, json=person | {"note": "keys"})
    dialog.get_by_label("Name").fill("Mia Ong-Lim")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_contain_text("somebody changed this person since")
    assert office.api("GET", address).json()["note"] == "keys"


def test_a_person_is_added_edited_and_removed(opened: Opener, office: Office) -> None:
    page = opened("/people")
    page.get_by_role("button", name="Add a person").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Staff id").fill("901")
    dialog.get_by_label("Name").fill("Tom Goh")
    dialog.get_by_label("On duty").uncheck()
    dialog.get_by_role("button", name="Save").click()
    expect(line(page, 901)).to_contain_text("off duty")
    page.get_by_role("button", name="Add a person").click()
    dialog.get_by_label("Staff id").fill("901")
    dialog.get_by_label("Name").fill("Somebody else")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text(
        "staff 901 is Tom Goh already: edit that entry"
    )
    page.keyboard.press("Escape")
    line(page, 901).get_by_role("button", name="Edit Tom Goh").click()
    expect(dialog.get_by_label("Staff id")).not_to_be_editable()
    dialog.get_by_label("Note").fill("night shift")
    dialog.get_by_label("On duty").check()
    dialog.get_by_role("button", name="Save").click()
    expect(line(page, 901)).to_contain_text("night shift")
    expect(line(page, 901)).not_to_contain_text("off duty")
    page.on("dialog", lambda question: question.accept())
    line(page, 901).get_by_role("button").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.locator("#done")).to_have_text("Removed Tom Goh.")
    expect(line(page, 901)).to_have_count(0)

    def is_gone() -> bool:
        return office.api("GET", "/people/901").status_code == 404

    eventually(is_gone)


def test_an_admin_forgets_a_person_with_every_detection(opened: Opener, office: Office) -> None:
    office.hear("forgettable", ATTIC["mac"])
    page = opened("/people")
    row = page.locator("#unnamed li", has_text="Staff forgettable")
    row.get_by_role("button", name="Name staff forgettable").click()
    dialog = page.get_by_role("dialog")
    with page.expect_event("dialog") as asked:
        page.once("dialog", lambda question: question.dismiss())
        dialog.get_by_role("button", name="Forget").click()
    assert asked.value.message.startswith("Forget staff forgettable? All that is kept of them")
    assert office.api("GET", "/staff/forgettable/detections").status_code == 200
    page.once("dialog", lambda question: question.accept())
    dialog.get_by_role("button", name="Forget").click()
    done = page.locator("#done")
    expect(done).to_have_text("Forgot staff forgettable: 1 detections are deleted.", timeout=30_000)
    assert office.api("GET", "/staff/forgettable/detections").status_code == 404


def test_what_a_file_would_change_is_told_before_it_does(
    opened: Opener, office: Office, tmp_path: Path
) -> None:
    page = opened("/people")
    page.get_by_role("button", name="Import CSV").click()
    dialog = page.get_by_role("dialog")
    bad, good = tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_text(HEADER + "911,,Cleaning,,\n912,Bo Ng,Cleaning,,perhaps\n")
    good.write_text(HEADER + "911,Al Ong,Cleaning,,true\n912,Bo Ng,Cleaning,,false\n")
    dialog.get_by_label("File").set_input_files(bad)
    errors = dialog.get_by_role("alert")
    expect(errors).to_contain_text("line 2: name")
    expect(errors).to_contain_text("line 3: on_duty")
    run = dialog.get_by_role("button", name="Import", exact=True)
    expect(run).to_be_disabled()
    dialog.get_by_label("File").set_input_files(good)
    expect(dialog.get_by_role("status")).to_contain_text("2 would be added, 0 would be changed")
    run.click()
    expect(page.locator("#done")).to_contain_text("Imported good.csv: 2 added")
    expect(line(page, 912)).to_contain_text("off duty")
    good.write_text(HEADER + "911,Al Ong,Security,,true\n912,Bo Ng,Cleaning,,false\n")
    page.get_by_role("button", name="Import CSV").click()
    dialog.get_by_label("File").set_input_files(good)
    changes = dialog.get_by_role("list", name="Changed people").get_by_role("listitem")
    expect(changes).to_have_text("staff 911Al Ong, Cleaning → Al Ong, Security")
    assert Axe().run(page).response["violations"] == []
    page.keyboard.press("Escape")
    is_known(office, 912, "Bo Ng")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Export CSV").click()
    assert waiting.value.suggested_filename == "people.csv"
    text = Path(waiting.value.path()).read_text("utf-8-sig")
    rows = list(csv.DictReader(text.splitlines()))
    exported = {row["staff_id"]: (row["name"], row["on_duty"]) for row in rows}
    assert exported["912"] == ("Bo Ng", "false")


def many(count: int) -> list[dict[str, Any]]:
    teams = ("Front desk", "Security", "")
    return [named(n, f"Person {n:04}", teams[n % 3], on_duty=n % 5 > 0) for n in range(count)]


def directory(count: int) -> Any:
    """Return what answers a screen with so many people."""

    def prepare(page: Page) -> None:
        furnished([person(7, ROOMS[25])], many(count))(page)
        answer(page, "**/api/v1/people", lambda: {"data": many(count)})
        unnamed = [{"staff_id": f"new-{n}", "last_heard": 1_700_000_000} for n in range(30)]
        answer(page, "**/api/v1/people/unnamed", lambda: {"data": unnamed, "truncated": False})

    return prepare


@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "light"), ((1280, 800), "dark")])
def test_it_is_for_everybody(opened: Opener, size: tuple[int, int], scheme: str) -> None:
    page = opened("/people", size, prepare=directory(60), color_scheme=scheme)
    loaded(page)
    expect(page.locator("#people tbody tr")).to_have_count(60)
    assert Axe().run(page).response["violations"] == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    page.keyboard.press("/")
    page.keyboard.type("0007")
    expect(page.locator("#people tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("q=0007"))


def test_a_large_office_is_listed_in_part_and_found_whole(opened: Opener) -> None:
    page = opened("/people", prepare=directory(20_000))
    loaded(page)
    expect(page.locator("#people tbody tr")).to_have_count(500)
    expect(page.locator("#none")).to_contain_text("Only the first 500 are listed")
    page.locator("#search").fill("person 19999")
    expect(page.locator("#people tbody tr")).to_have_count(1)
    expect(page.locator("#summary")).to_have_text("1 of 20000 people with a name")
    live = opened("?q=person+0007", prepare=directory(20_000))
    expect(live.locator("#people .who")).to_have_text("Person 0007 7")


def test_it_prints_its_team(opened: Opener, sheets: Sheets) -> None:
    page = opened("/people?team=Security", prepare=directory(60))
    expect(page.locator("#people tbody tr")).to_have_count(20)
    text = " ".join("\n".join(sheets(page)).split())
    assert "Of the people, the team Security alone." in text
    assert "Person 0001" in text
    assert "Person 0003" not in text
