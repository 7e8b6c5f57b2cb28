"""Who may do what, as the service answers it; the database is a real one."""

import itertools
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo.database import Database
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from ingest import create_app
from ingest.access import access_cache, tokens
from ingest.assembly import Context
from ingest.config import Config
from ingest.rules.roles import Role, needed
from ingest.storage.access.tokens import Token
from tests.services.ingest.conftest import BEACON

SECRETS: dict[Role, str] = {role: tokens.generate() for role in Role if role is not Role.NOBODY}
# Every address and method with its role: whoever adds one decides here who may call it.
ROLES = {
    "GET /healthz": Role.NOBODY,
    "GET /readyz": Role.NOBODY,
    "GET /metrics": Role.READ,
    "GET /newbeacondetect": Role.INGEST,
    "POST /newbeacondetect": Role.INGEST,
    "POST /api/v1/detections": Role.INGEST,
    "GET /extractbeacon": Role.READ,
    "POST /extractbeacon": Role.READ,
    "GET /retrieveformonitoring": Role.READ,
    "POST /retrieveformonitoring": Role.READ,
    "GET /docs": Role.READ,
    "GET /api/v1/openapi.json": Role.READ,
    "GET /api/v1/session": Role.READ,
    "GET /api/v1/staff": Role.READ,
    "GET /api/v1/now": Role.READ,
    "GET /api/v1/staff/<staff_id>/detections": Role.READ,
    "GET /api/v1/coverage": Role.READ,
    "GET /api/v1/visits": Role.READ,
    "GET /api/v1/changes": Role.READ,
    "GET /api/v1/beacons": Role.READ,
    "GET /api/v1/people": Role.READ,
    "GET /api/v1/people/unnamed": Role.READ,
    "GET /api/v1/people/<staff_id>": Role.READ,
    "PUT /api/v1/people/<staff_id>": Role.ADMIN,
    "DELETE /api/v1/people/<staff_id>": Role.ADMIN,
    "POST /api/v1/people/import": Role.ADMIN,
    "POST /api/v1/people/forgotten": Role.ADMIN,
    "GET /api/v1/beacons/unknown": Role.READ,
    "GET /api/v1/beacons/batteries": Role.READ,
    "GET /api/v1/beacons/<mac>": Role.READ,
    "GET /api/v1/system": Role.READ,
    "GET /api/v1/system/database": Role.READ,
    "PUT /api/v1/beacons/<mac>": Role.ADMIN,
    "DELETE /api/v1/beacons/<mac>": Role.ADMIN,
    "POST /api/v1/beacons/import": Role.ADMIN,
    "GET /api/v1/beacons/<mac>/correction": Role.ADMIN,
    "POST /api/v1/beacons/<mac>/correction": Role.ADMIN,
    "DELETE /api/v1/beacons/<mac>/correction": Role.ADMIN,
    "POST /api/v1/session": Role.NOBODY,
    "DELETE /api/v1/session": Role.READ,
    "GET /api/v1/session/oidc": Role.NOBODY,
    "GET /api/v1/session/oidc/callback": Role.NOBODY,
    "POST /api/v1/session/everywhere": Role.READ,
    "PUT /api/v1/session/password": Role.READ,
    "PUT /api/v1/staff/<staff_id>/lost_contact": Role.ADMIN,
    "GET /api/v1/accounts": Role.ADMIN,
    "PUT /api/v1/accounts/<name>": Role.ADMIN,
    "DELETE /api/v1/accounts/<name>": Role.ADMIN,
    "GET /api/v1/tokens": Role.ADMIN,
    "POST /api/v1/tokens": Role.ADMIN,
    "DELETE /api/v1/tokens/<token_id>": Role.ADMIN,
    "GET /api/v1/audit": Role.ADMIN,
}


def token(role: Role, **words: Any) -> Token:
    digest = tokens.digest(SECRETS[role])
    return Token(digest[:12], digest, role.value, role, int(time.time()))._replace(**words)


@pytest.fixture
def guarded(
    mongod: str, database: Database[dict[str, Any]], tmp_path: Path
) -> Iterator[Callable[..., Flask]]:
    """Return a function that makes a service that requires tokens, one for each role is there."""
    for collection in ("staff", "latest", "notes", "beacons", "tokens"):
        database[collection].delete_many({})
    database["beacons"].insert_one(BEACON)
    database["tokens"].insert_many([token(role).document() for role in SECRETS])
    config = Config(
        mongodb_uri=mongod, spool_file=str(tmp_path / "spool.db"), waymark_access="required"
    )
    made: list[Context] = []

    def make(**settings: Any) -> Flask:
        app = create_app(replace(config, **settings))
        made.append(app.extensions["context"])
        return app

    yield make
    for context in made:
        context.close()


def routes(app: Flask) -> Iterator[tuple[str, Rule]]:
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            path = re.sub(r"<\w+:", "<", rule.rule)
            yield f"{method} {path}", rule


def ask(client: FlaskClient, route: str, secret: str | None) -> TestResponse:
    method, path = route.split(" ")
    path = path.replace("<staff_id>", "0").replace("<mac>", BEACON["mac"])
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    return client.open(path, method=method, headers=headers)


def test_every_route_has_the_role_that_is_listed_here(app: Flask) -> None:
    roles = {name: needed(app.view_functions[rule.endpoint]) for name, rule in routes(app)}
    assert roles == ROLES


def test_an_application_with_a_view_without_a_role_answers_it_to_nobody(app: Flask) -> None:
    app.add_url_rule("/forgotten", "forgotten", lambda: "everything")
    app.testing = False
    assert app.test_client().get("/forgotten").status_code == 500


def test_each_role_gets_what_it_may_and_nothing_else(guarded: Callable[..., Flask]) -> None:
    client = guarded().test_client()
    for route, role in ROLES.items():
        for role_held, secret in SECRETS.items():
            status = ask(client, route, secret).status_code
            assert (status == 403) != role_held.allows(role), (route, role_held)
            assert status not in (401, 500), (route, role_held)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "Bearer ",
        "Bearer ÿþ",
        f"Basic {SECRETS[Role.ADMIN]}",
        f"Bearer {SECRETS[Role.ADMIN][:-1]}",
        f"Bearer {tokens.digest(SECRETS[Role.ADMIN])}",
        "Bearer " + "x" * 30_000,
    ],
    ids=itertools.count(),  # not by their texts: each process of a run has secrets of its own
)
def test_a_stranger_gets_health_and_nothing_else(
    guarded: Callable[..., Flask], header: str | None
) -> None:
    client = guarded().test_client()
    for route, role in ROLES.items():
        method, path = route.split(" ")
        headers = {} if header is None else {"Authorization": header}
        path = path.replace("<staff_id>", "0").replace("<mac>", BEACON["mac"])
        answer = client.open(path, method=method, headers=headers)
        assert (answer.status_code == 401) == (role is not Role.NOBODY), route
        if role is not Role.NOBODY:
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert "token" in answer.get_data(as_text=True)
            assert not header or len(header) < 9 or header not in answer.get_data(as_text=True)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "tokens", {"label": "mine", "role": "admin"}),
        ("PUT", "accounts/eve", {"role": "admin", "password": "correct horse battery"}),
    ],
)
def test_where_access_is_open_nobody_makes_what_would_still_open_it_later(
    app: Flask, database: Database[Any], method: str, path: str, body: dict[str, str]
) -> None:
    collection = database[path.partition("/")[0]]
    before = collection.count_documents({})
    answer = app.test_client().open(f"/api/v1/{path}", method=method, json=body)
    assert answer.status_code == 409
    assert "./scripts/configure" in answer.get_json()["detail"]
    assert collection.count_documents({}) == before


def test_the_scheme_is_read_in_any_case(guarded: Callable[..., Flask]) -> None:
    client = guarded().test_client()
    headers = {"Authorization": f"bEARER {SECRETS[Role.READ]}"}
    answer = client.get("/api/v1/session", headers=headers)
    assert answer.get_json() == {
        "name": "read",
        "kind": "token",
        "role": "read",
        "level": None,
        "team": None,
        "expires_at": None,
    }


def test_revoked_and_expired_tokens_are_refused(
    guarded: Callable[..., Flask], database: Database[dict[str, Any]]
) -> None:
    app = guarded()
    client = app.test_client()
    context: Context = app.extensions["context"]

    def status(role: Role) -> int:
        return ask(client, "GET /api/v1/session", SECRETS[role]).status_code

    assert (status(Role.READ), status(Role.ADMIN)) == (200, 200)
    assert context.access.tokens.revoke(token(Role.READ).token_id, int(time.time()))
    soon = int(time.time()) + 1
    database["tokens"].update_one({"role": "admin"}, {"$set": {"expires_at": soon}})
    context.access.cache.refresh()
    assert status(Role.READ) == 401
    while time.time() < soon:
        time.sleep(0.05)
    assert status(Role.ADMIN) == 401  # at its second, not at the next refresh


def test_a_revocation_is_seen_by_itself(
    guarded: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert access_cache.REFRESH_SECONDS <= 10  # and a page or gateway may remember for 10 s more
    monkeypatch.setattr(access_cache, "REFRESH_SECONDS", 0.05)
    monkeypatch.setattr(access_cache, "UNKNOWN_SECONDS", 0.01)
    app = guarded()
    client = app.test_client()
    context: Context = app.extensions["context"]
    assert ask(client, "GET /api/v1/session", SECRETS[Role.READ]).status_code == 200
    context.access.tokens.revoke(token(Role.READ).token_id, int(time.time()))
    deadline = time.monotonic() + 30
    while ask(client, "GET /api/v1/session", SECRETS[Role.READ]).status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_token_made_at_another_service_is_soon_known(
    guarded: Callable[..., Flask],
    database: Database[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access_cache, "REFRESH_SECONDS", 3600)  # not by its own reading
    client = guarded().test_client()
    secret = tokens.generate()
    new = token(Role.READ, token_id="new", digest=tokens.digest(secret))
    database["tokens"].insert_one(new.document())
    assert ask(client, "GET /api/v1/session", secret).status_code == 401
    deadline = time.monotonic() + 60
    while ask(client, "GET /api/v1/session", secret).status_code == 401:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_whoever_tries_tokens_does_not_make_it_read_again_and_again(
    guarded: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = guarded()
    reads: list[float] = []
    context: Context = app.extensions["context"]
    valid = context.access.tokens.valid

    def counted(now: float) -> list[Token]:
        reads.append(time.monotonic())
        return valid(now)

    monkeypatch.setattr(context.access.tokens, "valid", counted)
    client = app.test_client()
    deadline = time.monotonic() + 60
    while len(reads) < 3:
        assert ask(client, "GET /api/v1/session", tokens.generate()).status_code == 401
        time.sleep(0.02)
        assert time.monotonic() < deadline
    assert all(
        next_ - one >= access_cache.UNKNOWN_SECONDS for one, next_ in itertools.pairwise(reads)
    )


def test_the_last_use_is_noted(
    guarded: Callable[..., Flask], database: Database[dict[str, Any]]
) -> None:
    app = guarded()
    client, context = app.test_client(), app.extensions["context"]
    before = int(time.time())
    ask(client, "GET /api/v1/session", SECRETS[Role.READ])
    context.access.cache.refresh()
    used = {row["role"]: row["last_used_at"] for row in database["tokens"].find()}
    assert used["ingest"] is used["admin"] is None
    assert before <= used["read"] <= time.time()


def test_what_was_known_holds_while_the_database_is_away_also_after_a_restart(
    guarded: Callable[..., Flask], tmp_path: Path
) -> None:
    guarded().extensions["context"].close()
    file = tmp_path / "spool.access.json"
    text = file.read_text()
    assert not any(secret in text for secret in SECRETS.values())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    nowhere = "mongodb://127.0.0.1:1/?replicaSet=embedded"
    app = guarded(mongodb_uri=nowhere, mongodb_timeout_ms=200)
    client = app.test_client()
    detection = "/newbeacondetect?user_address=0&beacon_address=C2A628384B08&rssi=-20"
    headers = {"Authorization": f"Bearer {SECRETS[Role.INGEST]}"}
    assert client.get(detection, headers=headers).status_code == 202
    assert client.get(detection).status_code == 401
    answer = ask(client, "GET /api/v1/system", SECRETS[Role.READ]).get_json()
    assert answer["access"]["required"] is True
    assert answer["access"]["as_of"] == int(file.stat().st_mtime)


@pytest.mark.parametrize("content", [None, "", "{", '{"tokens": [{}]}', "[]"])
def test_who_never_read_a_token_says_so(
    guarded: Callable[..., Flask], tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "spool.access.json").write_text(content)
    nowhere = "mongodb://127.0.0.1:1/?replicaSet=embedded"
    client = guarded(mongodb_uri=nowhere, mongodb_timeout_ms=200).test_client()
    # Neither admitted nor turned away for good: a phone keeps its detection.
    assert ask(client, "POST /newbeacondetect", SECRETS[Role.INGEST]).status_code == 503
    assert ask(client, "GET /api/v1/staff", SECRETS[Role.READ]).status_code == 503
    assert ask(client, "GET /api/v1/staff", None).status_code == 401


def test_legacy_endpoints_alone_can_be_open(guarded: Callable[..., Flask]) -> None:
    client = guarded(waymark_legacy_access="open").test_client()
    legacy = ("newbeacondetect", "extractbeacon", "retrieveformonitoring")
    for route, role in ROLES.items():
        is_open = role is Role.NOBODY or route.split("/")[1] in legacy
        assert (ask(client, route, None).status_code == 401) != is_open, route


def test_the_monitoring_service_has_a_token_of_its_own(
    guarded: Callable[..., Flask], tmp_path: Path
) -> None:
    secret = tokens.generate()
    (tmp_path / "page_token").write_text(f"{secret}\n")
    client = guarded(page_token_file=str(tmp_path / "page_token")).test_client()
    assert ask(client, "GET /api/v1/staff", secret).status_code == 200
    assert ask(client, f"PUT /api/v1/beacons/{BEACON['mac']}", secret).status_code == 403
    assert ask(client, "GET /api/v1/staff", None).status_code == 401


def test_the_first_administrator_needs_no_database(guarded: Callable[..., Flask]) -> None:
    secret = tokens.generate()
    nowhere = "mongodb://127.0.0.1:1/?replicaSet=embedded"
    client = guarded(
        mongodb_uri=nowhere,
        mongodb_timeout_ms=200,
        waymark_admin_token_sha256=tokens.digest(secret),
    ).test_client()
    assert ask(client, "GET /api/v1/session", secret).get_json()["role"] == "admin"
    assert ask(client, "GET /api/v1/session", tokens.digest(secret)).status_code == 503
