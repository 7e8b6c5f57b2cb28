"""Access: who may do what? And one's own account."""

import contextlib
import csv
import io
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from flask import Flask
from playwright.sync_api import APIResponse, Browser, Locator, Page, expect
from pymongo import MongoClient

import monitoring
from ingest.access.tokens import issue
from ingest.assembly import Context
from ingest.rules.roles import Role
from ingest.storage.access.audit import Entry
from monitoring.config import Config
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.page.conftest import LAPTOP, ZONE, Sheets, loaded, watch_policy
from tests.page.one_origin import one_origin
from tests.services.ingest.people import PASSWORD, office

pytestmark = pytest.mark.long

OTHER = "another horse, a longer one"
PHONE = (360, 740)


class Site:
    """A page and a service in which anna is admin and ben may read."""

    def __init__(self, url: str, api: Flask) -> None:
        self.url = url
        self.api = api
        self.context: Context = api.extensions["context"]

    def make(self, label: str) -> None:
        """Make a token as the command does."""
        self.context.access.tokens.add(issue(label, Role.READ, None, int(time.time()))[1])


@pytest.fixture
def site(mongod: str, tmp_path: Path) -> Iterator[Site]:
    with (
        MongoClient[dict[str, Any]](mongod) as client,
        office(mongod, client["ICT3102"], tmp_path) as people,
    ):
        own = tmp_path / "page_token"
        own.write_text("wm_" + "p" * 43)
        api = people.service(page_token_file=str(own))
        people.person("anna", Role.ADMIN)
        people.person("ben", Role.READ)
        port = free_port()
        settings = Config(f"http://127.0.0.1:{port}", "", "required", str(own))
        with one_origin(api, monitoring.create_app(settings), port) as url:
            yield Site(url, api)


LogIn = Callable[..., Page]


@pytest.fixture
def as_(browser: Browser, site: Site) -> Iterator[LogIn]:
    """Return a function that logs somebody in; at the end no page may have had an error."""
    errors: list[str] = []
    with contextlib.ExitStack() as opened:

        def log_in(name: str, path: str, password: str = PASSWORD, **more: Any) -> Page:
            width, height = more.pop("size", LAPTOP)
            context = opened.enter_context(
                contextlib.closing(
                    browser.new_context(
                        viewport={"width": width, "height": height},
                        locale="en-GB",
                        timezone_id=ZONE,
                        reduced_motion="reduce",
                        **more,
                    )
                )
            )
            watch_policy(context, errors)
            page = context.new_page()
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("dialog", lambda question: question.accept())
            page.goto(f"{site.url}/monitoring/login?next=/monitoring{path}")
            page.get_by_label("Name").fill(name)
            page.get_by_label("Password").fill(password)
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url(f"{site.url}/monitoring{path}")
            return page

        yield log_in
    assert errors == []


def line(page: Page, table: str, text: str) -> Locator:
    return page.locator(f"#{table} tbody tr").filter(has_text=text)


def entry(page: Page, text: str) -> Locator:
    """Return the newest of such entries: those of other tests are there too, for good."""
    return page.locator("#audit li").filter(has_text=text).first


def read_at_once(page: Page) -> None:
    page.evaluate("dispatchEvent(new Event('online'))")


def asked(page: Page, site: Site, secret: str) -> APIResponse:
    """Return what somebody gets who has nothing but a token."""
    headers = {"Authorization": f"Bearer {secret}"}
    return page.request.get(f"{site.url}/api/v1/session", headers=headers)


def test_a_token_from_its_making_to_its_end(as_: LogIn, site: Site) -> None:
    page = as_("anna", "/access")
    expect(page.get_by_text("No token is valid")).to_be_visible()
    make = page.get_by_role("button", name="Make a token")
    make.click()
    form = page.get_by_role("dialog", name="Make a token")
    form.get_by_label("Label").fill("HACS")
    form.get_by_label("Role").select_option("read")
    form.get_by_label("Valid").select_option("90")
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog", name="The token “HACS”")
    expect(shown).to_contain_text("shown only here")
    secret = page.locator("#secret").input_value()
    assert asked(page, site, secret).json()["name"] == "HACS"
    page.keyboard.press("Escape")  # nobody loses it by mistake
    expect(shown.get_by_role("status")).to_contain_text("Not copied yet")
    shown.get_by_role("button", name="Copy").click()
    expect(shown.get_by_role("status")).to_have_text("Copied.")
    shown.get_by_role("button", name="Done").click()
    expect(shown).to_be_hidden()
    expect(make).to_be_focused()
    expect(page.locator("#secret")).to_have_value("")
    assert secret not in page.content()

    row = line(page, "tokens", "HACS")
    expect(row).to_contain_text(re.compile(r"read.*never.*until \d+ \w+"))
    expect(page.locator("#summary")).to_have_text("2 people may log in, 1 token is valid")
    row.get_by_role("button", name="Revoke HACS").click()
    expect(page.locator("#done")).to_contain_text("Revoked “HACS”")
    expect(row).to_have_count(0)
    expect(page.locator("#done")).to_be_focused()
    assert asked(page, site, secret).status == 401
    ended = line(page, "past-tokens", "HACS")
    expect(ended).to_be_hidden()
    page.get_by_text("Ended tokens").click()
    expect(ended).to_contain_text("revoked")
    expect(entry(page, "made the token “HACS” (read, until")).to_contain_text("anna")
    expect(entry(page, "revoked the token “HACS”")).to_contain_text("from 127.0.0.1")


def test_who_is_there_already_is_not_written_over(as_: LogIn, site: Site) -> None:
    page = as_("anna", "/account")
    page.route("**/api/v1/accounts", lambda _: None)  # the list does not come
    page.goto(f"{site.url}/monitoring/access")
    form = page.locator("#person-dialog")
    page.get_by_role("button", name="Add a person").click()
    form.get_by_label("Name").fill("Ben")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_have_text("ben is there already: edit that account")
    as_("ben", "/system")  # with the password that he has


def test_a_person_from_the_account_to_its_end(as_: LogIn, site: Site) -> None:
    page = as_("anna", "/access")
    add = page.get_by_role("button", name="Add a person")
    form = page.locator("#person-dialog")
    add.click()
    form.get_by_label("Name").fill("Ben")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_have_text("ben is there already: edit that account")
    expect(form.get_by_role("button", name="Save")).to_be_focused()
    form.get_by_label("Name").fill("Carla")
    form.get_by_role("button", name="Save").click()
    shown = page.get_by_role("dialog", name="The password of carla")
    password = shown.get_by_role("textbox").input_value()
    shown.get_by_role("button", name="Done").click()
    row = line(page, "people", "carla")
    expect(row).to_contain_text("read")
    carla = as_("carla", "/system", password)
    expect(carla.get_by_role("link", name="Access")).to_have_count(0)

    # Another role, and another password, which ends what the old one began.
    row.get_by_role("button").click()
    form.get_by_label("Role").select_option("admin")
    form.get_by_label("Make a new password").check()
    form.get_by_role("button", name="Save").click()
    assert shown.get_by_role("textbox").input_value() not in ("", password)
    new = shown.get_by_role("textbox").input_value()
    shown.get_by_role("button", name="Done").click()
    expect(row).to_contain_text("admin")
    expect(row.get_by_role("button")).to_be_focused()
    assert carla.request.get(f"{site.url}/api/v1/session").status == 401
    as_("carla", "/access", new)

    row.get_by_role("button").click()
    form.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    expect(page.locator("#done")).to_have_text("Removed carla.")
    expect(entry(page, "gave carla the role admin and a new password")).to_contain_text("anna")
    expect(entry(page, "removed carla from the people")).to_contain_text("anna")


def test_a_password_is_changed_and_all_log_ins_end(as_: LogIn, site: Site) -> None:
    elsewhere = as_("ben", "/account")
    page = as_("ben", "/account")
    old, new = page.get_by_label("Old password"), page.get_by_label("New password")
    old.fill("not the password")
    new.fill(OTHER)
    page.get_by_role("button", name="Change it").click()
    problem = page.get_by_role("alert").filter(has_text="old password")
    expect(problem).to_have_text("That is not your old password")
    old.fill(PASSWORD)
    page.get_by_label("Show what I type").check()
    expect(new).to_have_attribute("type", "text")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("status")).to_contain_text("Your password is changed.")
    expect(page.get_by_role("status")).to_be_focused()
    expect(problem).to_be_hidden()
    assert (old.input_value(), new.get_attribute("type")) == ("", "password")
    session = f"{site.url}/api/v1/session"
    assert page.request.get(session).status == 200
    assert elsewhere.request.get(session).status == 401

    third = as_("ben", "/account", OTHER)
    page.get_by_role("button", name="Log out everywhere").click()
    expect(page).to_have_url(f"{site.url}/monitoring/login")
    assert [browser.request.get(session).status for browser in (page, third)] == [401, 401]
    anna = as_("anna", "/access")
    for did in ("changed their password", "could not change", "logged out everywhere"):
        expect(entry(anna, did)).to_contain_text("ben")


def test_an_admin_names_people_and_a_reader_sees_the_names(as_: LogIn) -> None:
    page = as_("anna", "/people")
    page.get_by_role("button", name="Add a person").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Staff id").fill("7")
    dialog.get_by_label("Name").fill("Jane Tan")
    dialog.get_by_role("button", name="Save").click()
    expect(line(page, "people", "Jane Tan")).to_be_visible()
    page.get_by_role("link", name="Access").click()
    expect(entry(page, "Jane Tan")).to_have_text(re.compile("^anna saved staff 7: Jane Tan"))
    reader = as_("ben", "/people")
    expect(line(reader, "people", "Jane Tan")).to_be_visible()
    expect(reader.locator("#ask")).to_contain_text("Only admins name people: ask ")
    expect(reader.locator("main").get_by_role("button")).to_have_count(0)
    assert Axe().run(reader).response["violations"] == []


def test_who_did_what_is_read_to_its_end_and_saved(as_: LogIn, site: Site, tmp_path: Path) -> None:
    page = as_("anna", "/access")
    did = Entry(int(time.time()), "=1+1", "token", "log-out", "", {}, "192.0.2.9")
    for _ in range(120):
        site.context.access.audit.add(did)
    page.reload()
    expect(page.locator("#audit li")).to_have_count(50)
    older = page.get_by_role("button", name="Load older")
    older.click()
    expect(page.locator("#audit li")).to_have_count(100)
    for more in range(150, 100_000, 50):
        older.click()
        expect(page.locator(f"#audit li:nth-child({more - 49})")).to_be_attached()
        if older.is_hidden():
            break
    expect(entry(page, "anna logged in")).to_be_attached()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download CSV").click()
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    assert file.name == "audit.csv"
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert len(rows) == page.locator("#audit li").count()
    assert rows[0]["who"] == "'=1+1"  # no spreadsheet calculates it


@pytest.mark.parametrize(("size", "scheme"), [(LAPTOP, "dark"), (PHONE, "light")])
def test_everybody_can_use_it(as_: LogIn, site: Site, scheme: str, size: tuple[int, int]) -> None:
    site.make("Wall screen")
    page = as_("anna", "/access", color_scheme=scheme, size=size)
    loaded(page)
    assert Axe().run(page).response["violations"] == []
    for name in ("Make a token", "Add a person", "Edit ben"):
        opener = page.get_by_role("button", name=name)
        opener.click()
        assert Axe().run(page).response["violations"] == []
        page.keyboard.press("Escape")
        expect(opener).to_be_focused()
    wide = "document.documentElement.scrollWidth > innerWidth"
    assert not page.evaluate(wide)
    small = page.evaluate(
        """() => [...document.querySelectorAll("a, button, input, select, summary")]
            .filter((node) => node.checkVisibility() && !node.closest(".skip, label.check"))
            .filter((node) => node.getBoundingClientRect().height < 43.5)
            .map((node) => node.outerHTML.slice(0, 80))"""
    )
    assert small == []
    page.get_by_role("link", name="anna").click()
    expect(page.get_by_role("heading", name="Your account")).to_be_visible()
    assert Axe().run(page).response["violations"] == []
    assert not page.evaluate(wide)


def test_what_cannot_be_read_is_never_none(as_: LogIn, site: Site) -> None:
    site.make("HACS")
    page = as_("anna", "/system")
    headers = {"X-Circuit-State": "open", "Retry-After": "5"}
    away = "**/api/v1/{tokens,accounts,audit*}"
    page.route(away, lambda route: route.fulfill(status=503, headers=headers, body="{}"))
    page.goto(f"{site.url}/monitoring/access")
    expect(page.get_by_role("alert").first).to_contain_text("Waymark cannot read this since")
    for text in ("No token is valid", "Nobody can log in", "Nothing was done"):
        expect(page.get_by_text(text)).to_be_hidden()
    expect(page.locator(".skeleton:visible")).to_have_count(0)
    page.unroute(away)
    read_at_once(page)
    expect(line(page, "tokens", "HACS")).to_be_visible()
    expect(page.get_by_role("alert").first).to_be_hidden()
    page.route(
        "**/api/v1/tokens/*", lambda route: route.fulfill(status=503, headers=headers, body="{}")
    )
    line(page, "tokens", "HACS").get_by_role("button").click()
    expect(page.locator("#done")).to_contain_text("“HACS” was not revoked: The circuit is open")


def test_a_log_in_that_ended_is_told(as_: LogIn, site: Site) -> None:
    page = as_("anna", "/access")
    loaded(page)
    page.context.clear_cookies()
    read_at_once(page)
    expect(page.get_by_role("alert").first).to_contain_text("Your log-in has ended")
    page.get_by_role("link", name="Log in again").click()
    expect(page).to_have_url(f"{site.url}/monitoring/login?next=%2Fmonitoring%2Faccess")


def test_who_is_no_admin_any_more_is_told(as_: LogIn, site: Site) -> None:
    page = as_("anna", "/access")
    loaded(page)
    for name, role in (("ben", Role.ADMIN), ("anna", Role.READ)):
        site.context.access.accounts.put(name, role, None, time.time())

    def refused() -> bool:
        site.context.access.cache.refresh()
        return page.request.get(f"{site.url}/api/v1/accounts").status == 403

    eventually(refused, 30)
    read_at_once(page)
    expect(page.get_by_role("alert").first).to_contain_text("needs the role admin, this is read")
    expect(page.get_by_role("main")).to_be_hidden()


def test_where_access_is_open_it_says_so(browser: Browser, site: Site) -> None:
    app = monitoring.create_app(Config(site.url))
    with one_origin(site.api, app) as url, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{url}/monitoring/access")
        expect(page.get_by_role("main")).to_contain_text("./scripts/configure NAME")
        assert Axe().run(page).response["violations"] == []


def test_it_prints_all_its_rows(as_: LogIn, site: Site, sheets: Sheets) -> None:
    for number in range(40):
        site.make(f"Wall {number}")
    page = as_("anna", "/access")
    loaded(page)
    rows = page.locator(":is(#people, #tokens) tbody th > :first-child, #audit li > :first-child")
    shown = rows.all_inner_texts()
    assert len(shown) > 42
    words = "".join("".join(sheets(page)).split())
    assert [text for text in shown if "".join(text.split()) not in words] == []
    for are_there_more in (False, True):
        page.locator("#older").evaluate("(older, is) => { older.hidden = !is }", are_there_more)
        words = "".join("".join(sheets(page)).split())
        assert ("Olderentriesoftheauditaremissing." in words) == are_there_more
