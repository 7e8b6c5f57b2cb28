"""Thousands of requests made from the document against the real service, and what they leave."""

import contextlib
import datetime
import http.client
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from bson import ObjectId
from pymongo import MongoClient
from pymongo.database import Database

from common.beacon_id import STORED
from common.log_lines import FRAME
from ingest.api.openapi import document
from tests.service import Service
from tests.services.ingest.api import contract
from tests.services.ingest.api.garbage import Case, Garbage

CASES = 7500
SEEDS = (1, 2)
BEACON = re.compile(STORED)
STAFF_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
ACCOUNT = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")


@pytest.fixture(scope="module")
def database(mongod: str) -> Iterator[Database[dict[str, Any]]]:
    with MongoClient[dict[str, Any]](mongod) as client:
        for name in ("staff", "latest", "notes", "beacons", "accounts", "tokens"):
            client["ICT3102"][name].delete_many({})
        yield client["ICT3102"]


@pytest.fixture(scope="module")
def service(
    database: Database[Any], mongod: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    service = Service(
        mongod, tmp_path_factory.mktemp("fuzz"), WAYMARK_OWNTRACKS="on", PLAN_ORIGIN="1.377 103.8"
    )
    service.start()
    try:
        yield service
    finally:
        service.kill()


def fuzz(port: int, seed: int) -> Counter[int]:
    garbage = Garbage(json.loads(json.dumps(document.document())), seed)
    statuses: Counter[int] = Counter()
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    ) as connection:
        for _ in range(CASES // len(SEEDS)):
            case = garbage.case()
            status, kind, body = answered(connection, case)
            statuses[status] += 1
            try:
                contract.check(case.method, case.target.partition("?")[0], status, kind, body)
            except Exception as error:
                raise AssertionError(f"{case} was answered {status} {body[:500]!r}") from error
    return statuses


def answered(connection: http.client.HTTPConnection, case: Case) -> tuple[int, str, bytes]:
    for attempt in range(5):
        try:
            return send(connection, case)
        except (http.client.HTTPException, ConnectionError):
            # The service closes after some refusals, and while a body that is too large still
            # comes: then its answer may be lost on the way.
            connection.close()
            assert attempt < 4, case
    raise AssertionError


def send(connection: http.client.HTTPConnection, case: Case) -> tuple[int, str, bytes]:
    headers = case.headers | {"Sec-Waymark-Gateway": "1"}
    if case.body is not None:
        headers = headers | {"Content-Length": str(len(case.body))}
    connection.putrequest(case.method, case.target, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value.encode("latin-1"))
    connection.endheaders()
    if case.body:
        with contextlib.suppress(ConnectionError):
            connection.send(case.body)
    answer = connection.getresponse()
    body = answer.read()
    return answer.status, answer.headers.get_content_type() if body else "", body


@pytest.mark.long
def test_every_answer_is_declared_whatever_comes(service: Service) -> None:
    with ThreadPoolExecutor() as threads:
        counts = list(threads.map(lambda seed: fuzz(service.port, seed), SEEDS))
    statuses = sum(counts, Counter[int]())
    assert statuses.total() == CASES
    # Else it found nothing to do.
    assert min(statuses[status] for status in (200, 204, 304, 400, 404, 413, 415)) >= 3, statuses
    assert service.get("/readyz").status_code == 200
    assert FRAME not in service.log, service.log


@pytest.mark.long
def test_nothing_strange_was_stored(service: Service, database: Database[Any]) -> None:
    staff = list(database["staff"].find())
    assert len(staff) > 5  # what was not forgotten since
    for row in staff:
        check_detection(row)
    beacons = list(database["beacons"].find())
    assert len(beacons) > 5
    for beacon in beacons:
        check_beacon(beacon)
    for account in database["accounts"].find({"_id": {"$ne": "."}}):
        assert ACCOUNT.fullmatch(account["_id"])
        assert account["role"] in ("read", "admin")
        assert account["hash"].startswith("$argon2id$v=19$m=7168,t=5,p=1$")
    for token in database["tokens"].find():
        assert re.fullmatch("[0-9a-f]{64}", token["digest"])
        check_name(token["label"])
        assert token["role"] in ("ingest", "read", "admin")
    for row in database["latest"].find():
        check_staff_id(row["_id"])
        assert row["version"] >= 1
        assert 1 <= len(row["recent"]) <= 8
        stored = {detection["_id"] for detection in staff if detection["staff_id"] == row["_id"]}
        assert {detection["id"] for detection in row["recent"]} <= stored


def check_detection(one: dict[str, Any]) -> None:
    now = time.time()
    names = {"_id", "staff_id", "mac", "rssi", "timestamp", "level", "location", "received_at"}
    assert set(one) - {"heard"} == names | {"stored"}
    assert one.get("heard", 0) < now + 2
    assert now - 600 < one["stored"].time < now + 60
    assert type(one["_id"]) is ObjectId
    check_staff_id(one["staff_id"])
    assert BEACON.fullmatch(one["mac"])
    assert one["rssi"] is None or (type(one["rssi"]) is int and -127 <= one["rssi"] <= 20)
    assert type(one["timestamp"]) is int
    assert 0 <= one["timestamp"] <= now + 86_401
    received_at = one["received_at"].replace(tzinfo=datetime.UTC).timestamp()
    assert now - 600 < received_at < now + 2
    check_name(one["level"])
    check_name(one["location"])


def check_beacon(one: dict[str, Any]) -> None:
    assert set(one) - {"position", "registered_at"} == {"_id", "mac", "level", "location"}
    assert one.get("registered_at", 0) < time.time() + 2
    assert one["_id"] == one["mac"]
    assert BEACON.fullmatch(one["mac"])
    check_name(one["level"])
    check_name(one["location"])
    for axis, metres in one.get("position", {}).items():
        assert axis in ("x", "y")
        assert abs(metres) <= 1e6


def check_staff_id(staff_id: object) -> None:
    if isinstance(staff_id, int) and not isinstance(staff_id, bool):
        assert 0 <= staff_id < 2**53
    else:
        assert isinstance(staff_id, str)
        assert STAFF_ID.fullmatch(staff_id)
        assert not (
            staff_id.isdecimal() and str(int(staff_id)) == staff_id and int(staff_id) < 2**53
        )


def check_name(name: object) -> None:
    assert isinstance(name, str)
    assert 1 <= len(name) <= 64
    assert re.sub("[\u200c\u200d]", "", name).isprintable()  # joiners belong to scripts
