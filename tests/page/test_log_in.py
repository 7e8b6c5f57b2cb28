"""People log in and out in a real browser; page and API are one origin, without a gateway."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect
from pymongo import MongoClient
from werkzeug.serving import make_server

import monitoring
from ingest.rules.roles import Role
from monitoring.config import Config
from tests.services.ingest.people import PASSWORD, office

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]


@pytest.fixture
def url(mongod: str, tmp_path: Path) -> Iterator[str]:
    """Return the address of a page and a service in which anna may log in."""
    with (
        MongoClient[dict[str, Any]](mongod) as client,
        office(mongod, client["ICT3102"], tmp_path) as people,
    ):
        api = people.service()
        people.person("anna", Role.ADMIN)
        page = monitoring.create_app(Config(gateway_url="http://127.0.0.1:1"))
        anna = SimpleNamespace(name="anna", kind="person", has_session=True)
        page.context_processor(lambda: {"visitor": anna})

        def both(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
            environ["HTTP_X_FORWARDED_PROTO"] = "http"
            app: Wsgi = api if environ["PATH_INFO"].startswith("/api/") else page
            return app(environ, start)

        server = make_server("127.0.0.1", 0, both, threaded=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.port}"
        server.shutdown()
        thread.join()


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(color_scheme=request.param, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def log_in(page: Page, password: str) -> None:
    page.get_by_label("Name").fill("Anna")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


@pytest.mark.long
def test_from_log_in_to_log_out(page: Page, url: str) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{url}/monitoring/login?next=/monitoring/system%3Fa=b")
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    log_in(page, "a wrong password")
    expect(page.get_by_role("alert").last).to_have_text("Wrong name or password.")
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    log_in(page, PASSWORD)
    expect(page).to_have_url(f"{url}/monitoring/system?a=b")
    assert page.evaluate("document.cookie") == ""  # no script sees it
    expect(page.get_by_text("anna", exact=True)).to_be_visible()
    # What the page writes carries the proof that it comes from the page.
    write = """(url) => import("/monitoring/static/page/request.js").then(({ request }) => request(
        url, { method: "PUT", headers: { "Content-Type": "application/json" },
               body: '{"level": "4", "location": "Lobby B"}' }))"""
    assert page.evaluate(write, "/api/v1/beacons/C2A628384B08")["corrected"] == 0
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(f"{url}/monitoring/login")
    assert page.request.get(f"{url}/api/v1/session").status == 401
    assert errors == []


def test_a_log_out_that_would_do_nothing_yet_cannot_be_clicked(page: Page, url: str) -> None:
    page.goto(f"{url}/monitoring/login")
    log_in(page, PASSWORD)
    button = page.get_by_role("button", name="Log out")
    expect(button).to_be_enabled()
    held: list[Route] = []
    script = re.compile(r"/log_out\.js")
    page.route(script, lambda route: held.append(route))  # as on a slow line
    with page.expect_request(script):
        page.reload(wait_until="commit")
    expect(button).to_be_disabled()
    held[0].continue_()
    expect(button).to_be_enabled()


def test_a_password_never_stands_in_an_address(page: Page, url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route(re.compile(r"/login\.js"), lambda route: route.abort())  # the form alone
    page.goto(f"{url}/monitoring/login")
    log_in(page, PASSWORD)
    page.wait_for_load_state()
    assert len(asked) > 3
    assert not any("password" in url or "correct" in url for url in asked)
