"""Directory: which beacons are there?"""

import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from scripts.processes.waiting import eventually
from tests.page.conftest import Office, Opener

STRANGER = "AABBCCDD0042"
NEW = "AABBCCDD0043"
IBEACON = "ibeacon:e2c56db5-dffb-48d2-b060-d0f5a71096e0:1:4660"
HALL, GATE = "AABBCCDD5101", "AABBCCDD5102"
HALL_IBEACON = "ibeacon:e2c56db5-dffb-48d2-b060-d0f5a71096e0:51:1"
HEADER = "mac,level,location,x,y\n"
BAYS = range(1, 5)


def line(page: Page, mac: str) -> Any:
    return page.locator("#beacons tbody tr").filter(has_text=":".join(re.findall("..", mac)))


@pytest.mark.long
def test_a_beacon_is_added_edited_and_deleted(opened: Opener, office: Office) -> None:
    page = opened("/directory")
    expect(line(page, "C2A628040008")).to_contain_text("Lobby B")
    page.get_by_role("button", name="Add a beacon").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Beacon (MAC or other id)").fill("aa:bb:cc:dd:00:43")
    dialog.get_by_label("Level").fill("4")
    dialog.get_by_label("Location").fill("Roof")
    dialog.get_by_label("x (metres)").fill("7.5")
    dialog.get_by_role("button", name="Save").click()
    # x without y: the API's own words stand beside the form, which stays open.
    expect(dialog.get_by_role("alert")).to_contain_text("together with y")
    dialog.get_by_label("y (metres)").fill("3")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#done")).to_contain_text("Saved AA:BB:CC:DD:00:43")
    expect(line(page, NEW)).to_contain_text("7.5, 3")
    line(page, NEW).get_by_role("button").click()
    dialog.get_by_label("Location").fill("Roof garden")
    dialog.get_by_role("button", name="Save").click()
    expect(line(page, NEW)).to_contain_text("Roof garden")

    def stored() -> bool:  # the service that did not store it knows it within 2 s
        return bool(office.api("GET", f"/beacons/{NEW}").json()["location"] == "Roof garden")

    eventually(stored)
    page.on("dialog", lambda question: question.accept())
    line(page, NEW).get_by_role("button").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator("#done")).to_contain_text("Deleted")
    expect(line(page, NEW)).to_have_count(0)


def test_search_and_level_find_a_beacon(opened: Opener) -> None:
    page = opened("/directory")
    expect(line(page, "C2A628040008")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("c2:a6:28:04")
    expect(page.locator("#beacons tbody tr")).to_have_count(8)
    page.locator("#search").fill("lobby")
    page.locator("#level").select_option("6")
    expect(page.locator("#beacons tbody tr")).to_have_count(2)
    expect(page).to_have_url(re.compile("level=6"))


def test_a_file_is_checked_before_it_is_imported(
    opened: Opener, office: Office, tmp_path: Path
) -> None:
    page = opened("/directory")
    page.get_by_role("button", name="Import CSV").click()
    dialog = page.get_by_role("dialog")
    bad, good = tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_text(HEADER + "AABBCC310001,31,One,0,0\nnot-a-mac,31,Two,5,0\nAABBCC310003,31,,9,0\n")
    good.write_text(HEADER + "AABBCC310001,31,One,0,0\nAABBCC310002,31,Two,5,0\n")
    dialog.get_by_label("File").set_input_files(bad)
    errors = dialog.get_by_role("alert")
    expect(errors).to_contain_text("line 3: mac")
    expect(errors).to_contain_text("line 4: location")
    run = dialog.get_by_role("button", name="Import", exact=True)
    expect(run).to_be_disabled()
    dialog.get_by_label("File").set_input_files(good)
    expect(dialog.get_by_role("status")).to_have_text(
        re.compile("2 would be added, 0 would be changed")
    )
    assert office.api("GET", "/beacons/AABBCC310002").status_code == 404
    run.click()
    expect(page.locator("#done")).to_contain_text("Imported good.csv: 2 added")
    expect(line(page, "AABBCC310002")).to_contain_text("Two")
    good.write_text(HEADER + "AABBCC310001,31,One,0,0\nAABBCC310002,32,Three,5,0\n")
    page.get_by_role("button", name="Import CSV").click()
    dialog.get_by_label("File").set_input_files(good)
    moves = dialog.get_by_role("list", name="Changed beacons").get_by_role("listitem")
    expect(moves).to_have_count(1)
    expect(moves).to_contain_text("AA:BB:CC:31:00:02")
    expect(moves).to_contain_text("level 31, Two (5, 0) → level 32, Three (5, 0)")
    dialog.get_by_label("File").set_input_files(bad)
    expect(errors).to_contain_text("line 3: mac")
    expect(moves).to_have_count(0)


def test_what_is_exported_can_be_imported_again(
    opened: Opener, office: Office, tmp_path: Path
) -> None:
    page = opened("/directory")
    known = office.api("GET", "/beacons").json()["data"]
    file = tmp_path / "beacons.csv"

    def is_exported() -> bool:
        with page.expect_download() as waiting:
            page.get_by_role("link", name="Export CSV").click()
        assert waiting.value.suggested_filename == file.name
        waiting.value.save_as(file)
        return len(file.read_text().splitlines()) == 1 + len(known)

    eventually(is_exported)  # each service knows within 2 s what another has imported
    page.get_by_role("button", name="Import CSV").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("File").set_input_files(file)
    expect(dialog.get_by_role("status")).to_have_text(
        f"0 would be added, 0 would be changed, {len(known)} unchanged."
    )


@pytest.mark.long
def test_an_unknown_beacon_is_assigned_in_one_step_with_its_past(
    opened: Opener, office: Office
) -> None:
    office.hear("finder", STRANGER, ago=120)
    office.hear("finder", STRANGER, ago=60)

    def places() -> list[tuple[str, str]]:
        history = office.api("GET", "/staff/finder/detections").json()["data"]
        return [(detection["level"], detection["location"]) for detection in history]

    page = opened("/directory")
    unknown = page.locator("#unknown li").filter(has_text="AA:BB:CC:DD:00:42")
    expect(unknown).to_contain_text("heard 2 times by staff finder")
    unknown.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Correct past detections")).to_be_checked()
    dialog.get_by_label("Level").fill("7")
    dialog.get_by_label("Location").fill("Archive")
    page.keyboard.press("Enter")
    # Nothing is changed before it says what will be.
    expect(dialog.get_by_role("status")).to_have_text(
        "Save changes the past: 2 past detections of staff finder get this place."
    )
    assert places() == [("unknown", "unknown")] * 2
    expect(dialog.get_by_role("button", name="Save")).to_be_enabled()
    page.keyboard.press("Enter")
    done = page.locator("#done")
    expect(done).to_contain_text("2 past detections are corrected", timeout=30_000)
    expect(unknown).to_have_count(0)
    assert places() == [("7", "Archive")] * 2
    done.get_by_role("button", name="Undo").click()
    expect(done).to_contain_text("Undone: 2 past detections")
    expect(done.get_by_role("button")).to_be_hidden()
    expect(unknown).to_have_count(1)
    assert places() == [("unknown", "unknown")] * 2
    office.hear("stranger", "AABBCCDD0043")  # once: a phone that came by
    page.locator("#once-count").click()
    expect(page.locator("#unknown-once li").filter(has_text="DD:00:43")).to_be_visible()


@pytest.mark.long
def test_a_beacon_without_a_mac_is_assigned_on_a_small_screen(
    opened: Opener, office: Office
) -> None:
    for number in range(2):
        office.hear("iphone", IBEACON, ago=60 * number + 60)
    page = opened("/directory")
    page.set_viewport_size({"width": 360, "height": 740})
    unknown = page.locator("#unknown li").filter(has_text=IBEACON)
    expect(unknown).to_contain_text("heard 2 times by staff iphone")
    unknown.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text(f"Assign {IBEACON}")
    dialog.get_by_label("Level").fill("7")
    dialog.get_by_label("Location").fill("Cellar")
    dialog.get_by_label("Correct past detections").uncheck()
    is_wide = "document.documentElement.scrollWidth > innerWidth"
    assert not page.evaluate(is_wide)
    dialog.get_by_role("button", name="Save").click()
    row = page.locator("#beacons tbody tr").filter(has_text=IBEACON)
    expect(row).to_contain_text("Cellar")
    assert not page.evaluate(is_wide)
    row.get_by_role("button").click()
    expect(dialog.get_by_label("Beacon (MAC or other id)")).to_have_value(IBEACON)
    page.on("dialog", lambda question: question.accept())
    dialog.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


@pytest.mark.long
def test_two_ids_become_one_beacon_and_two_again(opened: Opener, office: Office) -> None:
    place = {"level": "57", "location": "Hall"}
    assert office.api("PUT", f"/beacons/{HALL}", json=place).status_code == 200
    for number in range(2):
        office.hear("iphone", HALL_IBEACON, ago=60 * number + 60)

    def known(*expected: tuple[str, list[str]]) -> None:
        """Wait until each service tells these beacons, with their aliases: they take turns."""

        def told() -> bool:
            beacons = office.api("GET", "/beacons?level=57").json()["data"]
            return sorted((row["mac"], row["aliases"]) for row in beacons) == sorted(expected)

        eventually(lambda: all(told() for _ in range(6)), 30)

    known((HALL, []))
    page = opened("/directory")
    row = line(page, HALL)
    unknown = page.locator("#unknown li").filter(has_text=HALL_IBEACON)
    unknown.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    same = dialog.get_by_label("Is the same beacon as")
    same.fill("AA:BB:CC:DD:00:99")
    dialog.get_by_label("Correct past detections").uncheck()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("No other beacon of the directory has")
    dialog.get_by_label("Correct past detections").check()
    same.fill("aa:bb:cc:dd:51:01")
    same.press("Tab")
    expect(dialog.get_by_label("Location")).to_have_value("Hall")
    expect(dialog.get_by_label("Location")).to_be_disabled()
    expect(dialog.get_by_role("status")).to_have_text(
        "Save changes the past: 2 past detections of staff iphone get this place."
    )
    dialog.get_by_role("button", name="Save").click()
    done = page.locator("#done")
    expect(done).to_contain_text("2 past detections are corrected", timeout=30_000)
    expect(unknown).to_have_count(0)
    assert Axe().run(page).response["violations"] == []
    expect(row).to_have_count(1)
    expect(row).to_contain_text(HALL_IBEACON)
    known((HALL, [HALL_IBEACON]))
    page.locator("#search").fill(HALL_IBEACON)
    expect(row).to_be_visible()
    done.get_by_role("button", name="Undo").click()
    expect(done).to_contain_text("Undone: 2 past detections")
    expect(unknown).to_have_count(1)
    known((HALL, []))
    page.locator("#search").fill("")
    page.reload()
    row.get_by_role("button").click()
    dialog.get_by_label("Other ids").fill(f"{HALL_IBEACON}\nno id")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("aliases id 2 must be a MAC address")
    dialog.get_by_label("Other ids").fill(HALL_IBEACON)
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text(HALL_IBEACON)
    known((HALL, [HALL_IBEACON]))
    page.reload()
    page.on("dialog", lambda question: question.accept())
    row.get_by_role("button").click()
    dialog.get_by_role("button", name=f"Split off {HALL_IBEACON}").click()
    expect(done).to_contain_text(f"{HALL_IBEACON} is a beacon of its own")
    expect(page.locator("#beacons tbody tr").filter(has_text="Hall")).to_have_count(2)
    done.get_by_role("button", name="Undo").click()
    expect(done).to_contain_text("as before")
    expect(page.locator("#beacons tbody tr").filter(has_text="Hall")).to_have_count(1)
    known((HALL, [HALL_IBEACON]))
    # Two entries become one: the one that stays keeps its place.
    place = {"level": "57", "location": "Gate"}
    office.api("PUT", f"/beacons/{GATE}", json=place)
    known((GATE, []), (HALL, [HALL_IBEACON]))
    page.reload()
    line(page, GATE).get_by_role("button").click()
    same.fill(HALL_IBEACON)
    same.press("Tab")
    expect(dialog.get_by_label("Location")).to_have_value("Hall")
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text(":".join(re.findall("..", GATE)))
    known((HALL, [GATE, HALL_IBEACON]))
    done.get_by_role("button", name="Undo").click()
    expect(done).to_contain_text("as before")
    known((GATE, []), (HALL, [HALL_IBEACON]))


@pytest.mark.long
def test_a_beacon_that_fell_silent_is_named(opened: Opener, office: Office) -> None:
    rows = [f"AABBCC{level}00{n:02},{level},Bay {n},{n * 10},0" for level in (41, 42) for n in BAYS]
    answer = office.api(
        "POST",
        "/beacons/import",
        data=HEADER + "\n".join(rows),
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code == 200, answer.text

    def passed_by() -> bool:
        for staff_id, mac in (("passer", "4100"), ("west", "4200")):
            office.hear(staff_id, f"AABBCC{mac}01")
        for staff_id, mac in (("passer", "4100"), ("east", "4200")):
            office.hear(staff_id, f"AABBCC{mac}03")
        places = office.get("/monitoring/api/coverage").json()["data"]  # what the page reads
        nearby = [place for place in places if place["level"] in {"41", "42"}]
        return sum(place["last_visited"] is not None for place in nearby) == 4

    eventually(passed_by, 30)
    aged = 0

    def age(route: Route) -> None:
        """Answer as if all had been registered that much earlier."""
        answer = route.fetch()
        body = answer.json()
        for row in body["data"]:
            row["registered_at"] -= aged
        route.fulfill(response=answer, json=body)

    def prepare(page: Page) -> None:
        page.route("**/monitoring/api/coverage", age)

    page = opened("/directory", prepare=prepare)
    asked = (
        "performance.getEntriesByType('resource').some((entry) => entry.name.includes('coverage'))"
    )
    eventually(lambda: page.evaluate(asked), 30)
    page.wait_for_load_state("networkidle")
    expect(page.locator("#silent-list li")).to_have_count(0)  # the hour has only begun
    aged = 7200
    with page.expect_request("**/api/v1/visits?*level=42*"):
        page.reload()
    silent = page.locator("#silent-list li").filter(has_text="Bay 2, level 41")
    expect(silent).to_contain_text("staff passer passed Bay 1 and Bay 3, and did not hear it")
    expect(silent).to_contain_text("registered 2 h ago, not heard yet")
    page.wait_for_load_state("networkidle")
    # Two people, each on one side, passed nothing; and Bay 4, at the end, nobody has to pass.
    for other in ("level 42", "Bay 1, level", "Bay 4, level"):
        expect(page.locator("#silent-list li").filter(has_text=other)).to_have_count(0)
    assert Axe().run(page).response["violations"] == []
