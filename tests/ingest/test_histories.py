"""Kept histories against a model that keeps nothing: two services, one database."""

import gzip
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from bson import ObjectId
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymongo.database import Database

from ingest.context import Store
from ingest.histories import cache as histories
from ingest.histories.cache import Answer, Histories
from ingest.rules.parameters import TimeRange

NOW = 1_700_000_000
LATER = 4_102_444_800
PLACES = [("1", "Lobby A"), ("B2", 'A "quoted" \\ café\n'), (None, None)]


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["store"]
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "BLOCK_ROWS", 4)  # a few rows make many blocks


def add(store: Store, timestamps: list[int], *, seen: bool = True, staff_id: int = 1) -> None:
    """Store detections, as a commit does; not yet seen is what died before its note."""
    documents = [
        {"_id": ObjectId(), "staff_id": staff_id, "timestamp": timestamp, "received_at": None}
        | dict(zip(("level", "location"), PLACES[timestamp % len(PLACES)], strict=True))
        | {"mac": "A" * 12, "rssi": -1}
        for timestamp in timestamps
    ]
    store.detections.store(documents)
    if seen:
        store.latest.bump(documents)


def told(answer: Answer) -> list[dict[str, Any]]:
    """Return what an answer says, having compared its compressed form with the other."""
    text = b"".join(answer.text())
    assert gzip.decompress(answer.gzip()) == text
    assert len(text) == answer.length
    found: list[dict[str, Any]] = json.loads(text)["location"]
    return found


def naive(store: Store, wanted: TimeRange) -> list[dict[str, Any]]:
    return list(store.detections.list_between(wanted))


STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(st.integers(0, 60), min_size=1, max_size=9)),
    st.tuples(st.just("many commits"), st.integers(20, 40)),
    st.tuples(st.just("edit"), st.integers(0, 60)),
    st.tuples(st.just("ask"), st.integers(0, 60), st.integers(0, 60), st.integers(0, 1)),
    st.tuples(st.just("ask"), st.integers(0, 60), st.just(LATER), st.integers(0, 1)),
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(STEPS, min_size=3, max_size=14))
def test_every_answer_is_what_the_database_holds(
    store: Store, database: Database[Any], small: None, steps: list[Any]
) -> None:
    for collection in ("staff", "latest"):
        database[collection].delete_many({})
    services = [Histories(store.detections, store.latest) for _ in range(2)]
    for step in steps:
        if step[0] == "add":
            add(store, step[1])
        elif step[0] == "many commits":
            for number in range(step[1]):
                store.latest.bump([*database["staff"].find({"staff_id": 1}).limit(1)])
                if number == 0:
                    add(store, [number])
        elif step[0] == "edit":
            edit = {"$set": {"location": f"edited {step[1]}"}}
            database["staff"].update_many({"staff_id": 1, "timestamp": step[1]}, edit)
            store.latest.rewrite({1: store.detections.newest(1, 8)})
        else:
            wanted = TimeRange(1, min(step[1:3]), max(step[1:3]))
            # The clock stands at the events, so that some windows are old and some are live.
            answer = services[step[3]].between(wanted, histories.KEPT_AGE_SECONDS + 30)
            assert told(answer) == naive(store, wanted)


def test_only_what_changed_is_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    add(store, list(range(100)))
    reads: list[tuple[int, int]] = []
    list_between = store.detections.list_between

    def counted(wanted: TimeRange) -> Iterator[dict[str, Any]]:
        reads.append((wanted.start, wanted.end))
        return list_between(wanted)

    monkeypatch.setattr(store.detections, "list_between", counted)
    window = TimeRange(1, 50, LATER)
    first = store.histories.between(window, NOW)
    again = store.histories.between(window, NOW)
    assert (first.etag, len(reads)) == (again.etag, 1)
    add(store, [100])
    assert len(told(store.histories.between(window, NOW))) == 51
    assert reads[1:] == [(100, 253_402_300_799)]
    assert store.histories.between(window, NOW).etag != first.etag
    assert len(told(store.histories.between(TimeRange(1, 40, LATER), NOW))) == 61
    assert reads[2:] == [(40, 49)]


def test_a_history_without_a_version_is_right_as_well(
    store: Store, database: Database[Any]
) -> None:
    add(store, [1, 2, 3])
    window = TimeRange(1, 0, LATER)
    assert len(told(store.histories.between(window, NOW))) == 3
    database["latest"].delete_many({})  # an older database
    add(store, [4], seen=False)
    answer = store.histories.between(window, NOW)
    assert (len(told(answer)), answer.etag) == (4, None)
    add(store, [5])  # the first commit of this version of the service
    assert len(told(store.histories.between(window, NOW))) == 5


def test_an_older_copy_of_the_database_is_not_mistaken_for_a_newer_one(
    store: Store, database: Database[Any]
) -> None:
    for timestamp in range(5):
        add(store, [timestamp])
    window = TimeRange(1, 0, LATER)
    assert len(told(store.histories.between(window, NOW))) == 5
    database["staff"].delete_many({"timestamp": {"$gte": 2}})  # restored from a backup
    database["latest"].update_one({}, {"$set": {"version": 2, "changes": [0, 1]}})
    assert len(told(store.histories.between(window, NOW))) == 2


def test_what_is_kept_stays_within_its_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "KEPT_BYTES", 200_000)
    for staff_id in range(8):
        add(store, list(range(5000)), staff_id=staff_id)
    for staff_id in range(8):
        assert len(told(store.histories.between(TimeRange(staff_id, 0, LATER), NOW))) == 5000
    kept = store.histories._kept
    assert 1 <= len(kept) < 8
    assert sum(history.size for history in kept.values()) <= 200_000
    assert 7 in kept


def test_readers_at_once_are_all_told_the_truth(store: Store, small: None) -> None:
    add(store, list(range(200)))
    wrong: list[object] = []
    acknowledged = 200

    def read() -> None:
        for start in range(0, 200, 20):
            window = TimeRange(1, start, LATER)
            least = acknowledged - start
            found = told(store.histories.between(window, NOW))
            if not least <= len(found) or found != naive(store, window)[-len(found) :]:
                wrong.append(found)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        add(store, [acknowledged])
        acknowledged += 1
    for thread in threads:
        thread.join()
    assert wrong == []
