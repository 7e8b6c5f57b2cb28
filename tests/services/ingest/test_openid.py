"""People log in at a provider that may lie, drip or be away; the database is a real one."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from flask import Flask
from joserfc.jwk import RSAKey
from werkzeug.test import TestResponse

from ingest.access import oidc
from ingest.access.provider import _tls
from ingest.errors import StoreUnavailable
from ingest.rules.roles import Role
from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.services.ingest.fake_provider import CLIENT_ID, SECRET, FakeProvider, shared, unsigned
from tests.services.ingest.people import LOG_IN, PASSWORD, Office, Person

BEGIN, CALLBACK = f"{LOG_IN}/oidc", f"{LOG_IN}/oidc/callback"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    made = FakeProvider()
    yield made
    made.close()


@pytest.fixture
def settings(provider: FakeProvider, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "client_secret").write_text(f"{SECRET}\n")
    return {
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret_file": str(tmp_path / "client_secret"),
        "oidc_admins": "Anna@example.org",
        "oidc_readers": "*@example.org guest@example.net",
    }


@pytest.fixture
def app(waymark: Office, settings: dict[str, str]) -> Flask:
    return waymark.service(**settings)


class Visitor(Person):
    """A browser that a provider leads back."""

    def begin(self, page: str = "/monitoring/system?a=b") -> dict[str, str]:
        """Click on the page; return what the provider is told."""
        query = {"next": page}
        answer = self.client.get(BEGIN, query_string=query, headers=self.headers)
        assert answer.status_code == 303, answer.text
        parameters = parse_qs(urlsplit(answer.headers["Location"]).query)
        return {name: value for name, (value,) in parameters.items()}

    def come_back(self, **query: str) -> TestResponse:
        return self.client.get(CALLBACK, query_string=query, headers=self.headers)

    def try_at(self, provider: FakeProvider) -> TestResponse:
        """Log in from the click to the way back."""
        request = self.begin()
        provider.nonce = request["nonce"]
        return self.come_back(code="of the provider", state=request["state"])


def problem(answer: TestResponse) -> str:
    """Return why nobody is logged in."""
    assert answer.status_code == 303, answer.text
    address = urlsplit(answer.headers["Location"])
    assert (address.netloc, address.path) == ("", "/monitoring/login")
    cookies = answer.headers.getlist("Set-Cookie")
    assert not any("waymark_session" in cookie for cookie in cookies)
    return parse_qs(address.query)["problem"][0]


def test_somebody_logs_in_and_is_who_the_provider_says(
    app: Flask, provider: FakeProvider, settings: dict[str, str], waymark: Office
) -> None:
    anna = Visitor(app)
    request = anna.begin()
    assert request["redirect_uri"] == f"http://localhost{CALLBACK}"
    assert (request["response_type"], request["client_id"]) == ("code", CLIENT_ID)
    assert (request["code_challenge_method"], len(request["code_challenge"])) == ("S256", 43)
    assert "openid" in request["scope"].split()
    provider.nonce = request["nonce"]
    answer = anna.come_back(code="of the provider", state=request["state"])
    assert answer.status_code == 200
    assert 'content="0;url=/monitoring/system?a=b"' in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    session, device, forgotten = answer.headers.getlist("Set-Cookie")
    assert sorted(session.split("; ")[1:]) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    assert device.startswith("waymark_device=")
    assert forgotten.startswith("waymark_oidc=;")
    [(_, form, authorization)] = [
        request for request in provider.requests if request[0] == "/token"
    ]
    assert form["redirect_uri"] == request["redirect_uri"]
    assert len(form["code_verifier"]) >= 43
    assert authorization.startswith("Basic ")
    assert SECRET not in str(form)
    mine = anna.open("GET", "/session").get_json()
    assert (mine["name"], mine["kind"], mine["role"]) == ("anna@example.org", "person", "admin")
    anna.csrf = mine["csrf_token"]
    [person] = anna.open("GET", "/accounts").get_json()["data"]
    assert (person["name"], person["provider"]) == ("anna@example.org", provider.issuer)
    [entry] = anna.open("GET", "/audit?limit=1").get_json()["data"]
    assert (entry["who"], entry["what"]) == ("anna@example.org", "log-in")
    assert entry["details"] == {"provider": provider.issuer, "role": "admin"}
    # The other service knows the session as it knows any other.
    there = waymark.service(**settings).test_client()
    there.set_cookie("waymark_session", session.split(";")[0].partition("=")[2])
    assert there.get(LOG_IN).status_code == 200


def test_a_log_in_that_failed_is_no_failure_of_the_provider(
    app: Flask, provider: FakeProvider, settings: dict[str, str], waymark: Office
) -> None:
    anna = Visitor(app)
    request = anna.begin()
    there = Visitor(waymark.service(**settings))  # has asked the provider nothing yet
    cookie = anna.client.get_cookie("waymark_oidc")
    assert cookie
    there.client.set_cookie("waymark_oidc", cookie.value)
    provider.nonce = "of another log-in"
    assert problem(there.come_back(code="x", state=request["state"])) == "failed"
    assert there.try_at(provider).status_code == 200


def test_over_tls_what_is_kept_is_bound_to_this_very_host(app: Flask) -> None:
    anna = Visitor(app, proto="https")
    answer = anna.client.get(BEGIN, headers=anna.headers)
    [kept] = answer.headers.getlist("Set-Cookie")
    assert kept.startswith("__Host-waymark_oidc=")
    attributes = {"HttpOnly", "Secure", "Path=/", "SameSite=Lax", "Max-Age=600"}
    assert attributes <= set(kept.split("; "))
    query = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert query["redirect_uri"] == [f"https://localhost{CALLBACK}"]


Change = Callable[[FakeProvider], None]


def claim(**changed: Any) -> Change:
    """Return what changes claims; None leaves one out."""

    def change(provider: FakeProvider) -> None:
        provider.claims = lambda claims: claims | changed

    return change


def signed(sign: Callable[[FakeProvider, dict[str, Any]], Any]) -> Change:
    def change(provider: FakeProvider) -> None:
        provider.sign = lambda claims: sign(provider, claims)

    return change


def described(**metadata: Any) -> Change:
    return lambda provider: provider.metadata.update(metadata)


STRANGERS_KEY = RSAKey.generate_key(2048, {"kid": "good"})
LIES: dict[str, Change] = {
    "another issuer": claim(iss="https://provider.example"),
    "no issuer": claim(iss=None),
    "another audience": claim(aud="another client"),
    "another audience, ours as party": claim(aud="another client", azp=CLIENT_ID),
    "many audiences, another party": claim(aud=[CLIENT_ID, "another"], azp="another"),
    "no audience": claim(aud=None),
    "another nonce": claim(nonce="another"),
    "no nonce": claim(nonce=None),
    "expired": claim(exp=1_700_000_000),
    "expired two minutes ago": claim(exp=int(time.time()) - 120),
    "never expires": claim(exp=None),
    "not yet": claim(nbf=4_000_000_000),
    "from the future": claim(iat=4_000_000_000, exp=4_000_000_300),
    "no subject": claim(sub=None),
    "a subject that is no text": claim(sub={"$ne": ""}),
    "alg none": signed(lambda _, claims: unsigned(claims)),
    "a stranger's key": signed(lambda provider, claims: provider.signed(claims, STRANGERS_KEY)),
    "no known key": signed(lambda provider, claims: provider.signed(claims, kid="another")),
    "our secret for a key": signed(lambda _, claims: shared(claims, SECRET.encode())),
    "its public key for a secret": signed(
        lambda provider, claims: shared(claims, provider.key.as_pem(private=False))
    ),
    "another signature": signed(lambda provider, claims: provider.signed(claims)[:-8] + "AAAAAAAA"),
    "no token": signed(lambda *_: ""),
    "no text for a token": signed(lambda *_: {"a": "b"}),
    "not a token": signed(lambda *_: "a.b.c"),
}
LIES_OF_ITSELF: dict[str, Change] = {
    "another name for itself": described(issuer="https://provider.example"),
    "keys without TLS": described(jwks_uri="http://provider.example/jwks"),
    "keys in a file": described(jwks_uri="file:///etc/passwd"),
    "a token from elsewhere": described(token_endpoint="http://192.0.2.1/token"),
    "only shared secrets": described(id_token_signing_alg_values_supported=["HS256", "none"]),
}


def test_no_lie_of_a_token_lets_anybody_in(
    app: Flask, provider: FakeProvider, waymark: Office
) -> None:
    claims, sign = provider.claims, provider.sign
    for number, (lie, change) in enumerate(LIES.items()):
        provider.claims, provider.sign = claims, sign
        change(provider)
        anna = Visitor(app, address=f"192.0.2.{number}")  # who tries too often waits
        assert problem(anna.try_at(provider)) == "failed", lie
        assert anna.status() == 401, lie
    assert waymark.made[0].access.accounts.everyone() == []
    provider.claims, provider.sign = claims, sign  # it was for the lies that nobody came in
    assert Visitor(app, address="192.0.2.99").try_at(provider).status_code == 200


@pytest.mark.parametrize("lie", LIES_OF_ITSELF)
def test_no_lie_of_a_provider_about_itself_lets_anybody_in(
    waymark: Office, settings: dict[str, str], provider: FakeProvider, lie: str
) -> None:
    LIES_OF_ITSELF[lie](provider)
    anna = Visitor(waymark.service(**settings))
    answer = anna.client.get(BEGIN, headers=anna.headers)
    if "/authorize" in answer.headers["Location"]:
        answer = anna.try_at(provider)
    assert problem(answer) == "failed"
    assert anna.status() == 401
    assert waymark.made[0].access.accounts.everyone() == []


def test_whoever_comes_back_without_having_left_is_nobody(
    app: Flask, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    mallory, anna = Visitor(app), Visitor(app)
    request = mallory.begin()
    provider.nonce = request["nonce"]
    mallorys = {"code": "of mallory", "state": request["state"]}
    assert problem(anna.come_back(**mallorys)) == "expired"  # no cookie: log-in CSRF
    anna.begin()
    assert problem(anna.come_back(**mallorys)) == "expired"  # another's state
    request = anna.begin()
    assert problem(anna.come_back(code="x")) == "expired"
    request = anna.begin()
    assert problem(anna.come_back(code="x", state=request["state"] + "x")) == "expired"
    assert problem(anna.come_back(code="x", state=request["state"])) == "expired"  # it was tried
    request = anna.begin()
    assert problem(anna.come_back(state=request["state"])) == "failed"
    request = anna.begin()
    iss = {"iss": "https://provider.example"}
    assert problem(anna.come_back(code="x", state=request["state"], **iss)) == "failed"
    request = anna.begin()
    error = anna.come_back(error="access_denied", state=request["state"], error_description="<b>")
    assert problem(error) == "cancelled"
    for forged in ("", "x", "a.b.c", "x" * 4000):
        anna.client.set_cookie("waymark_oidc", forged)
        assert problem(anna.come_back(code="x", state="x")) == "expired"
    assert [request for request in provider.requests if request[0] == "/token"] == []
    request = anna.begin()
    monkeypatch.setattr(oidc, "MAX_AGE_SECONDS", -1)
    assert problem(anna.come_back(code="x", state=request["state"])) == "expired"


def test_a_session_that_somebody_planted_is_not_taken_over(
    app: Flask, provider: FakeProvider
) -> None:
    mallory = Visitor(app)
    provider.subject, provider.email = "66", "mallory@example.org"
    assert mallory.try_at(provider).status_code == 200
    planted = mallory.client.get_cookie("waymark_session")
    assert planted
    anna = Visitor(app)
    anna.client.set_cookie("waymark_session", planted.value)
    provider.subject, provider.email = "1", "anna@example.org"
    assert anna.try_at(provider).status_code == 200
    assert anna.open("GET", "/session").get_json()["name"] == "anna@example.org"
    assert mallory.open("GET", "/session").get_json()["name"] == "mallory@example.org"


def test_what_a_page_is_called_is_no_markup(app: Flask, provider: FakeProvider) -> None:
    anna = Visitor(app)
    request = anna.begin('/monitoring?"><script>alert(1)</script>')
    provider.nonce = request["nonce"]
    assert "<script" not in anna.come_back(code="x", state=request["state"]).text


def test_nobody_is_led_elsewhere_after_the_log_in(app: Flask, provider: FakeProvider) -> None:
    anna = Visitor(app)
    request = anna.begin("https://evil.example/")
    provider.nonce = request["nonce"]
    text = anna.come_back(code="x", state=request["state"]).text
    assert 'content="0;url=/monitoring"' in text


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"email": "eve@evil.example"}, "stranger"),
        ({"email": "anna@example.org", "email_verified": False}, "unverified"),
        ({"email": "anna@example.org", "email_verified": "true"}, "unverified"),
        ({"email": "anna@example.org", "email_verified": None}, "unverified"),
        ({"email": None}, "unnamed"),
        ({"email": ["anna@example.org"]}, "unnamed"),
        ({"email": "o'hara@example.org"}, "unnamed"),
        ({"email": "an\u212aa@example.org"}, "unnamed"),
        ({"email": "x" * 60 + "@example.org"}, "unnamed"),
    ],
)
def test_who_matches_none_is_refused(
    app: Flask, provider: FakeProvider, waymark: Office, claims: dict[str, Any], why: str
) -> None:
    claim(**claims)(provider)
    assert problem(Visitor(app).try_at(provider)) == why
    assert waymark.made[0].access.accounts.everyone() == []
    if why == "stranger":  # the provider says who that is: nobody typed it
        [(_, noted)] = waymark.made[0].access.audit.page(1)
        assert (noted.what, noted.of) == ("log-in refused", "eve@evil.example")
        assert noted.details == {"why": why}


def test_a_claim_may_be_named_and_come_from_the_user_info(
    waymark: Office, settings: dict[str, str], provider: FakeProvider
) -> None:
    provider.userinfo = {"sub": provider.subject, "preferred_username": "Ben"}
    more = {"oidc_claim": "preferred_username", "oidc_readers": "ben"}
    app = waymark.service(**settings | more)
    ben = Visitor(app)
    assert ben.try_at(provider).status_code == 200
    assert ben.open("GET", "/session").get_json()["name"] == "ben"
    provider.claims = lambda claims: claims | {"preferred_username": "anna"}
    assert problem(Visitor(app).try_at(provider)) == "stranger"  # what is signed is enough
    provider.claims = lambda claims: claims
    provider.userinfo["sub"] = "of another person"
    assert problem(Visitor(app).try_at(provider)) == "failed"


def test_no_address_of_one_source_is_verified_by_the_other(
    app: Flask, provider: FakeProvider
) -> None:
    claim(email_verified=None)(provider)
    claims_of = provider.claims
    provider.claims = lambda claims: {k: v for k, v in claims_of(claims).items() if v is not None}
    address = {"sub": provider.subject, "email_verified": True, "email": "ben@example.org"}
    provider.userinfo = address
    assert problem(Visitor(app).try_at(provider)) == "failed"


def test_who_comes_by_a_provider_is_not_the_last_admin(
    app: Flask, provider: FakeProvider, waymark: Office
) -> None:
    anna = Visitor(app)
    assert anna.try_at(provider).status_code == 200
    waymark.person("ben", Role.ADMIN)
    ben = Person(app)
    assert ben.log_in("ben").status_code == 200
    assert anna.open("GET", "/session").get_json()["role"] == "admin"
    assert ben.open("DELETE", "/accounts/ben").status_code == 409


def test_a_public_client_has_no_secret(
    waymark: Office, settings: dict[str, str], provider: FakeProvider
) -> None:
    anna = Visitor(waymark.service(**settings | {"oidc_client_secret_file": ""}))
    assert anna.try_at(provider).status_code == 200
    [(_, form, authorization)] = [
        request for request in provider.requests if request[0] == "/token"
    ]
    assert (form["client_id"], authorization) == (CLIENT_ID, "")


def test_a_provider_that_changes_its_keys_is_believed(app: Flask, provider: FakeProvider) -> None:
    anna = Visitor(app)
    assert anna.try_at(provider).status_code == 200
    provider.key = RSAKey.generate_key(2048, {"kid": "new"})
    provider.sign = lambda claims: provider.signed(claims, kid="new")
    assert anna.try_at(provider).status_code == 200
    asked = [path for path, _, _ in provider.requests]
    assert asked.count("/jwks") == 2
    assert asked.count("/.well-known/openid-configuration") == 1


def test_a_password_and_a_provider_are_never_one_account(
    app: Flask, provider: FakeProvider, waymark: Office
) -> None:
    waymark.person("anna@example.org", Role.READ)
    with_password = Person(app)
    assert with_password.log_in("anna@example.org").status_code == 200
    assert problem(Visitor(app).try_at(provider)) == "taken"
    provider.email, provider.subject = "ben@example.org", "2"
    ben = Visitor(app, address="192.0.2.2")  # few wrong passwords from one address are free
    assert ben.try_at(provider).status_code == 200
    assert Person(app).log_in("ben@example.org", PASSWORD).status_code == 401
    waymark.person("root", Role.ADMIN)
    root = Person(app)
    root.log_in("root")
    for change in ({"role": "admin", "password": PASSWORD}, {"role": "admin"}):
        answer = root.open("PUT", "/accounts/ben@example.org", json=change)
        assert (answer.status_code, answer.get_json()["code"]) == (409, "conflict")
        assert "OpenID Connect" in answer.get_json()["detail"]
    assert Person(app).log_in("ben@example.org", PASSWORD).status_code == 401
    session = ben.open("GET", "/session").get_json()
    ben.csrf = session["csrf_token"]
    change = {"old": PASSWORD, "new": "another horse, a longer one"}
    assert ben.open("PUT", "/session/password", json=change).status_code == 400
    # An address that was given to another person is not theirs here.
    provider.subject = "3"
    assert problem(Visitor(app).try_at(provider)) == "taken"
    assert root.open("DELETE", "/accounts/ben@example.org").status_code == 204
    assert Visitor(app).try_at(provider).status_code == 200


def test_the_role_is_the_settings_at_each_log_in(
    waymark: Office, settings: dict[str, str], provider: FakeProvider
) -> None:
    anna = Visitor(waymark.service(**settings))
    assert anna.try_at(provider).status_code == 200
    later = Visitor(waymark.service(**settings | {"oidc_admins": ""}))
    assert later.try_at(provider).status_code == 200
    assert later.open("GET", "/session").get_json()["role"] == "read"

    def status_of_the_older_session() -> int:
        waymark.made[0].access.cache.refresh()
        return anna.open("GET", "/accounts").status_code

    eventually(lambda: status_of_the_older_session() == 403)
    # Who is taken off the list keeps a session of at most 12 h: the account is removed with it.
    gone = Visitor(waymark.service(**settings | {"oidc_admins": "", "oidc_readers": "x@y.example"}))
    assert problem(gone.try_at(provider)) == "stranger"
    assert later.status() == 200
    waymark.made[0].access.accounts.put("root", Role.ADMIN, "x", time.time())
    waymark.made[0].access.accounts.remove("anna@example.org")
    for context in waymark.made:
        context.access.cache.refresh()
    eventually(lambda: later.status() == 401)
    assert anna.status() == 401


def drips(handler: BaseHTTPRequestHandler) -> bool:
    """Send a header that never ends, a letter at a time."""
    try:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        for _ in range(600):
            handler.wfile.write(b"x")
            time.sleep(0.1)
    except OSError:
        pass
    return True


def drips_a_body(handler: BaseHTTPRequestHandler) -> bool:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    return drips(handler)


def floods(handler: BaseHTTPRequestHandler) -> bool:
    """Send a body of 100 MB."""
    try:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(1000):
            handler.wfile.write(b" " * 100_000)
    except OSError:
        pass
    return True


def answers(status: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], bool]:
    def answer(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    return answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (drips, "away"),
        (drips_a_body, "away"),
        (floods, "failed"),
        (answers(500), "away"),
        (answers(404), "failed"),
        (answers(302, Location="/jwks"), "failed"),
        (answers(200), "failed"),
    ],
)
def test_a_provider_that_does_not_answer_well_holds_nobody(
    app: Flask,
    provider: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[BaseHTTPRequestHandler], bool],
    why: str,
) -> None:
    if answer in (drips, drips_a_body):  # else a busy machine may need longer
        monkeypatch.setattr(oidc, "ASK_SECONDS", 1.0)
    monkeypatch.setattr(oidc, "PAUSE_SECONDS", 0.0)
    anna, held = Visitor(app), provider.answer
    provider.answer = answer
    assert problem(anna.client.get(BEGIN, headers=anna.headers)) == why
    provider.answer = held
    request = anna.begin()
    provider.answer = answer
    before = threading.active_count()
    assert problem(anna.come_back(code="x", state=request["state"])) == why
    provider.answer = held
    assert anna.try_at(provider).status_code == 200
    eventually(lambda: threading.active_count() <= before + 1)


@pytest.mark.long
def test_one_that_is_away_is_asked_seldom_and_makes_nobody_wait_for_a_password(
    app: Flask,
    provider: FakeProvider,
    waymark: Office,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider.answer = answers(500)
    anna = Visitor(app)
    tried = [problem(anna.client.get(BEGIN, headers=anna.headers)) for _ in range(20)]
    assert set(tried) == {"away"}
    assert len(provider.requests) < 20
    assert caplog.text.count("does not answer") == len(provider.requests)
    monkeypatch.setattr(oidc, "PAUSE_SECONDS", 0.0)
    for _ in range(12):
        provider.answer = lambda _: False
        request = anna.begin()
        provider.answer = answers(500)
        assert problem(anna.come_back(code="x", state=request["state"])) == "away"
    waymark.person("ben", Role.READ)
    assert Person(app).log_in("ben").status_code == 200


def test_what_others_may_have_set_begins_no_log_in_over_tls(
    app: Flask, provider: FakeProvider
) -> None:
    anna = Visitor(app, proto="https")
    answer = anna.client.get(BEGIN, headers=anna.headers)
    query = parse_qs(urlsplit(answer.headers["Location"]).query)
    kept = answer.headers["Set-Cookie"].split(";")[0].removeprefix("__Host-")
    client = app.test_client(use_cookies=False)
    for proto, why in (("https", "expired"), ("http", "failed")):
        back = client.get(
            CALLBACK,
            query_string={"code": "x", "state": query["state"][0]},
            headers={"Cookie": kept, "X-Forwarded-Proto": proto},
        )
        assert problem(back) == why


def test_over_tls_a_provider_has_to_prove_itself(
    waymark: Office,
    settings: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = [ROOT / "scripts" / "certificate", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    secure = FakeProvider(tmp_path / "certificate.pem")
    anna = Visitor(waymark.service(**settings | {"oidc_issuer": secure.issuer}))
    monkeypatch.setattr(oidc, "PAUSE_SECONDS", 0.0)
    try:
        _tls.cache_clear()
        assert problem(anna.client.get(BEGIN, headers=anna.headers)) == "away"
        assert secure.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        _tls.cache_clear()
        assert anna.try_at(secure).status_code == 200
    finally:
        _tls.cache_clear()
        secure.close()


def test_few_wait_for_a_provider_at_once(app: Flask, provider: FakeProvider) -> None:
    anna = Visitor(app)
    request = anna.begin()
    provider.nonce = request["nonce"]
    go_on, waiting = threading.Event(), threading.Semaphore(0)

    def waits(_: BaseHTTPRequestHandler) -> bool:
        waiting.release()
        return not go_on.wait(5)

    provider.answer = waits
    others = [Visitor(app) for _ in range(oidc.WAITING)]
    cookie = anna.client.get_cookie("waymark_oidc")
    assert cookie
    for other in others:
        other.client.set_cookie("waymark_oidc", cookie.value)
    threads = [
        threading.Thread(target=other.come_back, kwargs={"code": "x", "state": request["state"]})
        for other in others
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert waiting.acquire(timeout=30)
    assert problem(anna.come_back(code="x", state=request["state"])) == "busy"
    go_on.set()
    for thread in threads:
        thread.join()
    provider.answer = lambda _: False
    assert anna.try_at(provider).status_code == 200


def test_who_tries_too_often_waits(app: Flask, provider: FakeProvider) -> None:
    claim(nonce="another")(provider)
    stranger = Visitor(app)
    tried = [problem(stranger.try_at(provider)) for _ in range(12)]
    assert tried == ["failed"] * 10 + ["busy"] * 2
    asked = [path for path, _, _ in provider.requests]
    assert asked.count("/token") == 10


def test_without_the_database_nobody_is_let_in_and_it_is_no_503(
    app: Flask, provider: FakeProvider, waymark: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(waymark.made[0].access.accounts, "vouched_for", away)
    assert problem(Visitor(app).try_at(provider)) == "busy"
    monkeypatch.undo()
    monkeypatch.setattr(waymark.made[0].access.audit, "add", away)
    assert problem(Visitor(app).try_at(provider)) == "busy"


def test_where_no_provider_is_set_there_is_no_such_log_in(waymark: Office) -> None:
    client = waymark.service().test_client()
    for path in (BEGIN, CALLBACK):
        answer = client.get(path)
        assert (answer.status_code, answer.get_json()["code"]) == (404, "not_found")
        assert "OIDC_ISSUER" in answer.get_json()["detail"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"oidc_issuer": "http://provider.example"},
        {"oidc_issuer": "ftp://127.0.0.1"},
        {"oidc_issuer": "provider.example"},
        {"oidc_client_id": ""},
        {"session_key_file": ""},
        {"oidc_admins": "", "oidc_readers": ""},
    ],
)
def test_settings_that_cannot_be_are_refused_at_the_start(
    waymark: Office, settings: dict[str, str], wrong: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match="OIDC_ISSUER"):
        waymark.service(**settings | wrong)


def test_without_a_provider_nothing_of_it_is_imported() -> None:
    code = """
import sys
import ingest.asgi
from ingest import create_app
from ingest.config import Config
create_app(Config(spool_file=sys.argv[1]))
heavy = {"authlib", "joserfc", "cryptography", "requests", "OpenSSL"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""
    folder = ROOT / "services" / "ingest"
    command = [sys.executable, "-c", code, ":memory:"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
