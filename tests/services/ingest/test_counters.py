"""Event ids of counters that began anew, without timestamps: nothing lost, and nothing doubled."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo.database import Database

from ingest.assembly import Context
from ingest.recording.outcome import Outcome
from ingest.rules.detection_identity import REUSED_SECONDS, event_key
from ingest.storage.detections import inserts
from ingest.storage.detections.documents import NOWHERE, Document, document

MAC = "C2A628384B08"
NOW = 1_700_000_000
HOUR, LATE = 3600, REUSED_SECONDS + 1


@pytest.fixture
def context(app: Flask) -> Context:
    extension: Context = app.extensions["context"]
    return extension


def heard(at: int, event: str = "1", timestamp: int | None = None) -> Document:
    """Return what is to be stored of one that came in at a time, unix seconds."""
    when = at if timestamp is None else timestamp
    return document(7, NOWHERE, when, -60, MAC, float(at), event_key(event, timestamp))


def stored(context: Context, *times: int) -> list[bool]:
    """Store one after the other; tell of each whether it is new."""
    outcomes = [context.recording.recorder.commit([heard(NOW + at)])[0] for at in times]
    assert set(outcomes) <= {Outcome.STORED, Outcome.DUPLICATE}
    return [outcome is Outcome.STORED for outcome in outcomes]


@pytest.mark.parametrize(
    ("times", "new"),
    [
        ((0, 1, HOUR, REUSED_SECONDS), (1, 0, 0, 0)),
        ((0, LATE, LATE + 1, LATE + HOUR, 1, 0), (1, 1, 0, 0, 0, 0)),
        ((0, LATE, 2 * LATE, 3 * LATE, 2 * LATE + 5, 5), (1, 1, 1, 1, 0, 0)),
        ((3 * LATE, 0, LATE, LATE, 0, 3 * LATE + 1), (1, 1, 1, 0, 0, 0)),  # of a spool, say
    ],
)
def test_a_repeat_is_one_and_a_counter_that_began_anew_is_another(
    context: Context, times: tuple[int, ...], new: tuple[int, ...]
) -> None:
    assert stored(context, *times) == [bool(is_new) for is_new in new]


def test_a_timestamp_that_was_sent_is_repeated_whenever(context: Context) -> None:
    year = 365 * 24 * HOUR
    for at, outcome in ((0, Outcome.STORED), (year, Outcome.DUPLICATE)):
        assert context.recording.recorder.commit([heard(NOW + at, timestamp=NOW - 5)]) == [outcome]


def test_years_of_daily_beginnings(
    context: Context, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inserts, "NAMES", 3)
    days = range(0, 20 * 24 * HOUR, 24 * HOUR)
    assert all(stored(context, *days))
    assert not any(stored(context, *(day + HOUR for day in reversed(days))))
    assert {row["timestamp"] for row in database["staff"].find()} == {NOW + day for day in days}


def test_a_group_has_all_kinds_at_once(context: Context) -> None:
    context.recording.recorder.commit([heard(NOW, event) for event in "abc"])
    late = NOW + LATE
    group = [
        heard(late, "a"),
        heard(NOW, "b"),
        heard(late, "d"),
        heard(late, "c"),
        heard(late, "a"),
    ]
    new, again = Outcome.STORED, Outcome.DUPLICATE
    assert context.recording.recorder.commit(group) == [new, again, new, new, again]


def test_repeats_at_once_are_one(context: Context, database: Database[Any]) -> None:
    stored(context, 0, LATE)
    with ThreadPoolExecutor(8) as pool:
        times = [2 * LATE + n // 2 for n in range(16)]
        new = list(pool.map(lambda at: stored(context, at)[0], times))
    assert sum(new) == 1
    assert database["staff"].count_documents({}) == 3


def test_the_phone_is_told(client: FlaskClient, context: Context, database: Database[Any]) -> None:
    item = {"staff_id": 7, "mac": MAC, "rssi": -60, "event_id": "1"}
    for status, would in (("stored", "would store"), ("duplicate", "duplicate")):
        dry = client.post("/api/v1/detections?dry_run=1", json=item).get_json()
        assert dry["results"][0]["status"] == would
        answer = client.post("/api/v1/detections", json=item).get_json()
        assert answer["results"][0]["status"] == status
    database["staff"].update_one({}, [{"$set": {"timestamp": {"$subtract": ["$timestamp", LATE]}}}])
    body = {"user_address": 7, "beacon_address": MAC, "rssi": -60, "event_id": "1"}
    for outcome in ("stored", "duplicate"):
        answer = client.post("/newbeacondetect", json=body)
        assert (answer.status_code, answer.headers["X-Detection"]) == (200, outcome)
