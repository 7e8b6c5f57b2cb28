"""Who dropped out is told; and a screen reader hears what changes, once."""

import json
import re
import time
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from scripts.processes.waiting import eventually
from tests.page.conftest import Office, Opener, loaded
from tests.page.house import ROOMS, crowd, furnished, person


def lost() -> list[dict[str, Any]]:
    """Return two who were heard 20 and 50 minutes ago."""
    return [
        person(name, ROOMS[room], ago) | {"timestamp": time.time() - ago}
        for name, room, ago in (("lost-1", 3, 1200), ("lost-2", 20, 3000))
    ]


def show(page: Page, people: list[dict[str, Any]]) -> None:
    """Furnish a page with people, and let it say what became of them, as the API does."""
    furnished(people)(page)

    def put(route: Route) -> None:
        said = json.loads(route.request.post_data or "")
        (person,) = [
            person for person in people if f"/staff/{person['staff_id']}/" in route.request.url
        ]
        assert said["timestamp"] == person["timestamp"]
        person["lost_contact"] = {"state": said["state"], "by": "anna", "at": int(time.time())}
        route.fulfill(json=person["lost_contact"])

    page.route("**/lost_contact", put)


def test_who_dropped_out_is_told_until_somebody_sees_to_it(opened: Opener) -> None:
    people = [*crowd(14), *lost(), person("home", ROOMS[5], 2 * 86400)]
    page = opened(prepare=lambda page: show(page, people))
    chip = page.get_by_role("button", name="2 people lost contact")
    chip.click()
    rows = page.locator("#lost li")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("Staff lost-1")  # the longest lost first
    expect(rows.nth(1)).to_contain_text("last in Room 1-03, level 1")
    expect(rows.nth(1)).to_contain_text(re.compile(r"2\d min ago"))
    expect(page).to_have_title(re.compile(r"^\(2 lost\) "))
    assert Axe().run(page).response["violations"] == []
    rows.nth(0).get_by_role("button", name="Staff lost-2", exact=True).click()
    expect(page.locator("#person")).to_contain_text("Staff lost-2")
    expect(page.locator("#section .marker.picked")).to_have_attribute("data-staff", "lost-2")
    home = rows.nth(0).get_by_role("button", name="Gone home")
    left = "(button) => button.getBoundingClientRect().left"
    stood = home.evaluate(left)
    page.get_by_role("button", name="Seen to: staff lost-2").click()
    expect(rows.nth(0).get_by_role("button", name="Seen to")).to_have_count(0)
    assert home.evaluate(left) == stood, "what is under a pointer stays there"
    expect(rows.nth(0)).to_contain_text(
        re.compile(r"Staff lost-2.*level 3\. anna saw to it, \d\d:\d\d")
    )
    expect(page.locator("#lost-chip")).to_have_text("1 person lost contact")
    expect(page).to_have_title(re.compile(r"^\(1 lost\) "))
    assert Axe().run(page).response["violations"] == []
    page.reload()
    page.get_by_role("button", name="1 person lost contact").click()
    page.get_by_role("button", name="Gone home: staff lost-1").click()
    expect(page.locator("#lost-chip")).to_have_text("1 person lost, seen to")
    expect(page).to_have_title(re.compile("^[^(]"))
    expect(rows).to_have_count(1)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="All have gone home").click()
    expect(page.locator("#lost-chip")).to_have_text("Nobody lost contact")


def test_all_screens_share_it_and_a_reader_only_sees_it(opened: Opener, office: Office) -> None:
    mac = ROOMS[2]["mac"]
    for name, ago in (("share-1", 4000), ("share-2", 5000)):
        office.hear(name, mac, ago=ago)
    office.shown("share-2")
    one, other, wall = opened(), opened(), opened("?wall", (1920, 1080))
    for page in (one, other):
        page.get_by_role("button", name="lost contact").click()
    row = other.locator("#lost li", has_text="share-1")
    on_wall = wall.locator("#lost li", has_text="share-1")
    expect(row).not_to_contain_text("saw to it")
    expect(on_wall).to_contain_text(f"{ROOMS[2]['location']}, level")
    one.get_by_role("button", name="Seen to: staff share-1").click()
    one.get_by_role("button", name="Gone home: staff share-2").click()
    for seen in (row, on_wall):
        expect(seen).to_contain_text(re.compile(r"saw to it, \d\d:\d\d"), timeout=30_000)
    for page in (one, other, wall):
        expect(page.locator("#lost li", has_text="share-2")).to_have_count(0, timeout=30_000)
    did = [entry["what"] for entry in office.api("GET", "/audit?limit=2").json()["data"]]
    assert did == ["lost contact", "lost contact"]
    # Heard again, and lost again: what was said is of before.
    for name in ("share-1", "share-2"):
        office.hear(name, mac, ago=2000)
    for page in (one, other, wall):
        for name in ("share-1", "share-2"):
            again = page.locator("#lost li", has_text=name)
            expect(again).not_to_contain_text("saw to it", timeout=30_000)
            expect(again).to_have_count(1, timeout=30_000)
    for name in ("share-1", "share-2"):
        one.get_by_role("button", name=f"Gone home: staff {name}").click(timeout=30_000)
        expect(one.locator("#lost li", has_text=name)).to_have_count(0)
    # The page of somebody who may only look.
    page = opened(wait="commit", prepare=lambda page: as_reader(page, lost()))
    page.get_by_role("button", name="2 people lost contact").click()
    expect(page.locator("#lost li")).to_have_count(2)
    expect(page.locator("#lost li button:not(.who), #lost-home:visible")).to_have_count(0)


def as_reader(page: Page, people: list[dict[str, Any]]) -> None:
    furnished(people)(page)

    def give(route: Route) -> None:
        body = route.fetch().text().replace("<body ", "<body data-reader ")
        route.fulfill(body=body, content_type="text/html")

    page.route(re.compile(r"/monitoring$"), give)


@pytest.mark.parametrize(
    ("status", "code", "asked"), [(503, "store_unavailable", 1), (409, "conflict", 2)]
)
def test_what_was_not_stored_is_said(opened: Opener, status: int, code: str, asked: int) -> None:
    page = opened(prepare=furnished([*crowd(3), *lost()]))
    puts: list[str] = []

    def refuse(route: Route) -> None:
        puts.append(route.request.url)
        problem = {"code": code, "detail": "the database is away"}
        route.fulfill(status=status, json=problem)

    page.route("**/lost_contact", refuse)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="2 people lost contact").click()
    page.get_by_role("button", name="All have gone home").click()
    staff_id = ("lost-2", "lost-1")[asked - 1]
    says = f"This was not stored of staff {staff_id}: the database is away"
    expect(page.locator("#lost-problem")).to_have_text(says)
    assert len(puts) == asked
    expect(page.locator("#lost-chip")).to_have_text("2 people lost contact")


def test_after_how_long_is_said_and_can_be_set(opened: Opener) -> None:
    page = opened(prepare=furnished([*crowd(3), *lost(), person("quiet", ROOMS[9], 650)]))
    chip = page.locator("#lost-chip")
    expect(chip).to_have_text("2 people lost contact")
    picture = page.locator(".picture").bounding_box()
    chip.click()
    assert page.locator(".picture").bounding_box() == picture, "the list lies over the picture"
    minutes = page.get_by_label("Not heard for")
    expect(minutes).to_have_value("15")
    for wanted, says in (("10", "3 people"), ("45", "1 person"), ("700", "Nobody")):
        minutes.fill(wanted)
        minutes.press("Enter")
        expect(chip).to_have_text(f"{says} lost contact")
    expect(page).to_have_url(re.compile("lost=700"))
    minutes.fill("30")
    minutes.press("Enter")
    # The wall of the same browser does as this one does.
    page.goto(page.url.split("?")[0] + "?wall")
    expect(page.locator("#lost li")).to_have_text([re.compile("lost-2")])


BROKEN = """[...document.querySelectorAll("#lost :is(h2, button, time)")].filter((node) => {
  const text = document.createRange();
  text.selectNodeContents(node);
  return new Set([...text.getClientRects()].map(({ top }) => Math.round(top))).size > 1;
}).map((node) => node.textContent)"""


@pytest.mark.parametrize("size", [(390, 844), (768, 1024), (1280, 800)])
def test_no_name_button_or_age_is_broken(opened: Opener, size: tuple[int, int]) -> None:
    page = opened("", size, prepare=furnished([*crowd(3), *lost()]))
    page.locator("#lost-chip").click()
    expect(page.locator("#lost li")).to_have_count(2)
    assert page.evaluate(BROKEN) == []
    wider = "(box) => box.scrollWidth > box.clientWidth"
    assert not page.locator("#lost").evaluate(wider)


NOTED = """() => {
  window.tones = 0; window.notes = [];
  const start = OscillatorNode.prototype.start;
  OscillatorNode.prototype.start = function (...given) {
    window.tones += 1;
    start.apply(this, given);
  };
  window.Notification = class {
    static permission = "default";
    static requestPermission() { this.permission = "granted"; return Promise.resolve("granted"); }
    constructor(title, { body }) { window.notes.push(`${title}: ${body}`); }
  };
}"""


def test_who_is_lost_is_told_aloud_once_that_is_allowed(opened: Opener) -> None:
    def prepare(page: Page) -> None:
        page.add_init_script(f"({NOTED})()")
        furnished(crowd(3))(page)

    page = opened(prepare=prepare)
    chip = page.locator("#lost-chip")
    expect(chip).to_have_text("Nobody lost contact")
    furnished([*crowd(3), lost()[0]])(page)
    expect(chip).to_have_text("1 person lost contact")
    assert page.evaluate("[tones, notes]") == [0, []]  # nobody has allowed it
    chip.click()
    page.get_by_role("button", name="Notify me").click()
    expect(page.get_by_role("button", name="Notify me")).to_be_hidden()
    page.get_by_label("Sound when").check()
    once = page.evaluate("tones")
    assert once > 0
    furnished([*crowd(3), *lost()])(page)
    expect(chip).to_have_text("2 people lost contact")
    note = f"1 person lost contact: Staff lost-2: last in level 3, {ROOMS[20]['location']}"
    eventually(lambda: page.evaluate("notes.length"), 30)
    assert page.evaluate("[tones, notes]") == [2 * once, [note]]


def test_they_are_ghosts_on_the_plan_until_they_have_gone_home(opened: Opener) -> None:
    people = [*crowd(14), *lost(), person("home", ROOMS[5], 2 * 86400)]
    page = opened(prepare=lambda page: show(page, people))
    ghosts = page.locator("#section .marker.gone")
    expect(ghosts).to_have_count(2)
    expect(ghosts.and_(page.locator("[data-staff=lost-1]"))).to_be_visible()
    count = page.locator("#levels").get_by_text(re.compile("^All")).inner_text()
    page.get_by_role("button", name="2 people lost contact").click()
    page.get_by_role("button", name="Gone home: staff lost-1").click()
    expect(ghosts).to_have_count(1)
    page.get_by_role("button", name="1 person lost contact").click()  # it lies over the plan
    assert page.locator("#levels").get_by_text(re.compile("^All")).inner_text() == count
    ghosts.click()
    expect(page.locator("#person")).to_contain_text("Staff lost-2")
    page.get_by_role("button", name="1 person lost contact").click()
    page.get_by_role("button", name="Gone home: staff lost-2").click()
    page.keyboard.press("Escape")
    expect(ghosts).to_have_count(0)


WATCH = """() => {
  window.spoken = [];
  for (const node of document.querySelectorAll("[role=alert], [role=status], [aria-live]"))
    new MutationObserver(() => window.spoken.push(node.textContent.trim())).observe(node, {
      childList: true, characterData: true, subtree: true });
}"""


def wrong(page: Page) -> None:
    headers = {"X-Circuit-State": "unknown", "Content-Type": "application/json"}
    body = json.dumps({"as_of": 0, "data": lost()})
    address = "**/monitoring/api/staff"
    page.unroute(address)
    taken = f"{time.time() - 5:.0f}"
    late = headers | {"X-Taken-At": taken}
    page.route(address, lambda route: route.fulfill(headers=late, body=body))


def test_an_alert_is_spoken_once_though_its_age_grows(opened: Opener) -> None:
    page = opened(prepare=furnished(crowd(14)))
    loaded(page)
    page.evaluate(WATCH)
    wrong(page)
    age = page.locator("#banner-age")
    expect(age).to_contain_text(re.compile(r"known at .* ago"))
    for _ in range(2):
        before = age.inner_text()
        expect(age).not_to_have_text(before)
    spoken: list[Any] = page.evaluate("spoken.filter(Boolean)")
    assert len([text for text in spoken if "cannot read this" in text]) == 1, spoken


def test_the_number_of_people_is_not_spoken_at_each_change(opened: Opener) -> None:
    page = opened(prepare=furnished(crowd(14)))
    loaded(page)
    page.evaluate(WATCH)
    furnished(crowd(15))(page)
    expect(page.locator("#summary")).to_contain_text("15 people")
    assert page.evaluate("spoken") == []
