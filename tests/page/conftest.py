"""One stack with the demo and one browser for all tests of the page."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from scripts.processes.waiting import eventually
from tests.needs import need
from tests.stack.conftest import Stack

ZONE = "Asia/Singapore"
LAPTOP = (1280, 800)


class Office(Stack):
    """The stack, and what the tests of the page do with it."""

    def hear(self, staff_id: object, mac: str, *, ago: int = 0) -> None:
        """Store a detection of a while ago."""
        timestamp = int(time.time()) - ago
        answer = self.detect(staff_id, beacon_address=mac, timestamp=timestamp, rssi=-60)
        assert answer.status_code == 200, answer.text

    def shown(self, staff_id: str) -> None:
        """Wait until the page's next read has somebody: it may be 2 s old."""

        def everybody() -> list[str]:
            return [
                str(person["staff_id"]) for person in self.get("/monitoring/latest").json()["staff"]
            ]

        eventually(lambda: staff_id in everybody(), 30)

    def api(self, method: str, path: str, **more: Any) -> requests.Response:
        return self.session.request(method, f"{self.url}/api/v1{path}", timeout=30, **more)


@pytest.fixture(scope="session")
def office(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """Return a running stack with 14 ambassadors who have walked for a moment."""
    office = Office(root, tmp_path_factory.mktemp("page") / "data")
    office.environment["OBSERVE_SECONDS"] = "1"
    office.environment["PLAN_ORIGIN"] = "1.377 103.8489"
    office.up("--demo")
    try:
        office.wait_for_people(14)
        yield office
    finally:
        office.down()


# Chromium tells a violation in its console, in words of its own; this says it in ours.
VIOLATED = "violates the policy: "
REPORT = f"""addEventListener("securitypolicyviolation", (event) =>
  console.error("{VIOLATED}" + event.effectiveDirective, event.blockedURI, event.sample))"""


def watch_policy(context: BrowserContext, messages: list[str]) -> None:
    """Note each violation of the Content-Security-Policy on any page of a context."""
    context.add_init_script(REPORT)

    def note(message: ConsoleMessage) -> None:
        if message.text.startswith(VIOLATED) or "Content Security Policy" in message.text:
            messages.append(message.text)

    context.on("console", note)


Opener = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, office: Office) -> Iterator[Opener]:
    """Return a function that opens a screen; at the end no page may have had an error."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def open_(path: str = "", size: tuple[int, int] = LAPTOP, **more: Any) -> Page:
        prepare = more.pop("prepare", None)
        wait = more.pop("wait", "load")
        viewport = {"width": size[0], "height": size[1]}
        context = browser.new_context(
            viewport=viewport,  # type: ignore[arg-type]
            locale="en-GB",
            timezone_id=more.pop("timezone_id", ZONE),
            **more,
        )
        contexts.append(context)
        watch_policy(context, errors)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(f"{path}: {error}"))
        if prepare:
            prepare(page)
        page.goto(f"{office.url}/monitoring{path}", wait_until=wait)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert errors == []


def loaded(page: Page) -> None:
    """Wait until a screen shows its data."""
    expect(page.locator("body[data-loaded='true']")).to_be_attached()


HAS_STYLE = "[...document.styleSheets].some((sheet) => sheet.media.mediaText === 'print')"
Sheets = Callable[[Page], list[str]]


@pytest.fixture
def sheets() -> Sheets:
    """Return a function that prints a page, and returns the text of each sheet."""
    need("pdftotext")

    def printed(page: Page) -> list[str]:
        eventually(lambda: page.evaluate(HAS_STYLE), 30)
        paper = page.pdf(format="A4", prefer_css_page_size=True)
        command = ["pdftotext", "-layout", "-", "-"]
        text = subprocess.run(command, input=paper, capture_output=True, check=True).stdout
        pages = text.decode().split("\f")[:-1]
        for number, sheet in enumerate(pages, start=1):
            assert "Waymark: " in sheet
            assert re.search(rf"As of \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d \({ZONE}\)", sheet)
            assert re.search(r"Printed \d{4}-\d\d-\d\d \d\d:\d\d:\d\d by ", sheet)
            assert f"Sheet {number} of {len(pages)}" in sheet
        return pages

    return printed
