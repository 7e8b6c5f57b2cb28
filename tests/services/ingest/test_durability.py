"""Stored once, or not acknowledged."""

import time
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from pymongo.database import Database

from ingest import create_app
from ingest.config import Config
from ingest.rules.request_parameters import EARLIEST
from scripts.processes.ports import free_port

GOOD = {"user_address": "0", "beacon_address": "C2A628384B08", "rssi": "-20"}


def send(client: FlaskClient, headers: dict[str, str] | None = None, **more: object) -> int:
    answer = client.post("/newbeacondetect", json=GOOD | more, headers=headers)
    return answer.status_code


@pytest.mark.parametrize(
    ("first", "second", "stored"),
    [
        ({"event_id": "a"}, {"event_id": "a"}, 1),
        ({"event_id": "a", "timestamp": EARLIEST}, {"event_id": "a", "timestamp": EARLIEST}, 1),
        ({"event_id": "a"}, {"event_id": "b"}, 2),
        ({"event_id": "a", "user_address": 1}, {"event_id": "a", "user_address": 2}, 2),
        ({"event_id": "scan"}, {"event_id": "scan", "beacon_address": "A" * 12}, 2),
        ({"timestamp": EARLIEST}, {"timestamp": EARLIEST}, 2),
        ({}, {}, 2),
    ],
)
def test_a_repeated_event_is_stored_once(
    client: FlaskClient, database: Database[Any], first: Any, second: Any, stored: int
) -> None:
    assert [send(client, **first), send(client, **second)] == [200, 200]
    assert database["staff"].count_documents({}) == stored


def test_the_gateways_retry_is_stored_once(client: FlaskClient, database: Database[Any]) -> None:
    began = time.time() - 2.5  # the retry comes seconds later, with the same two headers
    headers = {"X-Request-ID": "6f2c", "X-Request-Start": f"{began:.3f}"}
    assert [send(client, headers), send(client, headers)] == [200, 200]
    assert send(client, {"X-Request-ID": "6f2d", "X-Request-Start": f"{began:.3f}"}) == 200
    assert database["staff"].count_documents({}) == 2


@pytest.mark.parametrize("path", ["/newbeacondetect", "/api/v1/detections"])
@pytest.mark.parametrize("seconds_ahead", [-3600, 3600, 10**12])
def test_the_retry_of_a_gateway_with_a_wrong_clock_is_stored_once(
    client: FlaskClient, database: Database[Any], path: str, seconds_ahead: int
) -> None:
    stamp = f"{time.time() + seconds_ahead:.3f}"
    headers = {"X-Request-ID": "6f2c", "X-Request-Start": stamp}
    body = {"staff_id": 7, "user_address": 7, "mac": "C2A628384B08", "rssi": -20}
    body["beacon_address"] = body["mac"]
    assert client.post(path, json=body, headers=headers).status_code == 200
    time.sleep(1.01)  # our own clock shows another second
    assert client.post(path, json=body, headers=headers).status_code == 200
    assert database["staff"].count_documents({}) == 1


@pytest.mark.parametrize("stamp", ["soon", "nan", "0", "99999999999"])
def test_a_false_receive_time_is_not_believed(
    client: FlaskClient, database: Database[Any], stamp: str
) -> None:
    assert send(client, {"X-Request-Start": stamp}) == 200
    (document,) = database["staff"].find()
    assert abs(document["timestamp"] - time.time()) < 5


def test_without_database_detections_wait_and_reads_fail_at_once(tmp_path: Path) -> None:
    nowhere = f"mongodb://127.0.0.1:{free_port()}/"
    spool = str(tmp_path / "spool.db")
    app = create_app(Config(mongodb_uri=nowhere, mongodb_timeout_ms=8000, spool_file=spool))
    client = app.test_client()
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 503
    url = "/newbeacondetect?user_address=0&beacon_address=C2A628384B08&rssi=-20"
    answer = client.get(url)
    assert (answer.status_code, answer.text) == (202, "New Beacon Detection Added")
    assert answer.headers["X-Detection"] == "queued"
    for path in ("/extractbeacon?staff_id=0&start_time=0&end_time=1", "/retrieveformonitoring"):
        began = time.monotonic()
        answer = client.get(path)
        assert time.monotonic() - began < 6  # to ask the database would take 8 s
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
        assert "does not answer" in answer.get_json()["error"]
    app.extensions["context"].close()


def test_a_history_never_leaves_its_index(client: FlaskClient, database: Database[Any]) -> None:
    query = {"staff_id": 0, "timestamp": {"$gte": 0, "$lte": 10}}
    fields = {"_id": 0, "level": 1, "location": 1, "timestamp": 1}
    plan = database["staff"].find(query, fields).sort("timestamp", -1).explain()
    assert plan["executionStats"]["totalDocsExamined"] == 0
    assert "SORT" not in str(plan["queryPlanner"]["winningPlan"])
