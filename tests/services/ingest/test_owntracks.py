"""What OwnTracks sends: detections are stored once, all else is counted; the database is real."""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo.database import Database

from ingest import create_app
from ingest.access import tokens
from ingest.assembly import Context
from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.recording.outcome import Outcome
from ingest.recording.recorder import Recorder
from ingest.recording.spool import Spool
from ingest.rules.owntracks import Ignored
from ingest.rules.roles import Role
from ingest.storage.access.tokens import Token
from scripts.processes.waiting import eventually
from tests.services.ingest.conftest import PATIENT_SECONDS
from tests.services.ingest.owntracks_vectors import (
    JANE,
    SEEN,
    STORED_ID,
    VECTORS,
    WHO,
    T,
    basic,
    without,
)

PATH = "/owntracks"
HEADERS = {"X-Limit-U": "jane", "X-Limit-D": "phone", "Content-Type": "application/json"}
SECRET = tokens.generate()


@pytest.fixture
def make(
    mongod: str, database: Database[dict[str, Any]], tmp_path: Path, patience: None
) -> Iterator[Callable[..., Flask]]:
    """Return a function that makes a service with settings of its own."""
    for collection in ("staff", "latest", "notes", "beacons", "tokens"):
        database[collection].delete_many({})
    database["beacons"].insert_one(
        {"_id": f"{STORED_ID}:1:7", "mac": f"{STORED_ID}:1:7", "level": "4", "location": "Lobby"}
    )
    made: list[Context] = []

    def made_with(**settings: Any) -> Flask:
        config = Config(
            mongodb_uri=mongod,
            mongodb_timeout_ms=1000 * PATIENT_SECONDS,
            spool_file=str(tmp_path / f"spool-{len(made)}.db"),
            waymark_owntracks="on",
        )
        app = create_app(replace(config, **settings))
        made.append(app.extensions["context"])
        return app

    yield made_with
    for context in made:
        context.close()


@pytest.fixture
def client(make: Callable[..., Flask]) -> FlaskClient:
    return make().test_client()


def post(client: FlaskClient, body: object, path: str = PATH, **headers: str) -> None:
    """Send a message; the app gets what it needs whatever it was."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.post(
        path, data=text, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )
    assert (answer.status_code, answer.data, answer.mimetype) == (200, b"[]", "application/json")


def counts(client: FlaskClient) -> tuple[int, dict[str, int]]:
    told = client.get("/api/v1/system").get_json()["owntracks"]
    return told["stored"], told["ignored"]


def rows(database: Database[Any]) -> list[tuple[Any, ...]]:
    """Return who was heard at which beacon, how strongly, when and where."""
    names = ("staff_id", "mac", "rssi", "timestamp", "location")
    return [tuple(row[name] for name in names) for row in database["staff"].find()]


@pytest.mark.parametrize("name", VECTORS)
def test_each_message_is_stored_or_counted(
    client: FlaskClient, database: Database[Any], name: str
) -> None:
    case = VECTORS[name]
    for body in case.bodies:
        post(client, body, **HEADERS)
    assert sorted(rows(database), key=str) == sorted(case.rows, key=str)
    ignored = sum(case.ignored.values())
    assert counts(client) == (len(case.bodies) - ignored, case.ignored)


def test_where_somebody_is_now_is_the_newest_by_time(client: FlaskClient) -> None:
    for body in VECTORS["V-OT-8 an older time"].bodies:
        post(client, body)

    def now() -> list[tuple[int, str]]:
        people = client.get("/api/v1/staff").get_json()["data"]
        return [(person["timestamp"], person["mac"]) for person in people]

    assert eventually(now) == [(T, f"{STORED_ID}:1:7")]
    history = client.get("/api/v1/staff/jane/detections").get_json()["data"]
    assert [row["timestamp"] for row in history] == [T, T - 60]


@pytest.mark.parametrize(
    ("topic", "query", "header", "user", "staff_id"),
    [who[1:] for who in WHO],
    ids=[who[0] for who in WHO],
)
def test_a_person_is_named_in_this_order(
    client: FlaskClient,
    database: Database[Any],
    topic: dict[str, object],
    query: str,
    header: str,
    user: str,
    staff_id: object,
) -> None:
    headers = ({"X-Limit-U": header} if header else {}) | (basic(user, "") if user else {})
    post(client, without("topic") | topic, PATH + query, **headers)
    assert [row[0] for row in rows(database)] == ([] if staff_id is None else [staff_id])
    assert counts(client)[1] == ({"no staff id": 1} if staff_id is None else {})


def test_two_devices_of_a_person_are_two_detections(
    client: FlaskClient, database: Database[Any]
) -> None:
    devices = ["phone", "pad", "\ud800", "", "d" * 4000]
    for device in devices * 2:
        post(client, without(topic=f"owntracks/jane/{device}"))
    for body, path, header in (
        (without("topic"), f"{PATH}?d=by-query", {}),
        (without("topic"), f"{PATH}?d=by-query", {"X-Limit-D": "by-header"}),
        (SEEN, f"{PATH}?d=by-query", {"X-Limit-D": "PHONE"}),  # the topic says so
        (without(topic="owntracks/JANE/Phone/beacon"), PATH, {}),
    ):
        post(client, body, path, **{"X-Limit-U": "jane"} | header)
    assert len(rows(database)) == len(devices) + 2


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "nonsense"]
)
def test_the_type_of_the_body_does_not_matter(
    client: FlaskClient, database: Database[Any], kind: str
) -> None:
    post(client, SEEN, **{"Content-Type": kind})
    assert rows(database) == [JANE]


def test_what_mongodb_refuses_is_counted_and_never_sent_again(client: FlaskClient) -> None:
    async def refuse(*_: object) -> list[Outcome]:
        return [Outcome.REJECTED]

    with patch.object(Recorder, "submit", refuse):
        post(client, SEEN)
    assert counts(client) == (0, {"refused": 1})


def test_the_phone_keeps_what_can_be_stored_nowhere(
    make: Callable[..., Flask], database: Database[Any]
) -> None:
    client = make(
        mongodb_uri="mongodb://127.0.0.1:1/?replicaSet=x", mongodb_timeout_ms=300
    ).test_client()
    post(client, SEEN)  # the spool has it
    with patch.object(Spool, "append", side_effect=StoreUnavailable("the spool is full")):
        answer = client.post(PATH, json=without(minor=9))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert "nothing was stored" in answer.text
    assert counts(client) == (1, {})
    assert rows(database) == []


def test_it_is_off_unless_it_is_switched_on(make: Callable[..., Flask]) -> None:
    client = make(waymark_owntracks="off").test_client()
    nothing = client.post("/nothing", json=SEEN)
    answer = client.post(PATH, json=SEEN)
    assert (answer.status_code, answer.data) == (404, nothing.data)
    assert client.get("/api/v1/system").get_json()["owntracks"] is None
    assert PATH not in client.get("/api/v1/openapi.json").get_json()["paths"]
    assert Config().waymark_owntracks == "off"


@pytest.fixture
def guarded(make: Callable[..., Flask], database: Database[Any]) -> FlaskClient:
    """Return a service that requires tokens, and knows one of a phone."""
    digest = tokens.digest(SECRET)
    token = Token(digest[:8], digest, "phones", Role.INGEST, T)
    database["tokens"].insert_one(token.document())
    return make(waymark_access="required", waymark_legacy_access="open").test_client()


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"Authorization": f"Bearer {SECRET}"}, "", 200),
        (basic("jane", SECRET), "", 200),
        (basic("", SECRET), "", 200),
        ({}, f"?token={SECRET}", 200),
        ({}, f"?u=jane&token={SECRET}&token=x", 200),
        (basic("jane", ""), f"?token={SECRET}", 200),
        ({}, "", 401),
        ({}, "?token=", 401),
        ({}, f"?token={SECRET[:-1]}", 401),
        (basic("jane", SECRET[:-1]), f"?token={SECRET}", 401),
        (basic(SECRET, "jane"), "", 401),
        ({"Authorization": f"Basic {SECRET}"}, "", 401),
        ({"Authorization": "Basic ÿþ"}, "", 401),
        ({"Authorization": f"Bearer {SECRET}x"}, f"?token={SECRET}", 401),
        ({"Cookie": f"waymark_session={SECRET}"}, "", 401),
    ],
    ids=itertools.count(),  # not by their texts: each process of a run has a secret of its own
)
def test_a_token_comes_in_one_of_three_ways(
    guarded: FlaskClient, headers: dict[str, str], query: str, status: int
) -> None:
    answer = guarded.post(PATH + query, json=SEEN, headers=headers)
    assert answer.status_code == status
    assert SECRET not in answer.text + str(answer.headers)


def test_two_of_these_ways_mean_nothing_elsewhere(guarded: FlaskClient) -> None:
    for path in ("/api/v1/detections", "/api/v1/system"):
        method = "POST" if "detections" in path else "GET"
        for headers, query in ((basic("jane", SECRET), ""), ({}, f"?token={SECRET}")):
            answer = guarded.open(path + query, method=method, headers=headers)
            assert answer.status_code == 401


def test_there_is_a_fixed_number_of_reasons() -> None:
    told = {reason for case in VECTORS.values() for reason in case.ignored}
    assert told | {"too large", "no staff id", "refused"} == {reason.value for reason in Ignored}
