"""The screens: small, and with addresses that their visitor can use."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from monitoring import create_app
from monitoring.config import Config
from monitoring.screens import SCREENS, TITLES
from monitoring.static_files import FOLDER
from tests.upstream import Upstream

BEHIND = {"Host": "way.example:8080", "X-Forwarded-Proto": "https", "Sec-Waymark-Gateway": "1"}
FIRST_PAINT_BYTES = 60_000
# Word by word: what is added to it or taken from it has to be added here, too.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)


def test_it_never_imports_pymongo(root: Any) -> None:
    code = "import sys, monitoring; monitoring.create_app(); sys.exit('pymongo' in sys.modules)"
    environment = {"PYTHONPATH": f"{root}:{root / 'services' / 'monitoring'}"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_the_page_names_the_address_its_visitor_uses(client: FlaskClient) -> None:
    page = client.get("/monitoring", headers=BEHIND)
    assert "curl '" in page.text
    assert "https://way.example:8080/newbeacondetect?" in page.text
    assert client.get("/").headers["Location"] == "/monitoring"
    assert client.get("/nothing").get_json() == {"error": "not found"}
    assert client.get("/monitoring/nothing").status_code == 404


def test_on_its_own_port_the_page_says_so_and_leads_to_the_gateway(client: FlaskClient) -> None:
    own = client.get("/monitoring/replay?person=3").text
    assert "own port" in own
    assert re.search(r'href="http://127\.0\.0\.1:\d+/monitoring/replay\?person=3"', own)
    assert 'data-api="/monitoring/api"' in own
    behind = client.get("/monitoring/replay?person=3", headers=BEHIND).text
    assert "own port" not in behind
    assert 'data-api="/api/v1"' in behind


@pytest.mark.parametrize("published", ["0.0.0.0", "[::]"])
@pytest.mark.parametrize("host", ["localhost", "[2001:db8::7]", "10.1.2.3"])
def test_published_on_every_address_it_names_the_one_that_was_used(
    published: str, host: str
) -> None:
    client = create_app(Config(public_url=f"http://{published}:8080")).test_client()
    own = client.get("/monitoring", headers={"Host": f"{host}:4000"}).text
    assert f'href="http://{host}:8080/monitoring' in own
    assert published not in own


def test_its_own_port_is_asked_by_address_alone(client: FlaskClient) -> None:
    for path in ("/", "/monitoring", "/monitoring/api/staff", "/monitoring/latest", "/nothing"):
        answer = client.get(path, headers={"Host": "stranger.example:4000"})
        assert answer.status_code == 421
        assert "gateway" in answer.get_json()["error"]
    for path, status in (("/healthz", 200), ("/newbeacondetect", 503)):
        assert client.get(path, headers={"Host": "stranger.example"}).status_code == status


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_allows_its_browser_files_of_ours_alone(client: FlaskClient, screen: str) -> None:
    page = client.get("/monitoring" if screen == "live" else f"/monitoring/{screen}")
    assert page.headers["Content-Security-Policy"] == POLICY
    assert not re.findall(r"<style|\sstyle=|\son\w+=|<script>|javascript:", page.text)


def test_whatever_is_html_has_that_policy(client: FlaskClient, gateway: Upstream) -> None:
    answers: list[TestResponse] = []
    for role in ("read", "admin"):
        for visitor in (client, visiting(gateway, role)):
            rules = map(str, visitor.application.url_map.iter_rules())
            paths = [rule for rule in rules if "<" not in rule]
            paths += ["/nothing", *(f"/monitoring/{name}" for name in TITLES)]
            answers += [visitor.get(path, headers=BEHIND) for path in paths]
    pages = [
        answer for answer in answers if answer.mimetype == "text/html" and answer.status_code != 302
    ]
    assert len(pages) == 4 * (len(TITLES) + 2)  # /monitoring and the log-in
    assert 403 in {page.status_code for page in pages}
    assert {page.headers.get("Content-Security-Policy") for page in pages} == {POLICY}


@pytest.mark.parametrize(
    "path", ["", "?wall", "/login", *(f"/{name}" for name in SCREENS if name != "live")]
)
def test_a_screen_is_small_and_names_only_files_of_ours(client: FlaskClient, path: str) -> None:
    check_weight(client, client.get(f"/monitoring{path}"))


def check_weight(client: FlaskClient, page: TestResponse) -> None:
    assert page.status_code == 200
    named = set(re.findall(r'(?:href|src)="(/monitoring/static/[^"]+)"', page.text))
    files = [client.get(url, headers={"Accept-Encoding": "gzip"}) for url in named]
    assert {answer.status_code for answer in files} == {200}
    total = len(gzip.compress(page.data)) + sum(len(answer.data) for answer in files)
    assert total < FIRST_PAINT_BYTES
    assert not re.findall(
        r'(?:href|src)="(?:https?:)?//', page.text.replace("http://127.0.0.1", "")
    )
    modules = {url.removeprefix("/monitoring/static/") for url in named if url.endswith(".js")}
    needed = {path for name in modules for path in imports_of(name)}
    assert needed <= modules, "a module that is not preloaded costs a round trip more"


@pytest.fixture
def gateway() -> Iterator[Upstream]:
    """Return what tells the page who its visitor is."""
    upstream = Upstream()
    yield upstream
    upstream.close()


def visiting(
    gateway: Upstream, role: str, kind: str = "person", admins: list[str] | None = None
) -> FlaskClient:
    """Return the browser of somebody whom an ingest service knows."""
    session: dict[str, Any] = {
        "name": "<anna>",
        "kind": kind,
        "role": role,
        "expires_at": None,
        "level": None,
    }
    session |= {"admins": admins} if admins else {}
    gateway.answer(200, json.dumps(session).encode())
    app = create_app(Config(gateway_url=gateway.url, waymark_access="required"))
    client = app.test_client()
    client.set_cookie("waymark_session", "anything", domain="localhost")
    client.set_cookie("__Host-waymark_session", "anything", domain="way.example")
    return client


def navigation(page: str) -> list[str]:
    [links] = re.findall(r'<nav class="screens".*?</nav>', page, re.DOTALL)
    return re.findall(r">(\w+)</a>", links)


def test_an_admin_manages_who_may_do_what(gateway: Upstream) -> None:
    page = visiting(gateway, "admin").get("/monitoring/access", headers=BEHIND)
    assert page.status_code == 200
    assert navigation(page.text)[-1] == "Access"
    assert 'id="tokens"' in page.text
    assert 'data-visitor="&lt;anna&gt;"' in page.text


def test_over_tls_what_others_may_have_set_is_no_session(gateway: Upstream) -> None:
    stranger = visiting(gateway, "admin")
    stranger.delete_cookie("__Host-waymark_session", domain="way.example")
    stranger.set_cookie("waymark_session", "planted", domain="way.example")
    assert stranger.get("/monitoring", headers=BEHIND).status_code == 401
    plain = BEHIND | {"X-Forwarded-Proto": "http"}
    assert stranger.get("/monitoring", headers=plain).status_code == 200


@pytest.mark.parametrize(
    ("screen", "what"), [("directory", "change the directory"), ("people", "name people")]
)
def test_a_reader_is_offered_no_edit_but_told_whom_to_ask(
    gateway: Upstream, screen: str, what: str
) -> None:
    for role, admins in (("read", ["anna", "<ben>"]), ("read", None), ("admin", None)):
        visitor = visiting(gateway, role, admins=admins)
        page = visitor.get(f"/monitoring/{screen}", headers=BEHIND).text
        for offered in ('id="add"', 'id="import"'):
            assert (offered in page) == (role == "admin")
        assert (" data-reader" in page) == (role == "read")
        live = visitor.get("/monitoring", headers=BEHIND).text
        whom = "anna or &lt;ben&gt;" if admins else "whoever looks after Waymark"
        for where, only in ((page, what), (live, "say who is seen to")):
            match = re.search(rf"Only admins {only}.*: ask {whom}\.", where)
            assert bool(match) == (role == "read")


def test_nobody_else_does_nor_is_led_there(gateway: Upstream) -> None:
    ben = visiting(gateway, "read")
    assert "Access" not in navigation(ben.get("/monitoring", headers=BEHIND).text)
    page = ben.get("/monitoring/access", headers=BEHIND)
    assert page.status_code == 403
    assert "You are <strong>&lt;anna&gt;</strong>, with the role read." in page.text
    assert 'id="tokens"' not in page.text
    assert "Content-Security-Policy" in page.headers


@pytest.mark.parametrize("role", ["read", "admin"])
def test_every_person_has_an_account(gateway: Upstream, role: str) -> None:
    person = visiting(gateway, role)
    assert 'id="old"' in person.get("/monitoring/account", headers=BEHIND).text
    assert 'href="/monitoring/account"' in person.get("/monitoring", headers=BEHIND).text
    screen = visiting(gateway, role, "token").get("/monitoring/account", headers=BEHIND)
    assert 'id="old"' not in screen.text


def test_where_there_is_nothing_to_manage_the_screen_says_why(
    client: FlaskClient, gateway: Upstream
) -> None:
    page = client.get("/monitoring/access", headers=BEHIND).text
    assert "Access is open" in page
    assert "./scripts/configure NAME" in page
    assert navigation(page)[-1] == "Access"
    own_port = visiting(gateway, "admin").get("/monitoring/access").text
    assert "behind the gateway alone" in own_port
    assert 'id="tokens"' not in own_port


@pytest.mark.parametrize("screen", ["access", "account"])
def test_a_screen_to_manage_is_as_small(gateway: Upstream, screen: str) -> None:
    admin = visiting(gateway, "admin")
    check_weight(admin, admin.get(f"/monitoring/{screen}", headers=BEHIND))


def imports_of(name: str) -> set[str]:
    """Return the modules that a module imports; this reads them in another way than the service."""
    text = (FOLDER / name).read_text()
    return {
        str((FOLDER / name).parent.joinpath(target).resolve().relative_to(FOLDER.resolve()))
        for target in re.findall(r'from\s+"(\.[\w./]+)";', text)
    }
