"""As nobody, as each role, with tokens that are good no more: over every route and port."""

import contextlib
import hashlib
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, expect

from scripts.processes.waiting import eventually
from tests.hostile.site import Site
from tests.hostile.test_api import check

ROLES = ("ingest", "read", "admin")
REVOKED_SECONDS = 30
# Whoever asks: the answer to a stranger may be any of these, at an address that needs a role.
REFUSED = {401}


@dataclass(frozen=True)
class Guarded:
    """A stack that requires tokens, one of each role, and those that are good no more."""

    site: Site
    tokens: dict[str, str]
    bad: dict[str, str]
    document: dict[str, Any]

    def ask(self, method: str, url: str, authorization: str) -> requests.Response:
        headers = {"Authorization": authorization} if authorization else {}
        with requests.Session() as session:
            session.trust_env = False
            return session.request(method, url, headers=headers, timeout=30, allow_redirects=False)


def created(site: Site, role: str, *options: str) -> tuple[str, str]:
    """Make a token; return its id and secret."""
    done = site.script("token", "create", "--role", role, *options, f"a {role}")
    assert done.returncode == 0, done.stderr
    return re.findall(r"^token (\S+):", done.stderr, re.MULTILINE)[0], done.stdout.strip()


@pytest.fixture(scope="module")
def guarded(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    site = Site(root, folder / "data")
    admin = f"wm_{secrets.token_urlsafe(32)}"
    site.environment |= {
        "GATEWAY_CLIENT_RATE": "20000",
        "WAYMARK_ACCESS": "required",
        "WAYMARK_ADMIN_TOKEN_SHA256": hashlib.sha256(admin.encode()).hexdigest(),
    }
    try:
        site.up()
        tokens = {role: created(site, role)[1] for role in ("ingest", "read")} | {"admin": admin}
        tokens["one level"] = created(site, "read", "--level", "4")[1]
        revoked_id, revoked = created(site, "read")
        bearer = {"Authorization": f"Bearer {revoked}"}
        url = f"{site.url}/api/v1/session"
        eventually(lambda: requests.get(url, headers=bearer, timeout=30).status_code == 200, 60)
        site.script("token", "revoke", revoked_id)
        time.sleep(REVOKED_SECONDS)  # the promise, not a condition
        bearer = {"Authorization": f"Bearer {admin}"}
        document = requests.get(f"{site.url}/api/v1/openapi.json", headers=bearer, timeout=30)
        yield Guarded(site, tokens, bad(admin) | {"revoked": f"Bearer {revoked}"}, document.json())
    finally:
        site.down()


def bad(admin: str) -> dict[str, str]:
    """Return what an attacker sends who saw the administrator's token, or part of it."""
    digest = hashlib.sha256(admin.encode()).hexdigest()
    return {
        "none": "",
        "made up": f"Bearer wm_{secrets.token_urlsafe(32)}",
        "truncated": f"Bearer {admin[:-1]}",
        "longer": f"Bearer {admin}A",
        "its digest": f"Bearer {digest}",
        "another scheme": f"Basic {admin}",
        "no scheme": admin,
        "two": f"Bearer {admin}, Bearer {admin}",
        "an operator": 'Bearer {"$ne": null}',
        "other case": f"Bearer {admin.swapcase()}",
        "latin": "Bearer \xff\xfe",
        "long": "Bearer " + "x" * 7000,
    }


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield each method and path of the document, and whether it needs a token."""
    for path, methods in document["paths"].items():
        filled = path.replace("{staff_id}", "7").replace("{mac}", "C2A628384B08")
        filled = re.sub(r"\{\w+\}", "x", filled)
        for method, described in methods.items():
            if path != "/readyz":  # a service's own
                yield method.upper(), filled, "security" in described


def test_a_stranger_gets_nothing_at_any_port(guarded: Guarded) -> None:
    tried = 0
    for target in ("gateway", "ingest"):
        for method, path, needs_token in operations(guarded.document):
            for name, authorization in guarded.bad.items():
                url = f"http://127.0.0.1:{guarded.site.ports[target]}{path}"
                answer = guarded.ask(method, url, authorization)
                tried += 1
                what = (target, method, path, name, answer.status_code, answer.text[:200])
                assert (answer.status_code in REFUSED) == needs_token, what
                assert answer.status_code < 500, what
                assert all(secret not in answer.text for secret in guarded.tokens.values()), what
                if needs_token:
                    assert answer.headers["WWW-Authenticate"] == "Bearer", what
    assert tried > 600


@pytest.mark.parametrize("target", ["gateway", "monitoring"])
def test_the_page_shows_strangers_the_log_in_at_most(guarded: Guarded, target: str) -> None:
    base = f"http://127.0.0.1:{guarded.site.ports[target]}"
    screens = [
        "",
        *(f"/{name}" for name in ("live", "replay", "coverage", "directory", "system", "access")),
    ]
    data = ["latest", *(f"api/{name}" for name in ("staff", "coverage", "beacons", "system"))]
    data += ["api/staff/7/detections", "api/beacons/unknown", "api/system/database"]
    static = Path("services/monitoring/monitoring/static")
    files = sorted(str(f.relative_to(static)) for f in static.rglob("*.js"))
    paths = [*screens, *(f"/{one}" for one in data), *(f"/static/{one}" for one in files)]
    readable = set()
    for path in paths:
        for name, authorization in guarded.bad.items():
            status = guarded.ask("GET", f"{base}/monitoring{path}", authorization).status_code
            assert status in (200, 401), (path, name, status)
            if status == 200:
                readable.add(path)
    assert all(
        re.fullmatch("/static/(boot|screens/login|page/dom|rules/next_address)[.]js", one)
        for one in readable
    )


def test_each_role_gets_its_own_and_no_more(guarded: Guarded) -> None:
    """Writes go last: an administrator's may change what others read."""
    found: dict[str, set[str]] = {role: set() for role in ROLES}
    for method, path, needs_token in sorted(operations(guarded.document)):
        if not needs_token or method == "DELETE":
            continue
        for role in ROLES:
            url = f"{guarded.site.url}{path}"
            answer = guarded.ask(method, url, f"Bearer {guarded.tokens[role]}")
            assert answer.status_code not in (401, 500), (method, path, role, answer.text)
            if answer.status_code != 403:
                found[role].add(f"{method} {path}")
    everything = {f"{m} {p}" for m, p, needs in operations(guarded.document) if needs}
    assert found["ingest"] == {
        "GET /newbeacondetect",
        "POST /newbeacondetect",
        "POST /api/v1/detections",
    }
    assert found["admin"] == {one for one in everything if not one.startswith("DELETE")}
    assert not found["read"] & found["ingest"]
    posts = {"POST /extractbeacon", "POST /retrieveformonitoring"}
    own = {"POST /api/v1/session/everywhere", "PUT /api/v1/session/password"}
    assert {one for one in found["read"] if not one.startswith("GET")} == posts | own


def test_one_level_opens_nothing_but_that(guarded: Guarded) -> None:
    """Who may see one level is told of no other, and not by leaving out which one is asked for."""
    found = set()
    for method, path, needs_token in operations(guarded.document):
        for query in ("", "?level=4", "?level=5", "?level=4&level=5", "?level=5&level=4"):
            if needs_token and f"{method} {path}" != "DELETE /api/v1/session":
                url = f"{guarded.site.url}{path}{query}"
                answer = guarded.ask(method, url, f"Bearer {guarded.tokens['one level']}")
                assert answer.status_code in (200, 400, 403), (method, url, answer.text)
                if answer.status_code == 200:
                    found.add(path + query)
    own = {path for path in found if path.startswith("/api/v1/session")}
    assert found - own == {f"/api/v1/{one}?level=4" for one in ("now", "staff", "beacons")}


def test_a_person_logs_in_to_the_page_and_out(guarded: Guarded, browser: Browser) -> None:
    site = guarded.site
    made = site.script("account", "create", "anna", "--role", "admin")
    assert made.returncode == 0, made.stderr
    password = made.stdout.split()[-1]
    with contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(f"{site.url}/monitoring/directory")
        expect(page).to_have_url(f"{site.url}/monitoring/login?next=/monitoring/directory")
        page.get_by_label("Name").fill("anna")
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Log in").click()
        expect(page).to_have_url(f"{site.url}/monitoring/directory")
        expect(page.get_by_text("anna", exact=True)).to_be_visible()
        expect(page.get_by_text("57 beacons")).to_be_visible()
        [cookie] = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("button", name="Log out").click()
        expect(page).to_have_url(f"{site.url}/monitoring/login")
        page.goto(f"{site.url}/monitoring/directory")
        expect(page).to_have_url(f"{site.url}/monitoring/login?next=/monitoring/directory")
    assert password not in site.script("account", "list").stdout
    for file in (site.data / "log").iterdir():
        assert password not in file.read_text(errors="replace"), file


@pytest.mark.long
@pytest.mark.parametrize("role", ["read", "admin"])
def test_schemathesis_finds_nothing_as_a_role(guarded: Guarded, tmp_path: Path, role: str) -> None:
    header = f"Authorization: Bearer {guarded.tokens[role]}"
    check(guarded.site.url, tmp_path, "--phases", "coverage", "--header", header)


def test_the_time_of_a_refusal_tells_nothing(guarded: Guarded) -> None:
    """A token that is nearly right takes no longer than one that is not: medians, in turns."""
    admin = guarded.tokens["admin"]
    url = f"http://127.0.0.1:{guarded.site.ports['ingest']}/api/v1/session"
    nearly: list[float] = []
    nothing: list[float] = []
    with requests.Session() as session:
        session.trust_env = False
        for number in range(300):
            for secret, times in ((f"{admin[:-4]}{number:04}", nearly), (f"{number:046}", nothing)):
                began = time.perf_counter()
                answer = session.get(url, headers={"Authorization": f"Bearer {secret}"}, timeout=30)
                times.append(time.perf_counter() - began)
                assert answer.status_code == 401
    # Python compares digests, which nobody can choose: what is left is noise of some percent.
    assert 0.7 < sorted(nearly)[150] / sorted(nothing)[150] < 1.4
