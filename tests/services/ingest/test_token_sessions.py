"""Who shows a token gets a session, one level gets its level alone; the database is a real one."""

import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask
from pymongo.database import Database
from werkzeug.test import TestResponse

from common.routes import MONITOR
from ingest.access import sessions, tokens
from ingest.api.places.coverage import TEAM_SECONDS
from ingest.rules.roles import Role
from ingest.storage.access.tokens import Token
from scripts.processes.waiting import eventually
from tests.services.ingest.people import LOG_IN, Office, Person
from tests.services.ingest.test_access import ROLES

DAY = 86_400
BEACONS = [("C2A628040001", "4", "Room 4-01"), ("C2A628050001", "5", "Room 5-01")]


@pytest.fixture
def admin(waymark: Office) -> Person:
    app = waymark.service()
    waymark.person("anna", Role.ADMIN)
    anna = Person(app)
    anna.log_in("anna")
    return anna


def made(admin: Person, role: str = "read", **more: Any) -> dict[str, Any]:
    answer = admin.open("POST", "/tokens", json={"label": "the wall", "role": role} | more)
    assert answer.status_code == 200, answer.text
    token: dict[str, Any] = answer.get_json()
    return token


def show(visitor: Person, secret: object, **more: Any) -> TestResponse:
    answer = visitor.client.post(LOG_IN, json={"token": secret} | more, headers=visitor.headers)
    if answer.status_code == 200:
        visitor.csrf = answer.get_json()["csrf_token"]
    return answer


def cookie(visitor: Person) -> str:
    kept = visitor.client.get_cookie("waymark_session")
    assert kept
    return kept.value


def attributes(answer: TestResponse) -> dict[str, str]:
    parts = answer.headers["Set-Cookie"].split("; ")[1:]
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def test_a_token_tells_its_level_and_its_hours(admin: Person) -> None:
    one = made(admin, level="4", expires_in_hours=36)
    assert (one["level"], one["expires_at"] - one["created_at"]) == ("4", 36 * 3600)
    other = made(admin, level=5, expires_in_days=2)  # as a beacon's level may be sent
    assert (other["level"], other["expires_at"] - other["created_at"]) == ("5", 2 * DAY)
    teams = made(admin, team=" Cleaning\u00a0B")
    assert (teams["team"], teams["level"]) == ("Cleaning B", None)
    for team in ("", "a\nb", "x" * 65, ["a"]):
        body = {"label": "the wall", "role": "read", "team": team}
        answer = admin.open("POST", "/tokens", json=body)
        assert (answer.status_code, answer.get_json()["errors"][0]["field"]) == (400, "team")
    plain = made(admin)
    assert (plain["level"], plain["team"], plain["expires_at"]) == (None, None, None)
    listed = {row["id"]: row for row in admin.open("GET", "/tokens").get_json()["data"]}
    assert [listed[row["id"]]["level"] for row in (one, other, plain)] == ["4", "5", None]
    audit = admin.open("GET", "/audit?limit=4").get_json()["data"]
    assert [row["details"].get("level") for row in audit] == [None, None, "5", "4"]
    assert audit[1]["details"]["team"] == "Cleaning B"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"expires_in_hours": 1, "expires_in_days": 1}, "expires_in_hours"),
        ({"expires_in_hours": 0}, "expires_in_hours"),
        ({"expires_in_hours": 1.5}, "expires_in_hours"),
        ({"expires_in_hours": True}, "expires_in_hours"),
        ({"expires_in_hours": tokens.MAX_HOURS + 1}, "expires_in_hours"),
        ({"expires_in_hours": "1"}, "expires_in_hours"),
        ({"level": ""}, "level"),
        ({"level": "x" * 65}, "level"),
        ({"level": "\n"}, "level"),
        ({"level": ["4"]}, "level"),
        ({"level": "4", "role": "admin"}, "level"),
        ({"level": "4", "role": "ingest"}, "level"),
    ],
)
def test_what_no_token_can_be_is_refused(admin: Person, fields: dict[str, Any], field: str) -> None:
    answer = admin.open("POST", "/tokens", json={"label": "x", "role": "read"} | fields)
    assert (answer.status_code, answer.get_json()["errors"][0]["field"]) == (400, field)


def test_a_valid_token_never_waits_for_the_guesses_of_others(admin: Person) -> None:
    secret = made(admin)["secret"]
    stranger = Person(admin.client.application)
    statuses = [show(stranger, f"guess number {n}").status_code for n in range(12)]
    assert (statuses[0], statuses[-1]) == (401, 429)
    assert show(stranger, secret).status_code == 200


def test_a_session_of_a_token_lasts_as_long_as_the_token(waymark: Office, admin: Person) -> None:
    token = made(admin, expires_in_days=30)
    wall = Person(admin.client.application)
    answer = show(wall, token["secret"])
    session = answer.get_json()
    assert (session["name"], session["kind"], session["role"]) == ("the wall", "token", "read")
    assert (session["level"], session["expires_at"]) == (None, token["expires_at"])
    named = attributes(answer)
    assert 0 <= 30 * DAY - int(named["Max-Age"]) <= 30
    assert {"HttpOnly", "SameSite", "Path"} <= named.keys()
    assert wall.open("GET", "/session").get_json() == session
    assert wall.open("GET", "/staff").status_code == 200
    assert wall.open("GET", "/tokens").status_code == 403
    assert wall.open("PUT", "/beacons/C2A628384B08", json={}).status_code == 403
    # The browser has no secret: neither as it is nor as it may be tried out.
    whole = cookie(wall)
    payload = sessions.Sessions(str(waymark.folder / "session_key")).read(whole)
    assert token["secret"] not in whole + repr(payload)
    assert tokens.digest(token["secret"])[:16] not in whole + repr(payload)
    # A log-in is noted; last used is told.
    noted = admin.open("GET", "/audit?limit=1").get_json()["data"][0]
    assert (noted["what"], noted["kind"], noted["who"]) == ("log-in", "token", "the wall")
    assert noted["of"] == token["id"]
    # Another service takes it at once, though it has not heard of the token yet.
    there = Person(waymark.service())
    later = made(admin)
    assert show(there, later["secret"]).status_code == 200
    third = waymark.service()
    last = made(admin)
    assert show(wall, last["secret"]).status_code == 200
    there = Person(third)
    there.client.set_cookie("waymark_session", cookie(wall))
    assert there.status() == 200
    assert wall.open("DELETE", "/session").status_code == 204
    assert wall.status() == 401


def test_a_log_in_waits_for_the_services_own_reading_but_one_alone(
    waymark: Office, admin: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a new link is often refused: what is unknown makes the service itself read, too."""
    there = waymark.service()
    context, free = waymark.made[1], threading.Event()
    valid = context.access.tokens.valid

    def slow(now: float) -> list[Token]:
        free.wait(60)
        return valid(now)

    monkeypatch.setattr(context.access.tokens, "valid", slow)
    threading.Thread(target=context.access.cache.refresh, daemon=True).start()
    eventually(context.access.cache._refreshing.locked)
    secret = made(admin)["secret"]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(show, Person(there), secret)
        eventually(context.access.login._asking.locked)
        other = show(Person(there), secret)
        free.set()
        assert waiting.result(60).status_code == 200
    assert (other.status_code, other.get_json()["code"]) == (429, "too_many_waiting")


def test_without_an_end_a_browser_keeps_it_as_long_as_it_can(admin: Person) -> None:
    answer = show(Person(admin.client.application), made(admin)["secret"])
    assert answer.get_json()["expires_at"] is None
    assert attributes(answer)["Max-Age"] == str(400 * DAY)


def test_who_may_write_shows_the_token_every_day(admin: Person, monkeypatch: Any) -> None:
    boss = Person(admin.client.application)
    answer = show(boss, made(admin, "admin")["secret"])
    assert 0 <= answer.get_json()["expires_at"] - time.time() <= sessions.MAX_AGE_SECONDS
    assert "Max-Age" not in attributes(answer)  # it ends with the browser
    body = {"level": "4", "location": "Lobby B"}
    assert boss.open("PUT", "/beacons/C2A628384B08", json=body).status_code == 200
    boss.csrf = "x"
    assert boss.open("PUT", "/beacons/C2A628384B08", json=body).status_code == 403
    assert boss.open("DELETE", "/session").status_code == 403
    monkeypatch.setattr(sessions, "MAX_AGE_SECONDS", 1)
    show(boss, made(admin, "admin")["secret"])
    eventually(lambda: boss.status() == 401, 30)


def test_the_first_administrator_logs_in_without_a_database(waymark: Office) -> None:
    secret = tokens.generate()
    nowhere = "mongodb://127.0.0.1:1/?replicaSet=embedded"
    settings = {"mongodb_uri": nowhere, "mongodb_timeout_ms": 200}
    digest = tokens.digest(secret)
    first = Person(waymark.service(waymark_admin_token_sha256=digest, **settings))
    assert show(first, secret).status_code == 200
    assert first.open("GET", "/session").get_json()["name"] == "first administrator"
    # `configure` made another one.
    other = tokens.digest(tokens.generate())
    again = Person(waymark.service(waymark_admin_token_sha256=other))
    again.client.set_cookie("waymark_session", cookie(first))
    time.sleep(max(0.0, int(time.time()) + 1.01 - time.time()))  # issued in this very second
    waymark.made[1].access.cache.refresh()
    assert again.status() == 401


def test_revoked_or_expired_it_ends_at_every_service(waymark: Office, admin: Person) -> None:
    there = Person(waymark.service())
    token = made(admin)
    assert show(there, token["secret"]).status_code == 200
    issued = time.time()
    assert admin.open("DELETE", f"/tokens/{token['id']}").status_code == 204
    eventually(lambda: time.time() > issued + 1.1)
    for context in waymark.made:
        context.access.cache.refresh()
    assert there.status() == 401
    wall = Person(admin.client.application)
    wall.client.set_cookie("waymark_session", cookie(there))
    assert wall.status() == 401
    answer = show(wall, token["secret"])
    assert (answer.status_code, "Set-Cookie" in answer.headers) == (401, False)
    assert "revoked" in answer.get_json()["detail"]

    soon, digest = int(time.time()) + 8, tokens.digest("wm_soon")
    token_ = Token("0000000a", digest, "soon", Role.READ, int(time.time()), soon)
    waymark.made[0].access.tokens.add(token_)
    assert show(wall, "wm_soon").status_code == 200
    eventually(lambda: time.time() > soon, 60)
    assert wall.status() == 401  # at its second
    assert show(wall, "wm_soon").status_code == 401


def test_it_holds_while_the_database_is_away_also_after_a_restart(
    waymark: Office, admin: Person
) -> None:
    token = made(admin, level="4")
    wall = Person(admin.client.application)
    show(wall, token["secret"])
    file = waymark.folder / "spool-0.access.json"
    eventually(lambda: token["id"] in file.read_text())
    assert json.loads(file.read_text())["tokens"][0]["level"] == "4"
    waymark.made[0].close()
    app = waymark.service(
        spool_file=str(waymark.folder / "spool-0.db"),
        mongodb_uri="mongodb://127.0.0.1:1/?replicaSet=embedded",
        mongodb_timeout_ms=200,
    )
    again = Person(app)
    again.client.set_cookie("waymark_session", cookie(wall))
    assert again.open("GET", "/session").get_json()["level"] == "4"
    # Who starts now, with the link as its first page, gets in too; guessers open no circuit.
    assert show(again, token["secret"]).status_code == 200
    # and of what it never heard of it says neither yes nor no: it may have just been made.
    unsure = show(Person(app), tokens.generate())
    assert (unsure.status_code, unsure.get_json()["code"]) == (429, "too_many_waiting")
    assert unsure.headers["Retry-After"]


def test_who_may_read_cannot_fill_the_audit(
    waymark: Office, admin: Person, database: Database[dict[str, Any]]
) -> None:
    token = made(admin)
    wall = Person(admin.client.application)
    before = database["audit"].count_documents({})
    for _ in range(3):
        answer = show(wall, token["secret"])
        wall.csrf = answer.get_json()["csrf_token"]
        kept = cookie(wall)
        for _ in range(3):  # it is a session all the same for who kept a copy
            assert wall.open("DELETE", "/session").status_code == 204
            wall.client.set_cookie("waymark_session", kept)
    noted = database["audit"].find().sort("_id").skip(before)
    assert [note["what"] for note in noted] == ["log-in", "log-out"]


def test_no_other_token_gets_a_session(admin: Person) -> None:
    secret = made(admin)["secret"]
    phone = made(admin, "ingest")["secret"]
    stranger = Person(admin.client.application)
    answer = show(stranger, phone)
    assert (answer.status_code, answer.get_json()["code"]) == (403, "forbidden")
    bad = [secret[:-1], f"{secret} ", secret.upper(), tokens.digest(secret), "\x00", "x" * 5000]
    for number, text in enumerate(bad):
        stranger.headers["X-Forwarded-For"] = f"192.0.2.{number}"
        answer = show(stranger, text)
        assert (answer.status_code, "Set-Cookie" in answer.headers) == (401, False), text
        assert text not in answer.text
    for body in ({"token": ""}, {"token": 7}, {"token": ["x"]}, {"token": {"$ne": ""}}):
        answer = stranger.client.post(LOG_IN, json=body)
        assert (answer.status_code, answer.get_json()["errors"][0]["field"]) == (400, "token")
    assert show(stranger, secret, name="anna", password="x" * 12).status_code == 400
    assert show(stranger, secret, name="anna").status_code == 400
    noted = admin.open("GET", "/audit?limit=20").get_json()["data"]
    refused = [note for note in noted if note["what"] == "log-in refused"]
    assert len(refused) >= len(bad)
    assert secret not in json.dumps(noted)


@pytest.fixture
def walls(
    waymark: Office, admin: Person, mongod: str, database: Database[dict[str, Any]]
) -> Iterator[tuple[Person, dict[str, Any]]]:
    """Return a wall of level 4, with its token, while people are on two levels."""
    for mac, level, location in BEACONS:
        body = {"level": level, "location": location}
        assert admin.open("PUT", f"/beacons/{mac}", json=body).status_code == 200
    for staff_id in range(6):
        mac = BEACONS[staff_id % 2][0]
        detection = {"user_address": staff_id, "beacon_address": mac, "rssi": -20}
        headers = {"X-CSRF-Token": admin.csrf}
        answer = admin.client.post("/newbeacondetect", json=detection, headers=headers)
        assert answer.status_code == 200
        person = {"name": f"Jane of {BEACONS[staff_id % 2][2]}"}
        assert admin.open("PUT", f"/people/{staff_id}", json=person).status_code == 200
    wall, token = Person(admin.client.application), made(admin, level="4")
    assert show(wall, token["secret"]).get_json()["level"] == "4"
    yield wall, token
    database["staff"].delete_many({})
    database["latest"].delete_many({})


def test_who_may_see_one_level_gets_that_and_nothing_else(
    walls: tuple[Person, dict[str, Any]],
) -> None:
    wall, token = walls
    app: Flask = wall.client.application
    by_token = app.test_client(use_cookies=False)
    bearer = {"Authorization": f"Bearer {token['secret']}"}
    csrf = {"X-CSRF-Token": wall.csrf}
    allowed = set()
    for route, role in ROLES.items():
        if role is Role.NOBODY or route == "DELETE /api/v1/session":
            continue
        method, path = route.split(" ")
        path = path.replace("<staff_id>", "0").replace("<mac>", BEACONS[0][0])
        for query in ("", "?level=4", "?level=5", "?level=", "?level=5&level=4", "?everything=1"):
            url = path + query
            answers = [
                by_token.open(url, method=method, headers=bearer),
                wall.client.open(url, method=method, headers=csrf),
            ]
            for answer in answers:
                assert "Room 5-01" not in answer.text, url
                if answer.status_code == 403:
                    assert "level 4 alone" in answer.text or "needs the role" in answer.text
            [status] = {answer.status_code for answer in answers}
            if status != 403:
                allowed.add((f"{method} {url}", status))
    others = ("level=4", "level=5", "level=", "level=5&level=4")  # which it does not have
    session = {("GET /api/v1/session", 200)}
    session |= {(f"GET /api/v1/session?{query}", 400) for query in others}
    own = {"POST /api/v1/session/everywhere", "PUT /api/v1/session/password"}
    assert allowed == session | {
        (f"GET /api/v1/{path}?level=4", 200) for path in ("now", "staff", "beacons", "people")
    }
    assert not own & {route for route, _ in allowed}  # a person's
    assert wall.open("DELETE", "/session").status_code == 204
    assert wall.status() == 401


def test_a_level_is_what_it_says(walls: tuple[Person, dict[str, Any]]) -> None:
    wall, _ = walls
    staff = wall.open("GET", "/staff?level=4").get_json()["data"]
    assert [row["staff_id"] for row in staff] == [0, 2, 4]
    [level] = wall.open("GET", "/now?level=4").get_json()["levels"]
    assert (level["level"], len(level["staff"])) == ("4", 3)
    beacons = wall.open("GET", "/beacons?level=4").get_json()["data"]
    assert [beacon["mac"] for beacon in beacons] == [BEACONS[0][0]]
    people = wall.open("GET", "/people?level=4").get_json()["data"]
    assert [person["staff_id"] for person in people] == [0, 2, 4]
    page = wall.open("GET", "/staff?level=4&limit=2")
    assert [row["staff_id"] for row in page.get_json()["data"]] == [0, 2]
    following = page.headers["Link"].partition(">")[0].removeprefix("</api/v1")
    rest = wall.open("GET", following)
    assert [row["staff_id"] for row in rest.get_json()["data"]] == [4]
    assert "Link" not in rest.headers


def test_levels_do_not_share_an_answers_tag(
    admin: Person, walls: tuple[Person, dict[str, Any]]
) -> None:
    del walls
    for path in ("/staff", "/beacons", "/now", "/people"):
        tags = {
            admin.open("GET", path + query).headers["ETag"]
            for query in ("", "?level=4", "?level=5", "?level=6")
        }
        assert len(tags) == 4, path


MEMBER, OTHER = "member", "other"


@pytest.fixture
def team(admin: Person, database: Database[dict[str, Any]]) -> Iterator[tuple[Person, Any]]:
    """Return a reader of the team Cleaning, with the token, while others are at the same places."""
    for mac, level, location in BEACONS:
        body = {"level": level, "location": location}
        assert admin.open("PUT", f"/beacons/{mac}", json=body).status_code == 200
    teams = {f"{MEMBER}-1": "Cleaning", f"{OTHER}-1": "Security", f"{OTHER}-2": None}
    for ago, (staff_id, name) in enumerate(teams.items()):
        for mac, *_ in BEACONS:
            detection = {"user_address": staff_id, "beacon_address": mac, "rssi": -20}
            detection["timestamp"] = int(time.time()) - len(teams) + ago  # the others' are newer
            headers = {"X-CSRF-Token": admin.csrf}
            answer = admin.client.post("/newbeacondetect", json=detection, headers=headers)
            assert answer.status_code == 200
        if name:
            person = {"name": f"Jane {staff_id}", "team": name}
            assert admin.open("PUT", f"/people/{staff_id}", json=person).status_code == 200
    reader, token = Person(admin.client.application), made(admin, team="Cleaning")
    assert show(reader, token["secret"]).get_json()["team"] == "Cleaning"
    yield reader, token
    database["staff"].delete_many({})
    database["latest"].delete_many({})


def test_who_may_see_one_team_gets_that_and_nothing_else(team: tuple[Person, Any]) -> None:
    reader, token = team
    by_token = reader.client.application.test_client(use_cookies=False)
    bearer = {"Authorization": f"Bearer {token['secret']}"}
    csrf = {"X-CSRF-Token": reader.csrf}
    now = int(time.time())
    visits = f"location=Room%204-01&from={now - 3600}&to={now}"
    allowed = set()
    for route, role in ROLES.items():
        if role is Role.NOBODY or route == "DELETE /api/v1/session":
            continue
        method, path = route.split(" ")
        path = path.replace("<mac>", BEACONS[0][0])
        for staff_id, query in itertools.product(
            (f"{MEMBER}-1", f"{OTHER}-1", f"{OTHER}-2"),
            ("", "team=Cleaning", "team=Security", "team=", "team=%20Cleaning", "everything=1"),
        ):
            url = path.replace("<staff_id>", staff_id)
            asked = f"{url}?{query}&{visits}" if path.endswith("/visits") else f"{url}?{query}"
            answers = [
                by_token.open(asked, method=method, headers=bearer),
                reader.client.open(asked, method=method, headers=csrf),
            ]
            for answer in answers:
                assert OTHER not in answer.text.replace(staff_id, ""), asked
            [status] = {answer.status_code for answer in answers}
            if status < 400:
                allowed.add(f"{method} {url}?{query}")
    of_nobody = ("beacons", f"beacons/{BEACONS[0][0]}", "session")
    of_team = ("now", "staff", "people", "coverage", "visits", *MEMBERS_OWN)
    assert allowed == {f"GET /api/v1/{path}?" for path in of_nobody} | {
        f"GET /api/v1/{path}?team=Cleaning" for path in of_team
    }


MEMBERS_OWN = (f"staff/{MEMBER}-1/detections", f"people/{MEMBER}-1")


def test_a_team_is_what_it_says(team: tuple[Person, Any], admin: Person) -> None:
    reader, _ = team

    def told(path: str) -> Any:
        answer = reader.open("GET", path + ("&" if "?" in path else "?") + "team=Cleaning")
        assert answer.status_code == 200, answer.text
        return answer.get_json()

    now = int(time.time())
    assert [row["staff_id"] for row in told("/staff")["data"]] == [f"{MEMBER}-1"]
    assert [row["staff_id"] for row in told("/staff?level=5")["data"]] == [f"{MEMBER}-1"]
    assert [len(level["staff"]) for level in told("/now")["levels"]] == [1]
    assert [row["name"] for row in told("/people")["data"]] == [f"Jane {MEMBER}-1"]
    assert {row["staff_id"] for row in told("/coverage")["data"]} == {f"{MEMBER}-1"}
    visits = told(f"/visits?location=Room%204-01&from={now - 3600}&to={now}")["data"]
    assert [visit["staff_id"] for visit in visits] == [f"{MEMBER}-1"]
    assert len(told(f"/staff/{MEMBER}-1/detections")["data"]) == 2
    everybody = admin.open("GET", "/coverage").get_json()["data"]
    assert {row["staff_id"] for row in everybody} == {f"{OTHER}-2"}
    # Whoever leaves the team is gone from all of it, and whoever comes is there.
    tags = {path: reader.open("GET", f"{path}?team=Cleaning").headers["ETag"] for path in TAGGED}
    for staff_id, name in ((f"{MEMBER}-1", "Security"), (f"{OTHER}-2", "Cleaning")):
        body = {"name": "Jane", "team": name}
        assert admin.open("PUT", f"/people/{staff_id}", json=body).status_code == 200
    for path, tag in tags.items():
        headers = {"If-None-Match": tag}
        answer = reader.open("GET", f"{path}?team=Cleaning", headers=headers)
        assert (answer.status_code, MEMBER in answer.text) == (200, False), path
        assert f"{OTHER}-2" in answer.text
    for path in MEMBERS_OWN:
        assert reader.open("GET", f"/{path}?team=Cleaning").status_code == 404
    for number, ago in ((9, 0), (8, TEAM_SECONDS + 60)):
        detection: dict[str, Any] = {"user_address": number, "rssi": -20}
        detection |= {"beacon_address": BEACONS[1][0], "timestamp": int(time.time()) - ago}
        headers = {"X-CSRF-Token": admin.csrf}
        answer = admin.client.post("/newbeacondetect", json=detection, headers=headers)
        assert answer.status_code == 200
        person = {"name": "Jim", "team": f"of {number}"}
        assert admin.open("PUT", f"/people/{number}", json=person).status_code == 200
    for number, seen in ((9, {9, None}), (8, {None})):  # as far back as a team is looked for
        places = admin.open("GET", f"/coverage?team=of%20{number}").get_json()["data"]
        assert {place["staff_id"] for place in places} == seen
    nobodys = admin.open("GET", "/coverage?team=nobodys").get_json()["data"]
    assert {row["staff_id"] for row in nobodys} == {None}


TAGGED = ("/staff", "/now", "/people", "/coverage")


@pytest.mark.parametrize(
    "path", ["/extractbeacon?staff_id=member-1&start_time=0&end_time=9", f"{MONITOR.path}?"]
)
def test_the_legacy_answers_tell_of_no_one_team(team: tuple[Person, Any], path: str) -> None:
    reader, token = team
    bearer = {"Authorization": f"Bearer {token['secret']}"}
    for query in ("", "&team=Cleaning"):
        answer = reader.client.get(path + query, headers=bearer)
        assert (answer.status_code, "the team Cleaning alone" in answer.text) == (403, True)


def test_a_token_may_have_a_level_and_a_team(team: tuple[Person, Any], admin: Person) -> None:
    reader, token = Person(admin.client.application), made(admin, level="5", team="Cleaning")
    show(reader, token["secret"])
    for query, status in (("level=5&team=Cleaning", 200), ("level=5", 403), ("team=Cleaning", 403)):
        answer = reader.open("GET", f"/staff?{query}")
        assert answer.status_code == status
        assert status == 200 or "level 5 and the team Cleaning alone" in answer.text
    assert reader.open("GET", "/coverage?team=Cleaning").status_code == 403
    del team


@pytest.mark.long
def test_the_command_makes_them_too(waymark: Office) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        done = waymark.command("tokens", *words)
        return done.returncode, done.stdout.strip(), done.stderr

    create = ("create", "--role", "read", "the wall")
    status, secret, said = run(*create, "--hours", "36", "--level", "4", "--team", " Cleaning")
    assert status == 0, said
    wall = Person(waymark.service())
    session = show(wall, secret).get_json()
    assert (session["level"], session["team"]) == ("4", "Cleaning")
    assert 0 <= session["expires_at"] - time.time() <= 36 * 3600
    assert re.search(r"read +the wall +4 +Cleaning +2", run("list")[1])
    assert run(*create, "--hours", "1", "--days", "1")[0] != 0
    assert run(*create, "--hours", "0")[0] != 0
    for limit in ("--level", "--team"):
        assert run("create", "--role", "admin", limit, "4", "x")[0] == 1
