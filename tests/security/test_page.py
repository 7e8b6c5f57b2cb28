"""No stored text becomes markup or a script, on no screen, in a real browser."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, Route, expect

from scripts.processes.waiting import eventually
from tests.page.conftest import Opener, loaded
from tests.security.site import Site

pytestmark = pytest.mark.long

# Names of places hold 64 characters. Each would set `got` or stand in the page as markup.
NAMES = [
    "<img src=x onerror=got=1>",
    "<script>got=1</script>",
    "</script><script>got=1//",
    "</text><script>got=1</script>",
    "<svg onload=got=1>",
    "</title></style><iframe srcdoc='<script>top.got=1</script>'>",
    '" onmouseover=got=1 autofocus onfocus=got=1 x="',
    "' onload='got=1",
    "<a href=javascript:got=1>",
    "javascript:got=1",
    "${got=1}{{got=1}}#{got=1}`${got=1}`",
    "&lt;img src=x onerror=got=1&gt;",
    "\\x3cimg src=x onerror=got=1\\x3e",
    "--><img src=x onerror=got=1><!--",
    "]]><img src=x onerror=got=1>",
    "<math><mtext><style><img src=x onerror=got=1>",
    "<details open ontoggle=got=1>",
    "<base href=//evil.example>",
]
PATHS = [
    "",
    "?person=victim",
    *(f"?level={name}" for name in ("<svg onload=got=1>", "<img src=x onerror=got=1>")),
    "?person=<img src=x onerror=got=1>",
    "/replay?person=victim",
    "/replay?person=<img src=x onerror=got=1>&from=<svg onload=got=1>",
    "/coverage?gap=1",
    "/coverage?level=<svg onload=got=1>",
    "/coverage?room=<img src=x onerror=got=1>&room_level=<svg onload=got=1>&at=1&within=x",
    "/directory",
    "/directory?level=<svg onload=got=1>&search=<img src=x onerror=got=1>",
    "/system?x=<img src=x onerror=got=1>#<img src=x onerror=got=1>",
]
WITH_ALL_NAMES = ("/coverage?gap=1", "/directory")
WATCH = """
  window.got = 0; window.refused = [];
  document.addEventListener("securitypolicyviolation", (event) => refused.push(event.blockedURI));
"""
# What no screen makes by itself.
MARKUP = """() => [...document.querySelectorAll("*")].filter((node) =>
  ["IFRAME", "OBJECT", "EMBED", "BASE", "MATH"].includes(node.nodeName.toUpperCase()) ||
  (node.nodeName === "SCRIPT" && !node.src) ||
  /^javascript:/i.test(node.href?.baseVal ?? node.href ?? "") ||
  [...node.attributes].some((one) => one.name.startsWith("on") || one.value === "got=1")
).map((node) => node.outerHTML.slice(0, 200))"""


def mac(number: int) -> str:
    return f"EEEEEEEE{number:04X}"


@pytest.fixture(scope="module")
def named(site: Site) -> Iterator[None]:
    """Give beacons these names, and let somebody hear each now and somebody hear all of them."""
    for number, name in enumerate(NAMES):
        place = {"level": name, "location": name, "x": number, "y": 1}
        assert site.api("PUT", f"/beacons/{mac(number)}", json=place).status_code == 200, name

    def placed() -> bool:  # the other service too knows the names
        for number in range(len(NAMES)):
            site.hear(f"victim-{number}", mac(number))
        names = {person["location"] for person in site.read("/api/v1/staff").json()["data"]}
        return set(NAMES) <= names

    eventually(placed, 60, pause_seconds=1)
    for number in range(len(NAMES)):
        site.hear("victim", mac(number), ago=60 - number)
    yield
    for number in range(len(NAMES)):
        site.api("DELETE", f"/beacons/{mac(number)}")


@contextmanager
def watched(page: Page) -> Iterator[None]:
    """Fail when anything of the attacker's runs, is refused by the policy, or becomes markup."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(WATCH)
    yield
    assert page.evaluate("[window.got, window.refused]") == [0, []]
    assert page.evaluate(MARKUP) == []
    home = re.match(r"https?://[^/]+", page.url)
    assert home
    assert [
        address for address in asked if not address.startswith((home[0], "data:", "blob:"))
    ] == []


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=got=1>", "<a href=javascript:got=1>", "<iframe>"]
)
def test_markup_would_be_noticed(opened: Opener, name: str) -> None:
    page = opened("/system", bypass_csp=True)  # the policy would stop it
    home = page.url.partition("/monitoring")[0]
    with pytest.raises(AssertionError, match=r"\[1, |onerror|javascript|iframe"):
        insert(page, f"{home}/monitoring", name)


def insert(page: Page, url: str, markup: str) -> None:
    """Do what no screen does."""
    with watched(page):
        page.goto(url)
        loaded(page)
        page.evaluate("(text) => document.body.insertAdjacentHTML('beforeend', text)", markup)


def test_names_stay_text_on_all_screens(opened: Opener, named: None) -> None:
    page = opened("/system")
    home = page.url.partition("/monitoring")[0]
    for path in PATHS:
        with watched(page):
            page.goto(f"{home}/monitoring{path}")
            loaded(page)
            page.mouse.move(400, 400)
            page.keyboard.press("Tab")
        if path in WITH_ALL_NAMES:
            for name in NAMES:
                expect(page.locator("main")).to_contain_text(name)


def test_a_beacons_form_shows_names_as_they_are(opened: Opener, named: None) -> None:
    page = opened("/system")
    home = page.url.partition("/monitoring")[0]
    with watched(page):
        page.goto(f"{home}/monitoring/directory")
        loaded(page)
        page.locator("#beacons tbody tr").filter(has_text="EE:00:00").get_by_role("button").click()
        expect(page.get_by_role("dialog").get_by_label("Location")).to_have_value(NAMES[0])


@pytest.mark.parametrize("screen", ["", "/coverage", "/replay"])
def test_staff_ids_of_an_older_database_stay_text(
    opened: Opener, site: Site, named: None, screen: str
) -> None:
    """Nobody can store such an id any more: the answers are changed on their way."""

    def changed(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        for number, one in enumerate(body.get("data") or body.get("staff") or []):
            if "staff_id" in one:
                one["staff_id"] = NAMES[number % len(NAMES)]
        route.fulfill(response=answer, body=json.dumps(body))

    site.hear("victim", mac(0), ago=int(time.time()) % 5)
    page = opened("/system")
    home = page.url.partition("/monitoring")[0]
    for path in ("staff", "staff?*", "coverage", "now"):
        page.route(f"**/api/v1/{path}", changed)
        page.route(f"**/monitoring/api/{path}", changed)
    with watched(page):
        page.goto(f"{home}/monitoring{screen}")
        loaded(page)
        if not screen:
            expect(page.locator("main")).to_contain_text(NAMES[0])
