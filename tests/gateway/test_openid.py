"""People log in at a real provider, in a real browser, through the gateway and two services."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as Timeout
from pymongo import MongoClient

from scripts.processes import ROOT
from scripts.processes.health import http_problem
from scripts.processes.ports import free_port
from scripts.processes.process import Process
from tests.gateway.conftest import Gateway
from tests.service import Service, running
from tests.services.ingest.people import office
from tests.services.monitoring.conftest import Service as Monitoring

pytestmark = pytest.mark.long

PROVIDER = ROOT / "tests" / "openid_provider" / "provider.mjs"
MODULES = ROOT / ".cache" / "openid_provider" / "node_modules"
PEOPLE = {
    "anna": {"email": "Anna@example.org", "email_verified": True},
    "ben": {"email": "ben@example.org", "email_verified": False},
    "eve": {"email": "eve@evil.example", "email_verified": True},
}
SECRET = "what the provider and we know, and nobody else"
CALLBACK = "/api/v1/session/oidc/callback"


class Stack(NamedTuple):
    """A gateway at 127.0.0.1, and a provider at localhost: to a browser these are two sites."""

    gateway: Gateway
    services: list[Service]
    provider: Process
    issuer: str

    def start_provider(self) -> None:
        """Start the provider, and wait until it answers."""
        self.provider.start()
        discovery = f"{self.issuer}/.well-known/openid-configuration"
        self.provider.wait_until_healthy(partial(http_problem, discovery))


@pytest.fixture(scope="module")
def stack(mongod: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("openid")
    for name, text in (("client_secret", SECRET), ("page_token", "wm_" + "p" * 43)):
        (folder / name).write_text(text)
    (folder / "run").mkdir()
    gateway = Gateway(folder / "run")
    port = free_port()
    client = {
        "client_id": "waymark",
        "client_secret": SECRET,
        "redirect_uris": [gateway.url + CALLBACK],
    }
    settings = {"port": port, "clients": [client], "people": PEOPLE}
    command = ["node", str(PROVIDER), str(MODULES), json.dumps(settings)]
    provider = Process("provider", command, folder / "provider.log")
    both = {
        "WAYMARK_ACCESS": "required",
        "PAGE_TOKEN_FILE": str(folder / "page_token"),
        "OIDC_ISSUER": f"http://localhost:{port}",
    }
    ours = {
        "SESSION_KEY_FILE": folder / "session_key",
        "OIDC_CLIENT_ID": "waymark",
        "OIDC_CLIENT_SECRET_FILE": folder / "client_secret",
        "OIDC_ADMINS": "anna@example.org",
        "OIDC_READERS": "*@example.org",
    }
    with ExitStack() as held:
        database = held.enter_context(MongoClient[dict[str, Any]](mongod))["ICT3102"]
        held.enter_context(office(mongod, database, folder)).service()  # makes the key
        held.callback(provider.stop)
        two = (Service(mongod, folder, (), **both, **ours) for _ in range(2))
        services = held.enter_context(running(*two))
        named = both | {"OIDC_NAME": "Example & Sons"}
        page = held.enter_context(Monitoring(gateway.url, folder, settings=named))
        gateway.settings["ingest"] = " ".join(f"127.0.0.1:{service.port}" for service in services)
        gateway.settings["monitoring"] = f"127.0.0.1:{page.port}"
        held.callback(gateway.close)
        made = Stack(gateway.start(), services, provider, both["OIDC_ISSUER"])
        made.start_provider()
        yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def leave(page: Page, stack: Stack, where: str = "/monitoring/system") -> None:
    """Ask for a page, and go to the provider."""
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(f"{request.url}: {request.failure}"))
    for _ in range(3):
        page.goto(stack.gateway.url + where)
        page.get_by_role("link", name="Log in with Example & Sons").click()
        # Chromium drops a load when another test on this machine adds a network interface.
        with suppress(Timeout):
            page.wait_for_url(re.compile("^(http://localhost:|chrome-error:)"))
        if page.url.startswith("http://localhost:"):
            return
        if not failed:
            break
    raise AssertionError(page.url, failed, stack.gateway.log.read_text()[-2000:])


def log_in(page: Page, name: str) -> None:
    """Fill in the provider's own forms."""
    page.locator("[name=login]").fill(name)
    page.locator("[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def test_from_log_in_to_log_out(page: Page, stack: Stack) -> None:
    url = stack.gateway.url
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    leave(page, stack, "/monitoring/system?a=b")
    [kept] = [cookie for cookie in page.context.cookies() if cookie["name"] == "waymark_oidc"]
    assert (kept["sameSite"], kept["httpOnly"]) == ("Lax", True)
    log_in(page, "anna")
    expect(page).to_have_url(f"{url}/monitoring/system?a=b")
    expect(page.get_by_text("anna@example.org", exact=True)).to_be_visible()
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies(url)}
    assert set(cookies) == {"waymark_session", "waymark_device"}
    assert cookies["waymark_session"]["sameSite"] == "Strict"
    assert page.evaluate("document.cookie") == ""
    for service in stack.services:
        headers = {"Cookie": f"waymark_session={cookies['waymark_session']['value']}"}
        session = service.session.get(f"{service.url}/api/v1/session", headers=headers).json()
        assert (session["name"], session["role"]) == ("anna@example.org", "admin")

    # The same way back leads nowhere: the provider takes its code once.
    [back] = [address for address in addresses if urlsplit(address).path == CALLBACK]
    again = requests.get(back, cookies={"waymark_oidc": kept["value"]}, allow_redirects=False)
    assert again.status_code == 303
    assert "problem=failed" in again.headers["Location"]
    assert "waymark_session" not in again.headers["Set-Cookie"]
    # What stands in addresses for a moment is in no log of ours.
    code = parse_qs(urlsplit(back).query)["code"][0]
    logs = [stack.gateway.log.read_text(), *(service.log for service in stack.services)]
    assert not any(code in log or kept["value"] in log for log in logs)

    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(f"{url}/monitoring/login")
    assert page.request.get(f"{url}/api/v1/session").status == 401


@pytest.mark.parametrize(
    ("name", "words"),
    [("eve", "You may not use Waymark."), ("ben", "Example & Sons does not say that your e-mail")],
)
def test_who_is_not_let_in_is_told_why(page: Page, stack: Stack, name: str, words: str) -> None:
    leave(page, stack)
    log_in(page, name)
    expect(page.get_by_role("alert").last).to_contain_text(words)
    assert urlsplit(page.url).path == "/monitoring/login"
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    assert page.request.get(f"{stack.gateway.url}/api/v1/session").status == 401
    # Another try leads where the first one should have.
    page.get_by_role("link", name="Log in with Example & Sons").click()
    page.wait_for_url(re.compile("^http://localhost:|/monitoring/login"))


def test_who_turns_back_at_the_provider_is_at_the_log_in_again(page: Page, stack: Stack) -> None:
    leave(page, stack)
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("alert").last).to_have_text("The log-in was cancelled.")
    leave(page, stack, "/monitoring/login")


def test_while_its_provider_is_away_the_page_says_so(page: Page, stack: Stack) -> None:
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    leave(page, stack)
    query = parse_qs(urlsplit(next(address for address in addresses if "/auth?" in address)).query)
    back = {"code": "x", "state": query["state"][0], "iss": stack.issuer}
    stack.provider.stop()
    try:
        page.goto(f"{stack.gateway.url}{CALLBACK}?{urlencode(back)}")
        alert = page.get_by_role("alert").last
        expect(alert).to_have_text("Example & Sons does not answer. Try again.")
        circuit = stack.gateway.request("GET", "/_circuit/reads")
        assert circuit.headers["X-Circuit-State"] == "closed"
    finally:
        stack.start_provider()
