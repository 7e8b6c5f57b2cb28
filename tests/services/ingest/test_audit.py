"""What is noted of who did what; and that nothing anywhere holds a password or a token."""

import csv
import io
import time
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from common.log_lines import FRAME
from ingest.rules.roles import Role
from ingest.storage.access import audit
from ingest.storage.access.accounts import Accounts
from mongo import topology
from scripts.processes.cluster import Cluster
from tests.service import Service
from tests.services.ingest.people import PASSWORD, Office, Person

NEW, HERE = "another horse, a longer one", "192.0.2.1"
MAC = "C2A628384B08"


@pytest.fixture
def anna(waymark: Office) -> Person:
    app = waymark.service()
    waymark.person("anna", Role.ADMIN)
    return Person(app, address=HERE)


def newest(database: Database[dict[str, Any]], count: int) -> list[tuple[Any, ...]]:
    """Return what was noted last, the oldest first."""
    rows = list(database["audit"].find().sort("_id", -1).limit(count))[::-1]
    assert all(abs(row["at"] - time.time()) < 600 for row in rows)  # seconds, of our clock
    return [
        (entry["who"], entry["kind"], entry["what"], entry["of"], entry["details"])
        for entry in rows
    ]


def test_everything_that_somebody_does_is_noted(
    waymark: Office, anna: Person, database: Database[dict[str, Any]]
) -> None:
    anna.log_in("anna", "a wrong password")
    anna.log_in("nobody", PASSWORD)
    anna.log_in("my password, in the wrong field", PASSWORD)
    anna.log_in("anna")
    assert newest(database, 4) == [
        ("", "anybody", "log-in refused", "anna", {}),
        ("", "anybody", "log-in refused", "", {}),
        ("", "anybody", "log-in refused", "", {}),
        ("anna", "person", "log-in", "", {}),
    ]
    assert database["audit"].find_one({"who": "anna"}, sort=[("_id", -1)])["address"] == HERE  # type: ignore[index]
    place = {"level": "4", "location": "Lobby B", "x": 1, "y": 2}
    anna.open("PUT", f"/beacons/{MAC}", json=place)
    anna.open("DELETE", f"/beacons/{MAC}")
    file = f"mac,level,location,x,y\n{MAC},4,Lobby B,,\n"
    for dry_run in "10":
        path = f"/beacons/import?dry_run={dry_run}"
        assert anna.open("POST", path, data=file, content_type="text/csv").status_code == 200
    assert newest(database, 3) == [
        ("anna", "person", "beacon put", MAC, place),
        ("anna", "person", "beacon removed", MAC, {}),
        ("anna", "person", "beacons imported", "", {"added": 1, "changed": 0}),
    ]
    token = anna.open("POST", "/tokens", json={"label": "wall", "role": "admin"}).get_json()
    bearer = {"Authorization": f"Bearer {token['secret']}"}
    ben = {"role": "read", "password": NEW}
    assert anna.open("PUT", "/accounts/ben", json=ben, headers=bearer).status_code == 200
    assert anna.open("PUT", "/accounts/ben", json={"role": "admin"}).status_code == 200
    again = anna.open("PUT", "/accounts/ben", json=ben, headers=bearer | {"If-None-Match": "*"})
    assert again.status_code == 412  # no entry tells of it
    assert anna.open("DELETE", "/accounts/ben").status_code == 204
    assert anna.open("DELETE", f"/tokens/{token['id']}").status_code == 204
    made = {"label": "wall", "role": "admin", "expires_at": None}
    assert newest(database, 5) == [
        ("anna", "person", "token made", token["id"], made),
        ("wall", "token", "account put", "ben", {"role": "read", "new_password": True}),
        ("anna", "person", "account put", "ben", {"role": "admin", "new_password": False}),
        ("anna", "person", "account removed", "ben", {}),
        ("anna", "person", "token revoked", token["id"], {}),
    ]
    anna.open("PUT", "/session/password", json={"old": "a wrong one", "new": NEW})
    changed = anna.open("PUT", "/session/password", json={"old": PASSWORD, "new": NEW})
    anna.csrf = changed.get_json()["csrf_token"]
    anna.open("DELETE", "/session")
    anna.log_in("anna", NEW)
    anna.open("POST", "/session/everywhere")
    assert [row[2] for row in newest(database, 5)] == [
        "password change refused",
        "password change",
        "log-out",
        "log-in",
        "log-out everywhere",
    ]


def test_it_is_read_page_by_page_and_as_a_file_that_no_spreadsheet_runs(
    waymark: Office, anna: Person
) -> None:
    anna.log_in("anna")
    formula = '=HYPERLINK("http://example.org")'
    for location in (formula, "+1", 'Room, "4"', "Küche"):
        place = {"level": "4", "location": location}
        assert anna.open("PUT", f"/beacons/{MAC}", json=place).status_code == 200
    anna.open("POST", "/tokens", json={"label": formula, "role": "admin"})
    everything = anna.open("GET", "/audit?limit=500").get_json()["data"]
    assert [entry["what"] for entry in everything[:6]] == [
        "token made",
        *["beacon put"] * 4,
        "log-in",
    ]
    paged: list[Any] = []
    before = ""
    while before is not None and len(paged) < 6:
        page = anna.open("GET", f"/audit?limit=2&before={before}").get_json()
        assert len(page["data"]) == 2
        paged += page["data"]
        before = page["next"]
    assert paged == everything[:6]
    oldest = anna.open("GET", f"/audit?before={everything[-1]['id']}").get_json()
    assert len(everything) == 500 or oldest == {"next": None, "data": []}
    last_two = anna.open("GET", f"/audit?limit=2&before={everything[-3]['id']}").get_json()
    if len(everything) < 500:  # a full page that is the last one leads to no empty one
        assert last_two == {"next": None, "data": everything[-2:]}
    answer = anna.open("GET", "/audit?format=csv")
    assert answer.mimetype == "text/csv"
    header, *rows = csv.reader(io.StringIO(answer.get_data(as_text=True), newline=""))
    assert header == ["id", "at", "time", "who", "kind", "what", "of", "details", "address"]
    assert [row[0] for row in rows[: len(everything)]] == [row["id"] for row in everything]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for row in rows for cell in row)
    for bad in ("limit=501", "limit=0", "before=x", "format=xml"):
        assert anna.open("GET", f"/audit?{bad}").status_code == 400


def test_a_label_that_is_a_formula_is_text_in_the_file(waymark: Office, anna: Person) -> None:
    anna.log_in("anna")
    token = anna.open("POST", "/tokens", json={"label": "=1+1", "role": "admin"}).get_json()
    bearer = {"Authorization": f"Bearer {token['secret']}"}
    anna.open("DELETE", f"/beacons/{MAC}", headers=bearer)
    text = anna.open("GET", "/audit?format=csv").get_data(as_text=True)
    assert "'=1+1,token" in text.splitlines()[1]


def test_what_cannot_be_noted_is_not_said_to_be_done(
    waymark: Office,
    anna: Person,
    database: Database[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    anna.log_in("anna")
    ben = {"role": "read", "password": NEW}
    with (
        MongoClient[dict[str, Any]]("mongodb://127.0.0.1:1/") as nowhere,
        monkeypatch.context() as at,
    ):
        at.setattr(audit, "TIMEOUT_SECONDS", 0.1)
        at.setattr(waymark.made[0].access.audit, "_audit", nowhere["ICT3102"]["audit"])
        assert anna.open("PUT", "/accounts/ben", json=ben).status_code == 503
        answer = Person(anna.client.application).log_in("anna")
        assert answer.status_code == 503
        assert "Set-Cookie" not in answer.headers
    assert anna.open("PUT", "/accounts/ben", json=ben).status_code == 200  # sent again, it is
    assert newest(database, 1)[0][2:4] == ("account put", "ben")


def test_no_password_hash_or_secret_is_in_a_log_an_answer_or_a_file(
    waymark: Office, anna: Person, mongod: str, tmp_path: Path, database: Database[dict[str, Any]]
) -> None:
    settings: dict[str, Any] = {
        "WAYMARK_ACCESS": "required",
        "SESSION_KEY_FILE": tmp_path / "session_key",
    }
    service = Service(mongod, tmp_path, **settings)
    service.start()
    answers = []
    try:
        url, session = f"{service.url}/api/v1", service.session

        def call(method: str, path: str, **more: Any) -> Any:
            answer = session.request(method, f"{url}{path}", timeout=30, **more)
            answers.append(answer.text)
            return answer

        call("POST", "/session", json={"name": "anna", "password": "a wrong password"})
        call("POST", "/session", json={"name": PASSWORD, "password": PASSWORD})
        call("POST", "/session", data=PASSWORD)
        answer = call("POST", "/session", json={"name": "anna", "password": PASSWORD})
        csrf = {"X-CSRF-Token": answer.json()["csrf_token"]}
        short = {"old": PASSWORD, "new": "too short"}
        call("PUT", "/session/password", json=short, headers=csrf)
        call("PUT", "/accounts/ben", json={"role": "x", "password": NEW}, headers=csrf)
        call("PUT", "/accounts/ben", json={"role": "read", "password": NEW}, headers=csrf)
        made = call("POST", "/tokens", json={"label": "x", "role": "read"}, headers=csrf)
        secret = made.json()["secret"]
        assert made.headers["Cache-Control"] == "no-store"
        answers.remove(made.text)
        for path in ("/accounts", "/tokens", "/audit?limit=500", "/audit?format=csv", "/session"):
            assert call("GET", path).status_code == 200
        bearer = {"Authorization": f"Bearer {secret}"}
        assert call("GET", "/session", headers=bearer).json()["kind"] == "token"
        log = service.log
    finally:
        service.kill()
    kept = [file.read_bytes().decode("latin-1") for file in tmp_path.glob("*spool*")]
    assert any('"accounts"' in text for text in kept)
    hashes = [row["hash"] for row in database["accounts"].find({"hash": {"$exists": True}})]
    assert len(hashes) == 2
    stored = [str(row) for name in ("audit", "tokens", "accounts") for row in database[name].find()]
    for hidden in (PASSWORD, NEW, "a wrong password", "too short", secret, "k" * 43):
        assert not any(hidden in text for text in [log, *answers, *kept, *stored]), hidden
    assert not any("$argon2" in text for text in [log, *answers, *kept])
    assert FRAME not in log


def test_mongodb_logs_no_hash_either(tmp_path: Path) -> None:
    with Cluster(topology.load(topology.EMBEDDED), tmp_path).running() as cluster:
        with MongoClient[dict[str, Any]](cluster.uri(user="admin")) as client:
            client["ICT3102"].command("profile", 0, slowms=-1)  # as if everything were slow
        with MongoClient[dict[str, Any]](cluster.uri()) as client:
            accounts, now = Accounts(client["ICT3102"]), time.time()
            accounts.put("anna", Role.ADMIN, "$argon2id$1", now)
            changed = accounts.put("anna", Role.ADMIN, "$argon2id$2", now)
            assert accounts.change_password(changed, "$argon2id$3", now)
            assert accounts.change_password(changed, "$argon2id$4", now) is None
            accounts.end_sessions("anna", now)
            account_and_hash = accounts.find("anna")
            assert account_and_hash
            assert (account_and_hash[0].epoch - int(now * 1000), account_and_hash[1]) == (
                3,
                "$argon2id$3",
            )
        log = (tmp_path / "mongod.log").read_text()
    assert log.count('"accounts"') > 5
    assert "$argon2" not in log


@pytest.mark.long
def test_the_command_makes_the_first_admin(
    waymark: Office, database: Database[dict[str, Any]]
) -> None:
    def run(*words: str, typed: str = "") -> tuple[int, str]:
        done = waymark.command("accounts", *words, typed=typed)
        return done.returncode, done.stdout + done.stderr

    status, said = run("create", "Anna", "--role", "admin")
    assert status == 0
    password = said.split()[-1]
    assert len(password) == 20
    app = waymark.service()
    assert Person(app).log_in("anna", password).get_json()["role"] == "admin"
    assert run("create", "ben", "--password-stdin", typed=f"{NEW}\n") == (0, "ben may log in\n")
    assert Person(app).log_in("ben", NEW).get_json()["role"] == "read"
    rows = [line.split("\t") for line in run("list")[1].splitlines()]
    assert [row[:2] for row in rows] == [["anna", "admin"], ["ben", "read"]]
    assert run("remove", "anna") == (
        1,
        "accounts: this is the last admin: make somebody else admin first\n",
    )
    assert run("remove", "nobody")[0] == 1
    assert run("create", "ben", "--password-stdin", typed="short\n")[0] == 1
    assert run("create", "no name")[0] == 1
    status, said = run("create", "anna", "--role", "admin")  # who has forgotten it
    assert Person(app).log_in("anna", said.split()[-1]).status_code == 200
    assert run("remove", "ben")[0] == 0
    kinds = {(row[1], row[2]) for row in newest(database, 4)}
    assert ("command", "account removed") in kinds
