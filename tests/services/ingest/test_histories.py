"""Cached histories against a model that caches nothing: two services, one database."""

import gzip
import json
import random
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from bson import ObjectId, Timestamp
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymongo.database import Database

from ingest.api.histories import staff_detections
from ingest.assembly import Context
from ingest.errors import StoreUnavailable
from ingest.histories import blocks, last_minutes, long_reads
from ingest.histories import read_through_cache as cache
from ingest.histories import time_window as window
from ingest.histories.read_through_cache import Histories
from ingest.histories.time_window import Window
from ingest.recording.outcome import Outcome
from ingest.rules.request_parameters import TimeRange
from ingest.storage.database.indexes import BY_STAMP_OF_STAFF
from ingest.storage.detections import stamps, states
from ingest.storage.detections.stamps import RENEWED, SETTLE_SECONDS
from ingest.storage.detections.states import States
from ingest.storage.people.latest import Latest
from scripts.processes.waiting import eventually
from tests.loops import run
from tests.reads import EXTRACT

NOW = 1_700_000_000
LATER = 4_102_444_800
PATIENCE_SECONDS = 60
PLACES = [("1", "Lobby A"), ("B2", 'A "quoted" \\ café\n'), ("unknown", "unknown")]


@pytest.fixture
def context(app: Flask) -> Context:
    extension: Context = app.extensions["context"]
    return extension


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (blocks, long_reads, window):
        monkeypatch.setattr(module, "BLOCK_ROWS", 4)  # a few rows make many blocks
    monkeypatch.setattr(long_reads, "PIECE", 3)  # a second may have more


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows by each history that is read whole."""
    calls: list[Any] = []

    def read_blocks(*arguments: Any) -> Any:
        calls.append(arguments)
        return long_reads.read_blocks(*arguments)

    monkeypatch.setattr(cache, "read_blocks", read_blocks)
    return calls


def add(context: Context, timestamps: list[int], *, staff_id: int = 1) -> None:
    """Store detections."""
    documents = [
        {"_id": ObjectId(), "staff_id": staff_id, "timestamp": timestamp, "received_at": None}
        | dict(zip(("level", "location"), PLACES[(timestamp + n) % len(PLACES)], strict=True))
        | {"mac": "A" * 12, "rssi": -1}
        for n, timestamp in enumerate(timestamps)
    ]
    context.recording.recorder.record(documents)


def read(histories: Histories, wanted: TimeRange, now: float = NOW) -> Window:
    """Read a window; again when the database was too slow, as the clients of a 503 do."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return run(histories.window(wanted, now))
        except StoreUnavailable:
            if time.monotonic() > until:
                raise


def rows(window: Window) -> list[dict[str, Any]]:
    """Return the rows of a window, having compared its compressed form with the other."""
    if window.is_long:  # it is there once
        text = gzip.decompress(b"".join(window.gzip_pieces()))
    else:
        text = b"".join(window.text())
        assert gzip.decompress(b"".join(window.gzip())) == text
        assert len(text) == window.length
    detections: list[dict[str, Any]] = json.loads(text)["location"]
    return detections


def naive(context: Context, wanted: TimeRange) -> list[dict[str, Any]]:
    return [
        {"level": level, "location": location, "timestamp": timestamp}
        for timestamp, level, location in context.histories.detections.list_between(wanted)
    ]


def late(context: Context, database: Database[Any], timestamp: int, seconds: int) -> None:
    """Store a detection that was stamped some seconds before it was committed."""
    newest = database["staff"].find_one({"staff_id": 1}, sort=[("stored", -1)])
    stamp = newest["stored"] if newest else Timestamp(int(time.time()), 1)
    before = Timestamp(stamp.time - seconds, random.getrandbits(31))
    place = dict(zip(("level", "location"), PLACES[0], strict=True))
    row = {"_id": ObjectId(), "staff_id": 1, "timestamp": timestamp, "mac": "A" * 12, "rssi": -1}
    database["staff"].insert_one(row | place | {"received_at": None, "stored": before})


def settle(database: Database[Any]) -> None:
    """Let all that is stored be older by an hour, as if that had gone by."""
    for row in database["staff"].find():
        stamp = Timestamp(row["stored"].time - 3600, row["stored"].inc)
        database["staff"].update_one({"_id": row["_id"]}, {"$set": {"stored": stamp}})


def let_a_minute_pass(service: Histories) -> None:
    """Let all that is cached have been counted long ago."""
    for history in service._cached.values():
        history.counted_at -= window.COUNT_SECONDS
    for cached in service._windows.values():
        cached.counted_at -= window.COUNT_SECONDS


STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(st.integers(0, 60), min_size=1, max_size=9)),
    st.tuples(st.just("much"), st.integers(5, 30)),
    st.tuples(st.just("settle")),
    st.tuples(st.just("note")),
    st.tuples(st.just("late"), st.integers(0, 60), st.integers(0, SETTLE_SECONDS - 1)),
    st.tuples(st.just("edit"), st.integers(0, 60)),
    st.tuples(st.just("delete"), st.integers(0, 60), st.integers(0, 60)),
    st.tuples(st.just("ask"), st.integers(0, 60), st.integers(0, 60), st.integers(0, 1)),
    st.tuples(st.just("ask"), st.integers(0, 60), st.just(LATER), st.integers(0, 1)),
)


@pytest.mark.parametrize("long_bytes", [cache.LONG_BYTES, 1500])  # some five blocks
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, min_size=3, max_size=14))
def test_every_answer_is_what_the_database_holds(
    context: Context,
    database: Database[Any],
    small: None,
    monkeypatch: pytest.MonkeyPatch,
    long_bytes: int,
    steps: list[Any],
) -> None:
    monkeypatch.setattr(cache, "LONG_BYTES", long_bytes)
    for collection in ("staff", "latest", "notes"):
        database[collection].delete_many({})
    services = [
        Histories(
            context.histories.detections, context.histories.states, lambda: None, lambda _: None
        )
        for _ in range(2)
    ]
    for step in steps:
        if step[0] == "add":
            add(context, step[1])
        elif step[0] == "much":
            for number in range(step[1]):
                add(context, [number])
        elif step[0] == "settle":
            settle(database)
        elif step[0] == "note":
            context.people.notes.bring_up()
        elif step[0] == "edit":
            edit = {"$set": {"location": f"edited {step[1]}"}} | RENEWED
            database["staff"].update_many({"staff_id": 1, "timestamp": step[1]}, edit)
        elif step[0] == "delete":
            gone = {"staff_id": 1, "timestamp": {"$gte": min(step[1:]), "$lte": max(step[1:])}}
            database["staff"].delete_many(gone)
            for service in services:
                let_a_minute_pass(service)
        elif step[0] == "late":
            late(context, database, step[1], step[2])
        else:
            wanted = TimeRange(1, min(step[1:3]), max(step[1:3]))
            # The clock stands at the events, so that some windows are old and some are live.
            history = read(services[step[3]], wanted, cache.CACHED_AGE_SECONDS + 30)
            assert rows(history) == naive(context, wanted)
    for service in services:
        service.close()


def test_what_another_hand_deletes_is_told_no_longer(
    client: FlaskClient, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here at once, with no minute of grace: the oldest, as a TTL index does it, and others."""
    now = int(time.time())
    for age in range(20, 320, 20):
        heard = {"user_address": 7, "beacon_address": "C2A628384B08", "rssi": -20}
        client.post("/newbeacondetect", json=heard | {"timestamp": now - age})
    paths = [EXTRACT + "7", "/retrieveformonitoring", "/api/v1/staff/7/detections"]
    tags = dict.fromkeys(paths, "")
    for gone, left in [({}, 15), ({"$lt": now - 230}, 11), ({"$in": [now - 60, now - 100]}, 9)]:
        if gone:
            assert database["staff"].delete_many({"timestamp": gone}).deleted_count
            for module in (cache, last_minutes):
                monkeypatch.setattr(module, "COUNT_SECONDS", 0)
            monkeypatch.setattr(staff_detections, "TAG_SECONDS", left)  # another turn
        for path in paths:
            answer = client.get(path, headers={"If-None-Match": tags[path]})
            assert answer.status_code == 200
            [detections] = [
                value for value in answer.get_json().values() if isinstance(value, list)
            ]
            assert len(detections) == left, path
            tags[path] = answer.headers["ETag"]


def test_a_history_of_which_nothing_is_gone_is_counted_and_kept(
    context: Context, reads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    count = context.histories.detections.count

    def counted(*arguments: Any) -> int:
        counts.append(count(*arguments))
        return counts[-1]

    monkeypatch.setattr(context.histories.detections, "count", counted)
    add(context, list(range(100)))
    wanted = TimeRange(1, 50, LATER)
    for _ in range(2):
        for _ in range(3):
            assert len(rows(read(context.histories.cache, wanted))) == 50
        let_a_minute_pass(context.histories.cache)
    add(context, [100])
    assert len(rows(read(context.histories.cache, wanted))) == 51
    assert (counts, len(reads)) == ([50, 51], 1)


def test_only_what_changed_is_read_again(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    add(context, list(range(100)))
    reads: list[tuple[int, int]] = []
    for name in ("list_between", "times_by_place"):
        read_rows = getattr(context.histories.detections, name)

        def counted(wanted: TimeRange, *more: Any, read_rows: Any = read_rows) -> Any:
            reads.append((wanted.start, wanted.end))
            return read_rows(wanted, *more)

        monkeypatch.setattr(context.histories.detections, name, counted)
    wanted = TimeRange(1, 50, LATER)
    first = read(context.histories.cache, wanted)
    again = read(context.histories.cache, wanted)
    assert (first.etag, len(reads)) == (again.etag, 1)
    add(context, [100])
    assert len(rows(read(context.histories.cache, wanted))) == 51
    assert reads[1:] == [(100, 253_402_300_799)]
    assert read(context.histories.cache, wanted).etag != first.etag
    assert len(rows(read(context.histories.cache, TimeRange(1, 40, LATER)))) == 61
    assert reads[2:] == [(40, 49)]


def test_a_long_history_is_read_in_pieces_of_whole_seconds(
    context: Context, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_reads, "PIECE", 100)
    read_times, limits = context.histories.detections.times_by_place, set()

    def counted(wanted: TimeRange, limit: int, as_of: Any) -> Any:
        limits.add(limit)
        return read_times(wanted, limit, as_of)

    monkeypatch.setattr(context.histories.detections, "times_by_place", counted)
    add(context, [*range(250), *[250] * 130, *range(251, 300)])
    database["staff"].update_one(
        {"timestamp": 7}, {"$unset": {"level": 1}, "$set": {"location": 5}}
    )
    database["staff"].update_one(
        {"timestamp": 8}, {"$set": {"timestamp": 8.5}}
    )  # an older database
    wanted = TimeRange(1, 0, LATER)
    detections = rows(read(context.histories.cache, wanted))
    assert detections == naive(context, wanted)
    assert len(detections) == 429
    assert {"level": "unknown", "location": "5", "timestamp": 7} in detections
    assert limits == {100}  # also for the second that has more


def test_a_window_that_ended_long_ago_has_a_name_and_is_cached_alone(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(context, [1, 2, 3, 2000])
    reads: list[TimeRange] = []
    read_times = context.histories.detections.times_by_place

    def counted(wanted: TimeRange, *more: Any) -> Any:
        reads.append(wanted)
        return read_times(wanted, *more)

    monkeypatch.setattr(context.histories.detections, "times_by_place", counted)
    old, later = TimeRange(1, 0, 1000), 1000 + 2 * cache.CACHED_AGE_SECONDS
    first, again = (read(context.histories.cache, old, later) for _ in range(2))
    assert len(rows(first)) == 3
    assert first.etag
    assert first.etag == again.etag
    assert reads == [old]  # not the history up to now
    add(context, [4])  # a phone's late backlog
    after = read(context.histories.cache, old, later)
    assert len(rows(after)) == 4
    assert after.etag != first.etag


def test_a_history_without_stamps_is_right_as_well(
    context: Context, database: Database[Any]
) -> None:
    add(context, [1, 2, 3])
    wanted = TimeRange(1, 0, LATER)
    assert len(rows(read(context.histories.cache, wanted))) == 3
    database["staff"].update_many({}, {"$unset": {"stored": 1}})  # an older database
    answer = read(context.histories.cache, wanted)
    assert (len(rows(answer)), answer.etag) == (3, None)
    add(context, [5])  # the first commit of this release
    assert len(rows(read(context.histories.cache, wanted))) == 4
    database["staff"].update_many({}, {"$unset": {"stored": 1}})
    context.recording.back_fill.fill()
    answer = read(context.histories.cache, wanted)
    assert len(rows(answer)) == 4
    assert answer.etag


def test_an_older_copy_of_the_database_is_not_mistaken_for_a_newer_one(
    context: Context, database: Database[Any]
) -> None:
    for timestamp in range(5):
        add(context, [timestamp])
    wanted = TimeRange(1, 0, LATER)
    assert len(rows(read(context.histories.cache, wanted))) == 5
    database["staff"].delete_many({"timestamp": {"$gte": 2}})  # restored from a backup
    assert len(rows(read(context.histories.cache, wanted))) == 2


def test_a_commit_that_came_too_late_is_found_when_it_is_acknowledged(
    context: Context, database: Database[Any]
) -> None:
    add(context, [1, 2, 3])
    wanted = TimeRange(1, 0, LATER)
    assert len(rows(read(context.histories.cache, wanted))) == 3
    assert len(context.people.last_positions.read().staff) == 1
    late(context, database, 4, SETTLE_SECONDS + 60)  # nobody waited for it any more
    (row,) = database["staff"].find({"timestamp": 4})
    assert (
        len(rows(read(context.histories.cache, wanted))) == 3
    )  # it is not seen: the hazard is real
    assert context.recording.recorder.record([dict(row)]) == [Outcome.DUPLICATE]
    assert rows(read(context.histories.cache, wanted)) == naive(context, wanted)
    context.people.notes.bring_up()
    assert [entry["recent"][0]["timestamp"] for entry in database["latest"].find()] == [4]
    (again,) = database["staff"].find({"timestamp": 4})
    assert context.recording.recorder.record([dict(row)]) == [Outcome.DUPLICATE]
    assert database["staff"].find_one({"timestamp": 4}) == again  # its stamp is no longer old


def test_one_who_has_very_many_stamps_at_once_is_read_whole(
    context: Context, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "MAX_STAMPS", 20)
    for staff_id in (1, 2):
        add(context, list(range(10)), staff_id=staff_id)
    wanted = [TimeRange(staff_id, 0, LATER) for staff_id in (1, 2)]
    assert [len(rows(read(context.histories.cache, question))) for question in wanted] == [10, 10]
    for number in range(3):
        add(context, list(range(100, 130)))
        add(context, [number], staff_id=2)
        by_person = context.histories.states.read({1: None, 2: None, 3: None})
        assert {person: question.is_all for person, question in by_person.items()} == {
            1: False,
            2: True,
        }
        for question in wanted:
            assert rows(read(context.histories.cache, question)) == naive(context, question)


def test_a_backlog_is_cached_as_soon_as_it_is_settled(
    context: Context, database: Database[Any], monkeypatch: pytest.MonkeyPatch, reads: list[Any]
) -> None:
    """More came at once than are looked at, and nothing after them."""
    monkeypatch.setattr(states, "MAX_STAMPS", 20)
    monkeypatch.setattr(states, "FEW", 3)
    services = [
        Histories(
            context.histories.detections, context.histories.states, lambda: None, lambda _: None
        )
        for _ in range(2)
    ]
    wanted = TimeRange(1, 0, LATER)
    add(context, list(range(30)))
    for _ in range(2):
        assert rows(read(context.histories.cache, wanted)) == naive(context, wanted)
    assert len(reads) == 2  # what names them may yet lack one
    settle(database)
    reads.clear()
    names = {read(service, wanted).etag for service in services for _ in range(3)}
    assert (len(reads), len(names)) == (2, 1)
    for staff_id, more in ((1, [40]), (1, [5, 41]), (2, [1]), (1, list(range(50, 80))), (1, [90])):
        add(context, more, staff_id=staff_id)
        for service in services:
            assert rows(read(service, wanted)) == naive(context, wanted)
    # The newest is one of those that a correction changes.
    database["staff"].update_many({"timestamp": {"$gte": 70}}, RENEWED | {"$set": {"level": "9"}})
    for service in services:
        assert rows(read(service, wanted)) == naive(context, wanted)
    for service in services:
        service.close()


def test_the_backlog_of_the_sources_plan_is_read_once(context: Context, reads: list[Any]) -> None:
    """PERF-TP-2 asks for 2310 that came at once: all are named, long before they are settled."""
    add(context, list(range(2310)))
    for _ in range(2):
        assert len(rows(read(context.histories.cache, TimeRange(1, 0, LATER)))) == 2310
    assert len(reads) == 1


def test_a_service_that_has_just_started_reads_a_settled_backlog_once(
    context: Context, database: Database[Any], monkeypatch: pytest.MonkeyPatch, reads: list[Any]
) -> None:
    monkeypatch.setattr(states, "MAX_STAMPS", 20)
    monkeypatch.setattr(states, "FEW", 3)
    add(context, list(range(30)))
    settle(database)
    read_states = States(database["staff"], Latest(database["latest"]))
    service = Histories(context.histories.detections, read_states, lambda: None, lambda _: None)
    for _ in range(3):
        assert rows(read(service, TimeRange(1, 0, LATER))) == naive(context, TimeRange(1, 0, LATER))
    assert len(reads) == 1
    service.close()


def test_a_few_at_once_are_not_read_again_when_they_are_settled(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "FEW", 3)
    wanted = TimeRange(1, 0, LATER)
    add(context, list(range(10)))
    before = rows(read(context.histories.cache, wanted))

    def mark() -> int:
        add(context, [1], staff_id=2)  # the clock of the database goes on with what it stores
        cached = context.histories.cache._cached[1].mark
        return len(cached.stamps) if cached else 0

    assert before == naive(context, wanted)
    assert len(context.histories.states.read({1: None})[1].mark.stamps) == 10
    monkeypatch.setattr(stamps, "SETTLE_SECONDS", 0)
    monkeypatch.setattr(cache, "read_blocks", None)  # nothing is read again
    eventually(lambda: rows(read(context.histories.cache, wanted)) == before and mark() == 1, 60)
    add(context, [5, 20])
    assert rows(read(context.histories.cache, wanted)) == naive(context, wanted)


@pytest.mark.parametrize("is_read_between", [False, True])
def test_a_backlog_that_was_stamped_before_what_was_read_is_found(
    context: Context,
    database: Database[Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_read_between: bool,
) -> None:
    """Its newest stamp is that of a detection that was committed, and read, before it."""
    monkeypatch.setattr(states, "FEW", 3)
    monkeypatch.setattr(stamps, "SETTLE_SECONDS", 4)
    wanted = TimeRange(1, 0, LATER)
    add(context, [100])
    assert len(rows(read(context.histories.cache, wanted))) == 1
    for timestamp in range(6):
        late(context, database, timestamp, 1)
    newest = max(stamps.number(row["stored"]) for row in database["staff"].find())
    assert database["staff"].find_one({"timestamp": 100, "stored": stamps.stamp(newest)})
    if is_read_between:
        assert rows(read(context.histories.cache, wanted)) == naive(context, wanted)

    def is_settled() -> bool:
        add(context, [1], staff_id=2)  # the clock of the database goes on with what it stores
        return len(context.histories.states.read({1: None})[1].mark.stamps) == 1

    eventually(is_settled, 60)
    for first in (0, 50, 0):
        detections = rows(read(context.histories.cache, wanted._replace(start=first)))
        assert detections == naive(context, wanted._replace(start=first))


def test_without_its_indexes_a_state_is_told_all_the_same(
    context: Context, database: Database[Any]
) -> None:
    add(context, [1, 2])
    context.database.indexes.close()
    database["staff"].drop_indexes()
    wanted = TimeRange(1, 0, LATER)
    assert len(rows(read(context.histories.cache, wanted))) == 2
    assert len(context.people.last_positions.read().staff) == 1
    context.database.indexes.ensure()


def test_states_are_read_from_one_index_alone(context: Context, database: Database[Any]) -> None:
    for staff_id in (1, 2):
        add(context, [1, 2], staff_id=staff_id)
    after = {"stored": {"$gt": Timestamp(1, 0)}}
    both = {"$or": [{"staff_id": staff_id} | after for staff_id in (1, 2)]}
    for query in ({"staff_id": 1} | after, both):
        cursor = database["staff"].find(query, states._FIELDS, hint=BY_STAMP_OF_STAFF)
        statistics = cursor.explain()["executionStats"]
        assert statistics["totalDocsExamined"] == 0
        assert statistics["totalKeysExamined"] <= statistics["nReturned"] + 3


@pytest.mark.long
def test_what_is_cached_stays_within_its_bound(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "CACHE_BYTES", 200_000)
    for staff_id in range(8):
        add(context, list(range(5000)), staff_id=staff_id)
    for staff_id in range(8):
        assert len(rows(read(context.histories.cache, TimeRange(staff_id, 0, LATER)))) == 5000
    cached = context.histories.cache._cached
    assert 1 <= len(cached) < 8
    assert sum(history.size for history in cached.values()) <= 200_000
    assert 7 in cached
    context.histories.cache.make_room(cache.TOGETHER_BYTES - 60_000)
    assert sum(history.size for history in cached.values()) <= 60_000
    context.histories.cache.make_room(0)
    assert len(rows(read(context.histories.cache, TimeRange(6, 0, LATER)))) == 5000
    assert 6 in cached
    monkeypatch.setattr(cache, "SHORT_BYTES", 30_000)
    monkeypatch.setattr("ingest.turns.is_short", lambda: True)
    context.histories.cache.make_room(0)
    assert sum(history.size for history in cached.values()) <= 30_000


def test_a_long_history_is_read_while_it_is_sent_and_no_other_makes_room_for_it(
    context: Context, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LONG_BYTES", 4000)
    monkeypatch.setattr(cache, "CACHE_BYTES", 12_000)
    add(context, list(range(10)), staff_id=2)
    add(context, [*range(100), *[100] * 30, *range(101, 200)])
    add(context, list(range(7)), staff_id=3)
    histories = context.histories.cache
    whole, recent = TimeRange(1, 0, LATER), TimeRange(1, 195, LATER)
    for staff_id in (2, 3):
        read(histories, TimeRange(staff_id, 0, LATER))
    for start, end in [(0, LATER), (0, 150), (30, 100), (0, 3)]:
        wanted = TimeRange(1, start, end)
        window = read(histories, wanted)
        assert rows(window) == naive(context, wanted)
        assert window.is_long == (end - start > 3)
        assert list(histories._cached) == [2, 3]
    assert read(histories, whole).etag is None
    text = b"".join(read(histories, whole).text())
    assert json.loads(text)["location"] == naive(context, whole)
    assert len(rows(read(histories, recent))) == 5  # this is cached, and stays so
    assert list(histories._cached) == [2, 3, 1]
    assert rows(read(histories, whole)) == naive(context, whole)
    add(context, [200])
    assert rows(read(histories, whole)) == naive(context, whole)
    assert histories._cached[1].rows(0, LATER) == 6
    for newest in range(210, 320, 10):  # it grows
        add(context, list(range(newest - 9, newest + 1)))
        assert len(rows(read(histories, recent))) == newest - 194
    assert sum(block.size for block in histories._cached[1].blocks) <= 4000
    assert histories._cached[1].rows(0, LATER) < 130
    assert rows(read(histories, whole)) == naive(context, whole)


@pytest.mark.parametrize("coding", ["text", "gzip_pieces"])
def test_a_long_history_takes_no_more_memory_than_what_is_kept_of_it_and_a_piece(
    context: Context, database: Database[Any], monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    monkeypatch.setattr(long_reads, "PIECE", 256)
    row = {"staff_id": 1, "mac": "A" * 12, "rssi": -1, "level": "1", "received_at": None}
    names = [random.randbytes(90).hex() for _ in range(1000)]
    database["staff"].insert_many(
        row | {"timestamp": NOW - n, "location": names[n % 1000]} for n in range(20_000)
    )

    def peak(long_bytes: int) -> int:
        monkeypatch.setattr(cache, "LONG_BYTES", long_bytes)
        tracemalloc.start()
        try:
            window = read(context.histories.cache, TimeRange(1, 0, LATER))
            assert window.is_long == (long_bytes < 2**20)
            assert sum(map(len, getattr(window, coding)())) > 1_000_000
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(2**17) < 2**20 < 2 * 2**20 < peak(2**30)


@pytest.mark.long
def test_few_windows_are_cached_each_of_one_state(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = context.histories.cache._windows
    for step in range(4):
        add(context, [step])
        read(context.histories.cache, TimeRange(1, 0, LATER))
        assert len(windows) == 1
    for staff_id in range(2, 5 + cache.WINDOWS):
        add(context, [1], staff_id=staff_id)
        read(context.histories.cache, TimeRange(staff_id, 0, LATER))
    assert len(windows) == cache.WINDOWS
    monkeypatch.setattr("ingest.turns.is_short", lambda: True)
    read(context.histories.cache, TimeRange(1, 0, LATER))
    assert len(windows) == cache.SHORT_WINDOWS


def test_the_last_minutes_take_the_room_that_they_need(context: Context) -> None:
    add(context, [int(time.time()) - 5] * 3)
    answer, _ = context.histories.last_minutes.read()
    assert context.histories.cache._others_bytes > answer.length


def test_readers_at_once_all_get_the_truth(context: Context, small: None) -> None:
    add(context, list(range(200)))
    wrong: list[object] = []
    acknowledged = 200

    def look() -> None:
        for start in range(0, 200, 20):
            wanted = TimeRange(1, start, LATER)
            least = acknowledged - start
            detections = rows(read(context.histories.cache, wanted))
            if (
                not least <= len(detections)
                or detections != naive(context, wanted)[-len(detections) :]
            ):
                wrong.append(detections)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        add(context, [acknowledged])
        acknowledged += 1
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_read_of_stamps_that_took_long_proves_nothing(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was stored with an old stamp, and committed meanwhile, may be missing in it."""
    add(context, [1])
    ways: list[Callable[[], object]] = [
        lambda: context.histories.states.read({1: None}),
        lambda: context.histories.states.read_there({1: None}),
    ]
    with monkeypatch.context() as at:
        at.setattr(stamps, "READ_SECONDS", -1)  # so that each read takes longer
        for way in ways:
            with pytest.raises(StoreUnavailable, match="too slow to tell what is new"):
                way()
    assert rows(read(context.histories.cache, TimeRange(1, 0, LATER)))
