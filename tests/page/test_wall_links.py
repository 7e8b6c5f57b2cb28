"""Wall links in a real browser, before a real gateway: made, opened, watched, revoked."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Request, Route, expect

from tests.gateway.wall import ROOMS, TEAM, Site, walls
from tests.page.conftest import loaded, watch_policy

pytestmark = pytest.mark.long

SIZES = {"phone": (390, 844), "laptop": (1280, 800)}
LINK = re.compile(r"http://127\.0\.0\.1:\d+/monitoring/login\?next=[\w%]+#token=(wm_[\w-]{43})")
ENDED = "Your log-in has ended"
JANE = f"Jane of {ROOMS['4']}"  # two are called so, of two teams


@pytest.fixture(scope="module")
def site(mongod: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with walls(mongod, tmp_path_factory.mktemp("walls")) as walled:
        yield walled


@pytest.fixture
def browsers(browser: Browser) -> Iterator[Any]:
    """Return a function that opens a browser of its own; none may have had an error."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def open_(**more: Any) -> Page:
        context = browser.new_context(locale="en-GB", reduced_motion="reduce", **more)
        contexts.append(context)
        watch_policy(context, errors)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield open_
    for context in contexts:
        context.close()
    assert errors == []


def log_in(page: Page, site: Site) -> None:
    """Let anna's browser have her session."""
    cookies = [
        {"name": cookie.name, "value": str(cookie.value), "url": site.gateway.url}
        for cookie in site.anna.cookies
    ]
    page.context.add_cookies(cookies)  # type: ignore[arg-type]


def accessible(page: Page) -> None:
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


@pytest.mark.parametrize(("size", "scheme"), [("phone", "dark"), ("laptop", "light")])
def test_an_admin_makes_a_link_and_a_wall_opens_it(
    site: Site, browsers: Any, size: str, scheme: str
) -> None:
    viewport = dict(zip(("width", "height"), SIZES[size], strict=True))
    page = browsers(viewport=viewport, color_scheme=scheme)
    log_in(page, site)
    page.goto(f"{site.gateway.url}/monitoring")
    expect(page.locator("body[data-loaded='true']")).to_be_attached()
    opener = page.get_by_role("button", name="Wall link")
    opener.click()
    dialog = page.get_by_role("dialog", name="A link for a wall screen")
    expect(dialog.get_by_label("What it is for")).to_be_focused()
    accessible(page)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()
    opener.click()
    dialog.get_by_label("What it is for").fill(f"{size} {scheme}")
    assert dialog.get_by_label("It shows").locator("option").all_text_contents() == [
        "All levels",
        "Level 4 alone",
        "Level 5 alone",
    ]
    dialog.get_by_label("It shows").select_option("4")
    dialog.get_by_label("Of the people").select_option(label="Everybody")
    dialog.get_by_label("Unit").select_option("")
    expect(dialog.get_by_label("Valid for")).to_be_disabled()
    dialog.get_by_label("Unit").select_option("hours")
    dialog.get_by_label("Valid for").fill("12")
    dialog.get_by_role("button", name="Make the link").click()
    shown = page.get_by_role("dialog", name="Open this on the wall screen")
    expect(shown).to_contain_text("shown only here")
    field = shown.get_by_label("The link")
    expect(field).to_have_value(LINK)
    expect(field).to_be_focused()
    accessible(page)
    newest = site.api("GET", "/tokens").json()["data"][0]
    assert (newest["label"], newest["role"], newest["level"]) == (f"{size} {scheme}", "read", "4")
    assert newest["expires_at"] - newest["created_at"] == 12 * 3600
    expect(shown).to_contain_text(f"./scripts/token revoke {newest['id']}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.get_by_role("button", name="Copy").click()
    expect(shown.get_by_role("status")).to_have_text("Copied.")
    link = page.evaluate("navigator.clipboard.readText()")
    match = LINK.fullmatch(link)
    assert match
    shown.get_by_role("button", name="Done").click()
    expect(opener).to_be_focused()
    nothing_left(page, match[1])

    wall = browsers(viewport=viewport, color_scheme=scheme)
    sent = opened(wall, link)
    expect(wall).to_have_url(f"{site.gateway.url}/monitoring?wall&level=4")
    expect(wall.locator("#plan")).to_contain_text(ROOMS["4"])
    expect(wall.locator("#plan .marker")).to_have_count(3)
    assert ROOMS["5"] not in wall.content()
    accessible(wall)
    wall.get_by_role("link", name="Waymark").click()
    expect(wall).to_have_url(f"{site.gateway.url}/monitoring")
    expect(wall.locator("#plan")).to_contain_text(ROOMS["4"])
    expect(wall.locator("#people [data-staff]")).to_have_count(3)
    expect(wall.get_by_role("navigation", name="Screens").get_by_role("link")).to_have_count(1)
    expect(wall.locator("#levels")).to_be_hidden()
    expect(wall.get_by_role("button", name="Wall link")).to_have_count(0)
    assert ROOMS["5"] not in wall.content()
    wall.locator("#people [data-staff]").first.click()
    expect(wall.locator("#person")).to_contain_text(
        "No trail: this link or token shows level 4 alone."
    )
    expect(wall.get_by_role("link", name="Replay the last hour")).to_have_count(0)
    accessible(wall)
    nowhere_but_in_the_body(site, wall, match[1], sent)


def test_a_link_of_one_team_calls_its_people_by_name(site: Site, browsers: Any) -> None:
    page = browsers()
    log_in(page, site)
    page.goto(f"{site.gateway.url}/monitoring")
    expect(page.locator("#people .who").first).to_have_text(f"{JANE} (1)")
    page.get_by_role("button", name="Wall link").click()
    dialog = page.get_by_role("dialog", name="A link for a wall screen")
    dialog.get_by_label("What it is for").fill("cleaners")
    dialog.get_by_label("Of the people").select_option(TEAM)
    accessible(page)
    dialog.get_by_role("button", name="Make the link").click()
    link = page.get_by_label("The link").input_value()
    page.goto(f"{site.gateway.url}/monitoring/access")
    made = page.locator("#tokens tbody tr", has_text="cleaners")
    expect(made).to_contain_text(f"read, team {TEAM}")
    wall = browsers()
    opened(wall, link)
    expect(wall.locator("#exceptions section")).to_have_count(1)
    wall.get_by_role("link", name="Waymark").click()
    expect(wall.locator("#people .who")).to_have_text([f"{JANE} 1"])
    expect(wall.locator("#summary")).to_contain_text(f"1 person of the team {TEAM} heard")
    expect(wall.get_by_label("Team")).to_be_hidden()
    wall.locator("#people [data-staff]").click()
    expect(wall.locator("#person")).to_contain_text(
        f"No trail: this link or token shows the team {TEAM} alone."
    )
    expect(wall.get_by_role("button", name="Who was in a room?")).to_be_hidden()
    accessible(wall)
    wall.goto(f"{site.gateway.url}/monitoring?wall")
    loaded(wall)
    expect(wall.locator("#summary")).to_contain_text(f"1 person of the team {TEAM} heard")
    expect(wall.locator("#exceptions section")).to_have_count(1)
    expect(wall.locator("#section .marker title")).to_have_text(re.compile(f"^{JANE}: "))
    accessible(wall)


def test_a_link_of_one_level_calls_those_there_by_name(site: Site, browsers: Any) -> None:
    wall = browsers()
    opened(wall, f"{site.gateway.url}/monitoring/login#token={site.made(level='4')['secret']}")
    names = [f"{JANE} (1)", f"{JANE} (3)", "Staff 5"]
    expect(wall.locator("#people .who")).to_have_text(names)


def nothing_left(page: Page, secret: str) -> None:
    """Check that no dialog is open, and that neither the page nor a field of it has a secret."""
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("#secret")).to_have_value("")
    values = "[...document.querySelectorAll('input, select')].map((field) => field.value)"
    assert secret not in page.content() + str(page.evaluate(values))


def test_a_link_is_lost_by_no_key_and_stays_nowhere(site: Site, browsers: Any) -> None:
    page = browsers()
    log_in(page, site)
    page.goto(f"{site.gateway.url}/monitoring")
    expect(page.locator("body[data-loaded='true']")).to_be_attached()
    opener = page.get_by_role("button", name="Wall link")
    opener.click()
    form = page.get_by_role("dialog", name="A link for a wall screen")
    form.get_by_label("What it is for").fill("a slow one")
    form.get_by_label("Unit").select_option("")
    held: list[Route] = []
    page.route("**/api/v1/tokens", lambda route: held.append(route))
    with page.expect_request("**/api/v1/tokens"):
        page.keyboard.press("Enter")
    page.keyboard.press("Escape")  # the link is on its way already
    expect(form).to_be_hidden()
    held[0].continue_()
    shown = page.get_by_role("dialog", name="Open this on the wall screen")
    field = shown.get_by_label("The link")
    expect(field).to_have_value(LINK)
    expect(field).to_be_focused()
    expect(shown).to_contain_text("It is valid until it is revoked.")
    link = field.input_value()
    for _ in range(3):
        page.keyboard.press("Escape")
        expect(shown.get_by_role("status")).to_contain_text("Not copied yet")
        expect(field).to_have_value(link)
    accessible(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.get_by_role("button", name="Copy").click()
    expect(shown.get_by_role("status")).to_have_text("Copied.")
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
    nothing_left(page, link.partition("#token=")[2])
    opener.click()
    expect(form.get_by_label("What it is for")).to_have_value("")
    expect(form.get_by_label("Valid for")).to_be_enabled()


def opened(wall: Page, link: str) -> list[Request]:
    """Open a link; return what the browser sent."""
    sent: list[Request] = []
    wall.on("request", lambda request: sent.append(request))
    wall.goto(link)
    expect(wall.locator("body[data-loaded='true']")).to_be_attached()
    return sent


def nowhere_but_in_the_body(site: Site, wall: Page, secret: str, sent: list[Request]) -> None:
    """Check that a link's secret was sent once, in a body, and stays nowhere."""
    assert [request.post_data for request in sent if secret in (request.post_data or "")] == [
        f'{{"token":"{secret}"}}'
    ]
    assert not [request.url for request in sent if secret in request.url.partition("#")[0]]
    assert not [request.url for request in sent if secret in str(request.all_headers())]
    assert len(sent) > 5
    assert secret not in wall.content()
    assert secret not in wall.url
    kept = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, name])"
    assert secret not in wall.evaluate(kept)
    assert secret not in str(wall.context.cookies())
    wall.go_back()  # the address has none in the browser's history either
    assert secret not in wall.url
    site.gateway.logged()
    for file in site.folder.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


def test_revoked_the_open_page_says_so_and_keeps_its_picture(site: Site, browsers: Any) -> None:
    token = site.made()
    wall = browsers()
    opened(wall, f"{site.gateway.url}/monitoring/login#token={token['secret']}")
    expect(wall.locator("#people [data-staff]")).to_have_count(6)
    loads: list[str] = []
    wall.on("framenavigated", lambda frame: loads.append(frame.url))
    assert site.api("DELETE", f"/tokens/{token['id']}").status_code == 204
    expect(wall.locator("#banner")).to_contain_text(ENDED, timeout=30_000)
    expect(wall.locator("#banner")).to_contain_text("Below is what was known at")
    expect(wall.locator("#people [data-staff]")).to_have_count(6)
    accessible(wall)
    wall.wait_for_timeout(6000)  # longer than from one read to the next
    assert loads == []
    # Somebody opens a new link in another tab: the page goes on.
    other = wall.context.new_page()
    opened(other, f"{site.gateway.url}/monitoring/login#token={site.made()['secret']}")
    expect(wall.locator("#banner")).to_be_hidden(timeout=30_000)
    expect(wall.locator("#ended")).to_be_hidden()


def test_an_ended_log_in_leads_back_to_where_it_was(site: Site, browsers: Any) -> None:
    page = browsers()
    log_in(page, site)
    for path in ("/monitoring?level=5", "/monitoring/directory", "/monitoring/system"):
        page.goto(site.gateway.url + path)
        loaded(page)
        kept = page.context.cookies()
        page.context.clear_cookies()
        link = page.get_by_role("link", name="Log in again")
        expect(link).to_be_visible(timeout=40_000)
        link.click()
        expect(page).to_have_url(re.compile("/monitoring/login"))
        page.get_by_role("button", name="Use a token instead").click()
        page.get_by_label("Token").fill(site.made()["secret"])
        page.get_by_role("button", name="Log in").click()
        expect(page).to_have_url(site.gateway.url + path)
        loaded(page)  # who leads it away meanwhile cuts off a module that it fetches
        page.context.clear_cookies()
        page.context.add_cookies(kept)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_log_in_takes_a_token_and_a_whole_link(site: Site, browsers: Any, scheme: str) -> None:
    page = browsers(color_scheme=scheme)
    for pasted in ("{}", " {}\n", f"{site.gateway.url}/monitoring/login#token={{}}"):
        page.goto(f"{site.gateway.url}/monitoring/login?next=/monitoring/system")
        page.get_by_role("button", name="Use a token instead").click()
        expect(page.get_by_label("Token")).to_be_focused()
        expect(page.get_by_label("Password")).to_be_hidden()
        accessible(page)
        page.get_by_label("Token").fill("wm_nobody's")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert").last).to_have_text(
            "This token is not valid: it was revoked, or has expired."
        )
        accessible(page)
        page.get_by_label("Token").fill(pasted.format(site.made()["secret"]))
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site.gateway.url}/monitoring/system")
        expect(page.locator("body[data-loaded='true']")).to_be_attached()
        page.get_by_role("button", name="Log out").click()
        expect(page).to_have_url(f"{site.gateway.url}/monitoring/login")
    page.get_by_role("button", name="Use a token instead").click()
    page.get_by_role("button", name="Use name and password instead").click()
    expect(page.get_by_label("Name")).to_be_focused()
    expect(page.get_by_label("Token")).to_be_hidden()
    phone = site.api("POST", "/tokens", json={"label": "x", "role": "ingest"}).json()
    page.goto(f"{site.gateway.url}/monitoring/login#token={phone['secret']}")
    expect(page.locator("#link-says")).to_contain_text("role ingest cannot log in")


def test_a_link_that_is_not_valid_any_more_says_so(site: Site, browsers: Any) -> None:
    page = browsers()
    for bad in ("wm_" + "x" * 43, "%00", "<b>"):
        page.goto("about:blank")
        page.goto(f"{site.gateway.url}/monitoring/login#token={bad}")
        expect(page.locator("#link-says")).to_have_text(
            "This link is not valid any more: it was revoked, or has expired."
        )
        expect(page).to_have_url(f"{site.gateway.url}/monitoring/login")
        expect(page.get_by_label("Password")).to_be_hidden()
        accessible(page)


def test_a_wall_that_starts_before_waymark_waits_for_it(site: Site, browsers: Any) -> None:
    page = browsers()
    busy = [True]

    def answer(route: Any) -> None:
        if busy[0] and route.request.method == "POST":
            route.fulfill(status=503, json={"detail": "not yet"})
        else:
            route.continue_()

    page.route("**/api/v1/session", answer)
    page.goto(f"{site.gateway.url}/monitoring/login#token={site.made(level='5')['secret']}")
    expect(page.locator("#link-says")).to_have_text("not yet It is tried again in 5 s.")
    busy[0] = False
    expect(page).to_have_url(f"{site.gateway.url}/monitoring?level=5", timeout=30_000)


def test_a_link_logs_nobody_out_unasked(site: Site, browsers: Any) -> None:
    page = browsers()
    log_in(page, site)
    page.goto(f"{site.gateway.url}/monitoring/login#token={site.made(level='5')['secret']}")
    expect(page.locator("#link-says")).to_contain_text("You are logged in as anna.")
    expect(page).to_have_url(f"{site.gateway.url}/monitoring/login")
    accessible(page)
    page.get_by_role("link", name="Stay logged in").click()
    expect(page.get_by_text("anna", exact=True)).to_be_visible()
    page.goto(f"{site.gateway.url}/monitoring/login#token={site.made(level='5')['secret']}")
    page.get_by_role("button", name="Open the link").click()
    expect(page).to_have_url(f"{site.gateway.url}/monitoring?level=5")


def test_what_goes_wrong_is_said_in_the_dialog(site: Site, browsers: Any) -> None:
    page = browsers()
    log_in(page, site)
    page.goto(f"{site.gateway.url}/monitoring")
    page.get_by_role("button", name="Wall link").click()
    page.get_by_label("What it is for").fill("x")
    page.context.clear_cookies()
    page.get_by_role("button", name="Make the link").click()
    expect(page.locator("#wall-problems")).to_have_text("Your log-in has ended: log in again.")
    expect(page.get_by_role("button", name="Make the link")).to_be_enabled()
