"""People log in, and nobody else is taken for them; the database is a real one."""

import hashlib
import json
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from itsdangerous import URLSafeTimedSerializer

from ingest.access import sessions
from ingest.errors import StoreUnavailable
from ingest.rules.roles import Role
from ingest.storage.access.accounts import LastAdmin
from scripts.processes.waiting import eventually
from tests.service import Service
from tests.services.ingest.people import KEY, LOG_IN, PASSWORD, Office, Person

NEW = "another horse, a longer one"


@pytest.fixture
def anna(waymark: Office) -> Person:
    app = waymark.service()
    waymark.person("anna", Role.ADMIN)
    return Person(app)


def cookie(person: Person, name: str = "waymark_session") -> str:
    kept = person.client.get_cookie(name)
    assert kept
    return kept.value


def test_a_session_from_log_in_to_log_out(anna: Person) -> None:
    assert anna.status() == 401
    began = int(time.time())
    answer = anna.log_in("Anna")
    assert answer.status_code == 200
    attributes = answer.headers["Set-Cookie"].split("; ")[1:]
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    assert answer.headers["Cache-Control"] == "no-store"
    session = anna.open("GET", "/session").get_json()
    assert session == answer.get_json()
    assert (session["name"], session["kind"], session["role"]) == ("anna", "person", "admin")
    assert 0 <= session["expires_at"] - began - 12 * 3600 <= 30
    answer = anna.open("DELETE", "/session")
    assert answer.status_code == 204
    assert anna.status() == 401


def test_over_tls_the_cookie_is_bound_to_this_very_host(waymark: Office) -> None:
    app = waymark.service()
    waymark.person("anna", Role.READ)
    anna = Person(app, proto="https")
    sent = anna.log_in("anna").headers["Set-Cookie"]
    assert sent.startswith("__Host-waymark_session=")
    assert sorted(sent.split("; ")[1:]) == ["HttpOnly", "Path=/", "SameSite=Strict", "Secure"]
    header = {"Cookie": f"waymark_session=planted; {sent.split(';')[0]}"}
    stranger = app.test_client(use_cookies=False)
    assert stranger.get("/api/v1/session", headers=header).get_json()["name"] == "anna"
    # Who has a session and can set a cookie for this host without TLS makes nobody them.
    planted = {"Cookie": sent.split(";")[0].removeprefix("__Host-"), "X-Forwarded-Proto": "https"}
    assert stranger.get("/api/v1/session", headers=planted).status_code == 401
    planted["X-Forwarded-Proto"] = "http"
    assert stranger.get("/api/v1/session", headers=planted).status_code == 200


def forgeries(good: str) -> dict[str, str]:
    """Return sessions that none of ours issued, or not like this."""

    def signed(key: str, salt: str, role: str = "admin", epoch: float = 1e15) -> str:
        signing = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        maker = URLSafeTimedSerializer(key, salt, signer_kwargs=signing)
        return str(maker.dumps(["anna", role, int(epoch), "x"]))

    payload, when, signature = good.split(".")
    other = signed(KEY, sessions.SALT).split(".")[0]
    return {
        "nothing": "",
        "another key": signed("o" * 43, sessions.SALT),
        "no key": signed("", sessions.SALT),
        "another salt": signed(KEY, "itsdangerous"),
        "another payload": f"{other}.{when}.{signature}",
        "another time": f"{payload}.{when[:-1]}{'A' if when[-1] != 'A' else 'B'}.{signature}",
        "no signature": f"{payload}.{when}",
        "an empty signature": f"{payload}.{when}.",
        "truncated": good[:-1],
        "doubled": good + good,
        "upper case": good.upper(),
        "an earlier epoch": signed(KEY, sessions.SALT, epoch=1),
        "garbage": "a.b.c",
        "not ASCII": "\xff\xfe.é.ü",
        "large": "x" * 30_000,
    }


def test_no_forged_session_is_taken_for_one(waymark: Office, anna: Person) -> None:
    anna.log_in("anna")
    good = cookie(anna)
    client = anna.client.application.test_client(use_cookies=False)

    def status(value: str) -> int:
        headers = {"Cookie": f"waymark_session={value}"}
        return client.get("/api/v1/session", headers=headers).status_code

    assert status(good) == 200
    waymark.made[0].access.cache.refresh()
    assert {what: status(value) for what, value in forgeries(good).items()} == dict.fromkeys(
        forgeries(good), 401
    )
    assert status(f"x; waymark_session={good}") == 401  # which of two is meant?
    assert status(f"{good}; another=\xff\xfe") == 200  # what other programs of the host keep


def test_a_session_ends(anna: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    anna.log_in("anna")
    assert anna.status() == 200
    monkeypatch.setattr(sessions, "MAX_AGE_SECONDS", 0)
    eventually(lambda: anna.status() == 401)


def test_a_log_in_makes_a_session_of_its_own(waymark: Office, anna: Person) -> None:
    waymark.person("mallory", Role.READ)
    mallory = Person(anna.client.application)
    mallory.log_in("mallory")
    planted = cookie(mallory)
    anna.client.set_cookie("waymark_session", planted)
    anna.log_in("anna")
    assert cookie(anna) != planted
    assert anna.csrf != mallory.csrf
    assert mallory.open("GET", "/session").get_json()["name"] == "mallory"
    before = cookie(anna)
    anna.log_in("anna")
    assert cookie(anna) != before


def test_writes_with_a_cookie_need_the_csrf_token_and_with_a_token_none(anna: Person) -> None:
    anna.log_in("anna")
    good = anna.csrf
    body = {"level": "4", "location": "Lobby B"}
    for csrf in ("", "x", good[:-1], good + " ", good.upper(), "é"):
        anna.csrf = csrf
        for method, path in (("PUT", "/beacons/C2A628384B08"), ("DELETE", "/session")):
            answer = anna.open(method, path, json=body)
            assert (answer.status_code, answer.get_json()["code"]) == (403, "forbidden"), csrf
            assert "X-CSRF-Token" in answer.get_json()["detail"]
        assert anna.status() == 200  # to read needs none
    detection = {"user_address": 0, "beacon_address": "C2A628384B08", "rssi": -20}
    assert anna.client.post("/newbeacondetect", json=detection).status_code == 403
    anna.csrf = good
    assert anna.open("PUT", "/beacons/C2A628384B08", json=body).status_code == 200
    made = anna.open("POST", "/tokens", json={"label": "x", "role": "admin"}).get_json()
    anna.csrf = ""
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    path = "/beacons/C2A628384B08"
    assert anna.open("PUT", path, json=body, headers=bearer).status_code == 200
    # When both are sent, the token counts, also a bad one.
    assert anna.open("GET", "/session", headers=bearer).get_json()["kind"] == "token"
    bad = {"Authorization": f"Bearer {made['secret']}x"}
    assert anna.open("GET", "/session", headers=bad).status_code == 401


def test_the_event_loop_asks_for_the_csrf_token_too(
    waymark: Office, anna: Person, mongod: str, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "WAYMARK_ACCESS": "required",
        "SESSION_KEY_FILE": tmp_path / "session_key",
    }
    service = Service(mongod, tmp_path, **settings)
    service.start()
    try:
        anna.log_in("anna")
        detection = {"user_address": 0, "beacon_address": "C2A628384B08", "rssi": -20}
        headers = {"Cookie": f"waymark_session={cookie(anna)}"}

        def status(**more: str) -> int:
            url = f"{service.url}/newbeacondetect"
            return service.session.post(url, json=detection, headers=headers | more).status_code

        assert status() == 403
        assert status(**{"X-CSRF-Token": anna.csrf}) == 200
    finally:
        service.kill()


def test_wrong_names_and_wrong_passwords_are_told_in_the_same_words_and_time(anna: Person) -> None:
    spent: dict[str, list[float]] = {"anna": [], "nobody": [], "Not A Name!": []}
    words = set()
    for number in range(8):
        for name, seconds in spent.items():
            stranger = Person(anna.client.application, address=f"192.0.2.{number}")
            began = time.process_time()
            answer = stranger.log_in(name, "a wrong password")
            seconds.append(time.process_time() - began)
            assert answer.status_code == 401
            assert "Set-Cookie" not in answer.headers
            words.add(answer.get_json()["detail"])
    assert words == {"wrong name or password"}
    known, *unknown = (statistics.median(seconds) for seconds in spent.values())
    assert all(0.6 < seconds / known < 1.6 for seconds in unknown), spent


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "anna"},
        {"name": "anna", "password": ""},
        {"name": "anna", "password": {"$ne": ""}},
        {"name": {"$gt": ""}, "password": PASSWORD},
        {"name": ["anna"], "password": PASSWORD},
        {"name": "anna", "password": "\ud800" * 12},
        {"name": "anna", "password": "x" * 257},
        [],
    ],
)
def test_what_is_no_name_and_password_is_refused(anna: Person, body: Any) -> None:
    assert anna.client.post(LOG_IN, json=body).status_code == 400


def test_another_site_cannot_log_anybody_in(anna: Person) -> None:
    body = json.dumps({"name": "anna", "password": PASSWORD})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert anna.client.post(LOG_IN, data=body, content_type=kind).status_code == 415


def test_a_password_change_ends_all_other_sessions_at_every_service(
    waymark: Office, anna: Person
) -> None:
    second = waymark.service()
    elsewhere = Person(anna.client.application)
    anna.log_in("anna")
    elsewhere.log_in("anna")
    change = {"old": PASSWORD, "new": NEW}
    bad = anna.open("PUT", "/session/password", json={"old": "a wrong one", "new": NEW})
    assert (bad.status_code, bad.get_json()["errors"][0]["field"]) == (400, "old")
    short = anna.open("PUT", "/session/password", json={"old": PASSWORD, "new": "x" * 11})
    assert (short.status_code, short.get_json()["errors"][0]["field"]) == (400, "new")
    answer = anna.open("PUT", "/session/password", json=change)
    assert answer.status_code == 200
    anna.csrf = answer.get_json()["csrf_token"]
    assert (anna.status(), elsewhere.status()) == (200, 401)
    there = second.test_client(use_cookies=False)

    def status(person: Person) -> int:
        headers = {"Cookie": f"waymark_session={cookie(person)}"}
        return there.get("/api/v1/session", headers=headers).status_code

    assert status(anna) == 200  # though that service has not heard of it yet
    waymark.made[1].access.cache.refresh()
    assert (status(anna), status(elsewhere)) == (200, 401)
    assert Person(second).log_in("anna").status_code == 401
    assert Person(second).log_in("anna", NEW).status_code == 200


def test_who_logs_out_everywhere_is_logged_out_everywhere(waymark: Office, anna: Person) -> None:
    second = waymark.service()
    elsewhere = Person(second)
    anna.log_in("anna")
    elsewhere.log_in("anna")
    assert anna.open("POST", "/session/everywhere").status_code == 204
    waymark.made[1].access.cache.refresh()
    assert (anna.status(), elsewhere.status()) == (401, 401)
    # Also where an account is made anew by that name.
    elsewhere.log_in("anna")
    old = cookie(elsewhere)
    waymark.person("ben", Role.ADMIN)
    waymark.made[0].access.accounts.remove("anna")
    waymark.person("anna", Role.ADMIN)
    waymark.made[1].access.cache.refresh()
    elsewhere.client.set_cookie("waymark_session", old)
    assert elsewhere.status() == 401


def test_a_new_account_is_known_at_once_and_a_removed_one_soon_not_any_more(
    waymark: Office, anna: Person
) -> None:
    second = waymark.service()
    anna.log_in("anna")
    body = {"role": "read", "password": NEW}
    assert anna.open("PUT", "/accounts/ben", json=body).status_code == 200
    ben = Person(anna.client.application)
    ben.log_in("ben", NEW)
    there = Person(second)
    there.client.set_cookie("waymark_session", cookie(ben))
    assert there.open("GET", "/session").get_json()["role"] == "read"
    session = waymark.made[0].access.sessions.read(cookie(ben))
    assert session
    eventually(lambda: time.time() > session.issued + 1)  # from then on it needs the account
    waymark.made[1].access.cache.refresh()
    assert there.status() == 200
    anna.open("PUT", "/accounts/ben", json={"role": "admin"})
    waymark.made[1].access.cache.refresh()
    assert there.open("GET", "/session").get_json()["role"] == "admin"
    assert anna.open("DELETE", "/accounts/ben").status_code == 204
    waymark.made[1].access.cache.refresh()
    assert there.status() == 401


@pytest.mark.long
def test_the_last_admin_stays(waymark: Office, anna: Person) -> None:
    anna.log_in("anna")
    for method, body in (("DELETE", None), ("PUT", {"role": "read"})):
        answer = anna.open(method, "/accounts/anna", json=body)
        assert (answer.status_code, answer.get_json()["code"]) == (409, "conflict")
    accounts, both = waymark.made[0].access.accounts, ("anna", "ben")
    together = threading.Barrier(2)

    def remove(name: str) -> None:
        together.wait()
        with suppress(LastAdmin, StoreUnavailable):
            accounts.remove(name)

    for _ in range(5):
        for name in both:
            waymark.person(name, Role.ADMIN)
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(remove, both))
        assert [visitor for visitor in accounts.everyone() if visitor.role is Role.ADMIN]


def test_where_nobody_can_log_in_it_says_so(waymark: Office) -> None:
    for settings in ({"waymark_access": "open"}, {"session_key_file": ""}):
        stranger = Person(waymark.service(**settings))
        answer = stranger.log_in("anna")
        assert answer.status_code == 404
        assert "nobody can log in here: " in answer.get_json()["detail"]
    open_to_all = Person(waymark.service(waymark_access="open"))
    assert open_to_all.open("GET", "/session").get_json()["kind"] == "anybody"
    for method, path in (("DELETE", "/session"), ("POST", "/session/everywhere")):
        assert open_to_all.open(method, path).status_code == 404
