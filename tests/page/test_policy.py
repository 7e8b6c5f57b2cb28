"""What the browser enforces: on our own pages, and for us against the pages of strangers."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from scripts.processes.waiting import eventually
from tests.page.browser import STRANGER
from tests.page.conftest import Office, Opener, watch_policy
from tests.upstream import Upstream

SCREENS = ["", "/replay?person=7", "/coverage", "/people", "/directory", "/system"]


@pytest.mark.long
def test_no_screen_needs_more_than_its_policy_allows(opened: Opener) -> None:
    for path in SCREENS:  # at the end of a test, each violation fails it
        expect(opened(path).locator("body[data-loaded='true']")).to_be_attached()


def test_the_description_has_its_style(opened: Opener, office: Office) -> None:
    page = opened()
    page.goto(f"{office.url}/docs")
    expect(page.locator("main")).to_have_css("max-width", "960px")


@pytest.mark.parametrize(
    "smuggled",
    [
        "document.body.innerHTML = '<b onclick=alert(1)>'",
        "document.head.append(document.createElement('style'));"
        " document.querySelector('style').textContent = 'p{}'",
        "document.body.setAttribute('style', 'color: red')",
        "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:1/x.png'}))",
        "fetch('http://127.0.0.1:1/').catch(() => 0)",
        "document.body.append(document.createElement('iframe'));"
        " document.querySelector('iframe').src = '/monitoring'",
    ],
)
def test_what_is_smuggled_into_a_page_is_stopped_and_seen(
    browser: Browser, office: Office, smuggled: str
) -> None:
    messages: list[str] = []
    with browser.new_context() as context:
        watch_policy(context, messages)
        page = context.new_page()
        page.goto(f"{office.url}/monitoring")
        assert messages == []
        page.evaluate(f"() => {{ try {{ {smuggled} }} catch {{}} }}")

        def seen() -> list[str]:
            page.wait_for_timeout(50)  # playwright tells what the console said while it works
            return messages

        eventually(seen)


@pytest.fixture
def stranger() -> Iterator[Upstream]:
    """Return the site of a stranger, which is of another origin than the stack's."""
    site = Upstream()
    site.answer(200, b"<!doctype html><title>x</title>", {"Content-Type": "text/html"})
    yield site
    site.close()


TRY = """async ([url, options]) => {
  try { return (await fetch(url, options)).status } catch (error) { return error.name }
}"""


def test_a_strangers_page_can_neither_read_nor_write(
    browser: Browser, office: Office, stranger: Upstream
) -> None:
    log = office.data / "log" / "requests.log"
    correction = "/api/v1/beacons/C2A628040008/correction"

    def corrections() -> list[str]:
        logged = "/api/v1/beacons/*/correction"
        lines = [json.loads(line) for line in log.read_text().splitlines() if logged in line]
        return [line["status"] for line in lines]

    before = len(corrections())
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://localhost:{stranger.port}/")

        def asked(path: str, **options: object) -> object:
            return page.evaluate(TRY, [office.url + path, options])

        assert asked("/retrieveformonitoring") == 200  # the contract of old
        for path in ("/api/v1/now", "/monitoring/latest", "/monitoring"):
            assert asked(path) == "TypeError"
            assert asked(path, mode="no-cors") == "TypeError"  # nor as a picture or a script
        assert asked("/api/v1/beacons/C2A628040008", method="DELETE") == "TypeError"
        assert asked(correction, method="POST", mode="no-cors") == "TypeError"  # but it was sent

    assert eventually(lambda: corrections()[before:]) == ["403"]
    assert office.api("GET", "/beacons/C2A628040008").status_code == 200


def test_a_name_that_was_made_to_lead_here_shows_nothing(browser: Browser, office: Office) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        for path in ("/monitoring", "/api/v1/now", "/monitoring/latest"):
            answer = page.goto(f"http://{STRANGER}:{office.port}{path}")
            assert answer is not None
            assert answer.status == 421
            assert "WAYMARK_HOSTNAMES" in answer.text()
