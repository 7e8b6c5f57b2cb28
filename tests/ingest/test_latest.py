"""The collection `latest`: what each commit leaves there, and what a reader learns from it."""

import contextlib
import threading
import time
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from bson import ObjectId, Timestamp
from flask import Flask
from flask.testing import FlaskClient
from pymongo.database import Database

from ingest.context import Context
from ingest.errors import StoreUnavailable
from ingest.storage import note_positions, notes, stamps
from ingest.storage.documents import document
from ingest.storage.driver import told
from ingest.storage.latest import Latest, Recorded, Version
from ingest.storage.latest_updates import CHANGES, RECENT
from ingest.storage.note_positions import NotePosition
from ingest.storage.notes import Notes
from scripts.processes.waiting import eventually

GOOD = {"user_address": "7", "beacon_address": "C2A628384B08", "rssi": -20}
START = 1_700_000_000


def note(client: FlaskClient) -> None:
    context: Context = client.application.extensions["context"]
    context.notes.bring_up()


def send(client: FlaskClient, timestamp: int | None = None, **more: Any) -> None:
    given = {} if timestamp is None else {"timestamp": START + timestamp}
    assert client.post("/newbeacondetect", json=GOOD | given | more).status_code == 200
    note(client)


def shown(database: Database[Any], staff_id: object = 7) -> dict[str, Any]:
    found: dict[str, Any] | None = database["latest"].find_one({"_id": staff_id})
    assert found
    return found


def since(found: dict[str, Any]) -> list[int]:
    """Return from which second after START on each commit changed something."""
    return [change % 2**32 - START for change in found["changes"]]


def test_it_holds_the_newest_of_each_in_order(client: FlaskClient, database: Database[Any]) -> None:
    began = int(time.time() * 1000) - 1000
    for timestamp in (100, 300, 200, 50, *range(400, 400 + RECENT - 2)):
        send(client, timestamp)
    found = shown(database)
    steps = sum(change >> 32 for change in found["changes"])
    assert 0 < found["version"] - steps - began < 60_000
    assert since(found) == [100, 300, 200, 50, *range(400, 400 + RECENT - 2)]
    newest = [*reversed(range(400, 400 + RECENT - 2)), 300, 200]
    assert [one["timestamp"] - START for one in found["recent"]] == newest
    stored = database["staff"].find_one({"timestamp": START + 300}, {"staff_id": 0})
    assert stored
    assert found["recent"][-2] == {"id": stored.pop("_id")} | stored
    assert found["stored"] == database["staff"].find_one(sort=[("stored", -1)])["stored"]  # type: ignore[index]


def test_a_repeat_changes_nothing(client: FlaskClient, database: Database[Any]) -> None:
    url = "/extractbeacon?staff_id=7&start_time=0&end_time=4102444800"
    send(client, 100, event_id="a")
    send(client, 200, event_id="b")
    before, etag = shown(database), client.get(url).headers["ETag"]
    send(client, 100, event_id="a")
    assert shown(database) == before
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 304


def test_what_came_in_meanwhile_is_noted_once(client: FlaskClient, database: Database[Any]) -> None:
    send(client, 50)
    for timestamp in range(100, 100 + 2 * RECENT):
        answer = client.post("/newbeacondetect", json=GOOD | {"timestamp": START + timestamp})
        assert answer.status_code == 200
    assert since(shown(database)) == [50]
    note(client)
    assert since(shown(database)) == [50, 100]
    before = shown(database), list(database["notes"].find())
    for _ in range(3):  # by any service, also one that has just started
        again = Notes(database, Latest(database["latest"]))
        again.bring_up()
        note(client)
    assert shown(database) == before[0]
    assert len(listed(database)) == 1 + 2 * RECENT  # none of them is settled
    notes_ = Notes(database, Latest(database["latest"]))
    eventually(lambda: notes_.bring_up() and not listed(database), 30)
    before = shown(database), list(database["notes"].find())
    time.sleep(2.1)  # the database's clock goes on
    notes_.bring_up()
    assert (shown(database), list(database["notes"].find())) == before


def test_a_batch_is_one_change_for_each_staff_member(app: Flask, database: Database[Any]) -> None:
    context: Context = app.extensions["context"]
    documents = [
        {"_id": ObjectId(), "staff_id": n % 3, "timestamp": START + n, "received_at": None}
        | {"mac": "A" * 12, "rssi": -1, "level": "$level", "location": "$$ROOT"}
        for n in range(60)
    ]
    context.latest.record_changes(documents)
    for staff_id in range(3):
        found = shown(database, staff_id)
        assert since(found) == [staff_id]
        assert {one["location"] for one in found["recent"]} == {"$$ROOT"}
        assert len(found["recent"]) == RECENT


def test_commits_at_once_are_all_counted(app: Flask, database: Database[Any]) -> None:
    def bump() -> None:
        latest = Latest(app.extensions["context"].client.database["latest"])
        for n in range(10):
            row = dict.fromkeys(("received_at", "mac", "rssi", "level", "location"))
            latest.record_changes([row | {"_id": ObjectId(), "staff_id": n, "timestamp": n}])

    threads = [threading.Thread(target=bump) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(one["changes"]) for one in database["latest"].find()] == [60 // 10] * 10


# Versions 16, 48 and 1048, of which the first two were counted by the release before.
COMMITS = [200, 32 << 32 | 100, 1000 << 32 | 300]


@pytest.mark.parametrize(
    ("have", "found"),
    [
        (0, None),
        (14, None),
        (15, 100),
        (16, 100),
        (17, None),
        (48, 300),
        (49, None),
        (1047, None),
        (1048, None),
        (1049, None),
    ],
)
def test_what_a_reader_has_to_read_again(have: int, found: int | None) -> None:
    assert Version(1048, COMMITS).changed_since(have) == found


def test_a_time_after_all_that_fits_is_read_again_from_before(app: Flask) -> None:
    latest = app.extensions["context"].latest
    row = dict.fromkeys(("received_at", "mac", "rssi", "level", "location"))
    latest.record_changes([row | {"_id": ObjectId(), "staff_id": 7, "timestamp": 1}])
    before = latest.versions([7])[7].number
    latest.record_changes([row | {"_id": ObjectId(), "staff_id": 7, "timestamp": 2**40}])
    assert latest.versions([7])[7].changed_since(before) == 2**32 - 1


def test_only_the_last_changes_are_kept(client: FlaskClient, database: Database[Any]) -> None:
    for timestamp in range(CHANGES + 3):
        send(client, timestamp)
    assert since(shown(database)) == list(range(3, CHANGES + 3))


@pytest.mark.parametrize(
    ("levels", "told"), [(["4", "4", "4"], ["4"]), (["4", "5", "4"], ["4", "5", "4"])]
)
def test_an_entry_tells_what_may_tell_a_level(
    app: Flask, database: Database[Any], levels: list[str], told: list[str]
) -> None:
    recent = [{"level": level, "timestamp": 9 - n} for n, level in enumerate(levels)]
    database["latest"].insert_one({"_id": 7, "version": 1, "changes": [], "recent": recent})
    (entry,) = app.extensions["context"].latest.entries([7])
    assert [one.level for one in entry.recent] == told
    # An older database may lack the field: nobody is there on two levels for that, nor on one.
    database["latest"].update_one({"_id": 7}, {"$unset": {"recent.2.level": 1}})
    (entry,) = app.extensions["context"].latest.entries([7])
    assert len(entry.recent) == 3


def test_a_later_stamp_wins_whatever_is_noted_last(app: Flask, database: Database[Any]) -> None:
    context: Context = app.extensions["context"]
    row = dict.fromkeys(("received_at", "mac", "rssi", "level"))
    row |= {"_id": ObjectId(), "staff_id": 7, "timestamp": 100}
    corrected = row | {"stored": Timestamp(20, 1), "location": "Corrected"}
    before = row | {"stored": Timestamp(10, 1), "location": "Before"}
    for one in (before, corrected, before):
        context.latest.record_changes([one])
    (entry,) = shown(database)["recent"]
    assert (entry["location"], shown(database)["stored"]) == ("Corrected", Timestamp(20, 1))


def test_more_than_a_piece_is_noted_and_a_lost_position_does_no_harm(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    context: Context = app.extensions["context"]
    monkeypatch.setattr(notes, "PIECE", 4)
    monkeypatch.setattr(context.notes, "_piece", 4)
    place, now = ("4", "A"), time.time()
    for staff_id in range(9):
        rows = [
            document(staff_id, place, n, -1, "A" * 12, now, (str(n), n))
            for n in range(staff_id + 1)
        ]
        context.recorder.record(rows)
    context.notes.bring_up()
    assert database["latest"].count_documents({}) == 9
    database["notes"].delete_many({})
    database["latest"].delete_many({})
    context.notes.bring_up()
    assert database["latest"].count_documents({}) == 9


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stamps be settled after a second: what is tested commits at once."""
    monkeypatch.setattr(stamps, "SETTLE_SECONDS", 1)


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no stamp be settled."""
    monkeypatch.setattr(stamps, "SETTLE_SECONDS", 3600)
    monkeypatch.setattr(note_positions, "COMMITTED_SECONDS", 3600)


def rows(count: int, *, people: int = 50) -> list[dict[str, Any]]:
    return [
        {"staff_id": n % people, "timestamp": n, "mac": "A" * 12, "rssi": -1, "level": "4"}
        | {"location": "Lobby", "received_at": None, "stored": stamps.NEW}
        for n in range(count)
    ]


class Noted:
    """Counts the detections that are noted."""

    def __init__(self, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        record = context.latest.record_changes

        def counted(documents: Iterable[dict[str, Any]]) -> Recorded:
            given = list(documents)
            self.count += len(given)
            return record(given)

        monkeypatch.setattr(context.latest, "record_changes", counted)

    def by(self, notes_: Notes) -> int:
        before = self.count
        notes_.bring_up()
        return self.count - before


def test_more_than_the_position_lists_and_then_silence(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch, soon: None
) -> None:
    context: Context = app.extensions["context"]
    noted = Noted(context, monkeypatch)
    monkeypatch.setattr(note_positions, "MAX_LISTED", 2000)
    database["staff"].insert_many(rows(2 * note_positions.MAX_LISTED), ordered=False)
    assert noted.by(context.notes) == 2 * note_positions.MAX_LISTED
    assert len(listed(database)) <= note_positions.MAX_LISTED
    eventually(lambda: noted.by(context.notes) == 0, 30)
    # Nobody is to be read again for ever: the position follows a database in which nothing happens.
    eventually(lambda: noted.by(context.notes) == 0 and not listed(database), 30)


def test_much_is_noted_in_turns_without_a_pause(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch, soon: None
) -> None:
    """More than fits the time of one turn, as after a bulk load that nobody watched."""
    context: Context = app.extensions["context"]
    noted = Noted(context, monkeypatch)
    noted.by(context.notes)  # up to here there is nothing
    database["staff"].insert_many(rows(20_000), ordered=False)
    monkeypatch.setattr(notes, "ALONE_SECONDS", 0.4)
    monkeypatch.setattr(notes, "REST_SECONDS", 0.1)
    monkeypatch.setattr(notes, "NOTE_SECONDS", 1.0)
    thread = Notes(database, context.latest)
    thread.start()
    eventually(lambda: noted.count, 60)
    monkeypatch.setattr(notes, "NOTE_SECONDS", 100.0)  # two such pauses would be too long
    try:
        eventually(lambda: noted.count >= 20_000, 120)
        # Nothing of it is still to be noted, for any service.
        eventually(lambda: noted.by(context.notes) == 0, 30)
    finally:
        thread.close()


def test_who_is_too_slow_for_a_piece_notes_less_at_a_time(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch, soon: None
) -> None:
    """On a machine without CPU a piece takes longer than a turn, each time."""
    context: Context = app.extensions["context"]
    noted = Noted(context, monkeypatch)
    noted.by(context.notes)
    record = context.latest.record_changes

    def slow(documents: Iterable[dict[str, Any]]) -> Recorded:
        given = list(documents)
        time.sleep(len(given) * 0.002)
        return record(given)

    monkeypatch.setattr(context.latest, "record_changes", slow)
    monkeypatch.setattr(notes, "ALONE_SECONDS", 0.9)  # a piece takes 1 s
    monkeypatch.setattr(notes, "REST_SECONDS", 0.1)
    monkeypatch.setattr(notes, "NOTE_SECONDS", 0.1)
    count = 2 * notes.PIECE
    database["staff"].insert_many(rows(count, people=count), ordered=False)
    thread = Notes(database, context.latest)
    thread.start()
    try:
        eventually(lambda: database["latest"].count_documents({}) == count, 60)
    finally:
        thread.close()


def test_a_turn_that_is_cut_gets_further_also_when_nothing_is_new() -> None:
    """Much is listed, as of a faster time, and each turn reads three pieces of it."""
    count, size = 60, 4
    found: list[dict[str, Any]] = [
        {"_id": n, stamps.STAMP: Timestamp(100, 1 + n)} for n in range(count)
    ]
    new = found[-1]
    noted: list[Any] = []
    kept = [note_positions.NOWHERE_YET]

    def pieces(floor: int, reads: int) -> Iterator[tuple[list[dict[str, Any]], bool]]:
        for _ in range(reads):
            piece = [one for one in found if stamps.number(one[stamps.STAMP]) > floor][:size]
            yield piece, len(piece) < size
            if len(piece) < size:
                return
            floor = max(note_positions.last_stamp(piece), floor + 1)
        raise StoreUnavailable("the turn is over")

    def keep(position: NotePosition) -> NotePosition:
        kept.append(position)
        return position

    def turn(proved: int, reads: int) -> None:
        at = kept[-1].at
        with contextlib.suppress(StoreUnavailable):
            note_positions.advance(kept[-1], proved, pieces(at, reads), noted.extend, keep)

    found.pop()
    turn(0, 100)
    assert len(noted) == len(kept[-1].listed) == count - 1
    found.append(new)
    for _ in range(count):
        turn(stamps.number(new[stamps.STAMP]), 3)
    assert noted[count - 1 :] == [new]
    assert not kept[-1].listed


def test_more_with_one_stamp_than_a_small_piece_has_are_all_noted(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a copy may have them."""
    context: Context = app.extensions["context"]
    noted = Noted(context, monkeypatch)
    one_stamp = {"stored": Timestamp(int(time.time()) - 100, 1)}
    database["staff"].insert_many([one | one_stamp for one in rows(300, people=300)])
    monkeypatch.setattr(context.notes, "_piece", notes.LEAST)
    assert noted.by(context.notes) == 300


def test_the_position_of_the_release_before_is_read(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch, never: None
) -> None:
    context: Context = app.extensions["context"]
    noted = Noted(context, monkeypatch)
    database["staff"].insert_many(rows(100), ordered=False)
    assert noted.by(context.notes) == 100
    as_list = sorted(listed(database), key=str)
    database["notes"].update_one({}, {"$set": {"listed": as_list}})
    assert noted.by(context.notes) == 0


def test_nothing_is_written_or_noted_again_while_nothing_is_new(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch, never: None
) -> None:
    """Also of more than one piece, and when another service reads between two of them."""
    context: Context = app.extensions["context"]
    noted = Noted(context, monkeypatch)
    database["staff"].insert_many(rows(15 * notes.PIECE), ordered=False)  # as of 8 s at 900/s
    assert noted.by(context.notes) == 15 * notes.PIECE
    before = list(database["notes"].find())
    assert noted.by(context.notes) == 0
    assert list(database["notes"].find()) == before
    other = Notes(database, context.latest)
    find, asked = Notes._found, []

    def between(self: Notes, floor: int, session: Any) -> list[dict[str, Any]]:
        if self is context.notes:
            asked.append(floor)
            if len(asked) == 2:
                database["staff"].insert_many(rows(3), ordered=False)
                other.bring_up()
        return find(self, floor, session)

    monkeypatch.setattr(Notes, "_found", between)
    assert noted.by(context.notes) <= 2 * 3  # both may note what is new
    assert noted.by(context.notes) <= 3
    assert noted.by(context.notes) == 0


def test_what_a_shard_did_not_take_is_noted_again(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    context: Context = app.extensions["context"]
    context.notes.bring_up()
    everybody = rows(3 * notes.PIECE, people=3 * notes.PIECE)
    database["staff"].insert_many(everybody, ordered=False)
    record, calls = context.latest.record_changes, []

    def fails_once(documents: Iterable[dict[str, Any]]) -> Recorded:
        calls.append(1)
        if len(calls) == 1:
            raise StoreUnavailable("a shard is away")
        return record(documents)

    monkeypatch.setattr(context.latest, "record_changes", fails_once)
    monkeypatch.setattr(notes, "NEW_SECONDS", 30)  # it is not about time
    assert not context.notes.bring_up_there()
    assert database["latest"].count_documents({}) == 2 * notes.PIECE
    assert not context.notes.bring_up_there()
    assert database["latest"].count_documents({}) == 3 * notes.PIECE
    context.notes.bring_up()
    assert context.notes.bring_up_there()


def listed(database: Database[Any]) -> "array[int]":
    return array("q", database["notes"].find_one()["listed"])  # type: ignore[index]


def test_a_clock_that_does_not_go_on_stops_nothing(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when it was set back by an hour: until then no stamp is settled by its time."""
    context: Context = app.extensions["context"]
    monkeypatch.setattr(note_positions, "settled", lambda _: 0)
    noted = Noted(context, monkeypatch)
    database["staff"].insert_many(rows(5000), ordered=False)
    began = time.monotonic()
    assert noted.by(context.notes) == 5000
    eventually(lambda: noted.by(context.notes) == 0 and not listed(database), 30)
    assert time.monotonic() - began > note_positions.COMMITTED_SECONDS
    at = stamps.stamp(database["notes"].find_one()["at"])  # type: ignore[index]
    assert not database["staff"].count_documents({"stored": {"$gt": at}})


def test_a_copy_of_a_server_whose_clock_was_ahead(
    client: FlaskClient, app: Flask, database: Database[Any]
) -> None:
    context: Context = app.extensions["context"]
    send(client, 100)
    send(client, 50, user_address="8")
    url = "/extractbeacon?staff_id=7&start_time=0&end_time=4102444800"
    assert len(client.get(url).json["location"]) == 1  # type: ignore[index]
    # It is restored here, with stamps and a position that are of tomorrow.
    ahead = [{"$set": {"stored": Timestamp(int(time.time()) + 86_400, 1)}}]
    database["staff"].update_many({}, ahead)
    entry = {"$mergeObjects": ["$$this", ahead[0]["$set"]]}
    entries = {"$set": {"recent": {"$map": {"input": "$recent", "in": entry}}}}
    database["latest"].update_many({}, [*ahead, entries])
    database["notes"].update_one({}, {"$inc": {"at": 86_400 << 32}})
    assert len(client.get(url).json["location"]) == 1  # type: ignore[index]
    assert (
        client.post("/newbeacondetect", json=GOOD | {"timestamp": START + 200}).status_code == 200
    )
    assert len(client.get(url).json["location"]) == 2  # type: ignore[index]
    told = client.get("/api/v1/staff").json
    assert told
    assert [one["timestamp"] - START for one in told["data"]] == [200, 50]
    # What is corrected now is later than what is shown.
    corrected = {"$set": {"location": "Corrected"}} | stamps.RENEWED
    database["staff"].update_one({"staff_id": 8}, corrected)
    note(client)
    assert [one["location"] for one in shown(database, 8)["recent"]] == ["Corrected"]
    # From now on they are as if they were stored now.
    now = Timestamp(int(time.time()) + 60, 0)
    for name, field in (("staff", "stored"), ("latest", "stored"), ("latest", "recent.stored")):
        assert database[name].count_documents({field: {"$gt": now}}) == 0
    assert (
        client.post("/newbeacondetect", json=GOOD | {"timestamp": START + 300}).status_code == 200
    )
    assert len(client.get(url).json["location"]) == 3  # type: ignore[index]
    assert context.states.read({7: None})[7].is_all


@pytest.mark.parametrize(
    "url", ["/api/v1/staff", "/retrieveformonitoring", "/api/v1/staff/7/detections"]
)
def test_nothing_is_read_that_lacks_what_is_named(
    client: FlaskClient, app: Flask, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """For a moment after a failover a primary shows older rows: it is told of which time to read.

    Here that is a time to which it does not come: it refuses.
    """
    context: Context = app.extensions["context"]
    send(client)
    noted_at = context.notes.bring_up()
    assert stamps.number(noted_at) > context.states.read({7: None})[7].mark.newest
    assert client.get(url).status_code == 200
    later = Timestamp(int(time.time()) + 3600, 1)
    if url == "/api/v1/staff":
        monkeypatch.setattr(context.notes, "bring_up", lambda: later)
        monkeypatch.setattr(context.notes, "bring_up_there", lambda: False)
        assert not context.everyone.read().complete
        return
    people = context.everyone.read()._replace(read_at=later)
    monkeypatch.setattr(context.everyone, "read", lambda: people)
    states = {7: context.states.read({7: None})[7]._replace(read_at=later)}
    monkeypatch.setattr(context.states, "read", lambda _: states)
    assert client.get(url).status_code == 503


def test_a_command_is_close_when_the_database_says_so() -> None:
    clock = stamps.Clock()
    assert not clock.is_close(clock.begin(), Timestamp(100, 1))  # nothing was known before
    assert clock.is_close(clock.begin(), Timestamp(100 + stamps.WRITE_SECONDS, 1))
    # Its clock was set ahead meanwhile; or nothing was sent for a while: who can tell?
    assert not clock.is_close(clock.begin(), Timestamp(107, 1))
    begun = clock.begin()
    assert clock.is_close(begun, Timestamp(107, 9))
    assert not clock.is_close(begun, Timestamp(99, 1))  # of another shard: it tells too little
    assert not clock.is_close(begun, told({}))  # or nothing
    slow = begun._replace(at=begun.at - stamps.WRITE_SECONDS - 1)
    assert not clock.is_close(slow, Timestamp(107, 9))


def test_a_server_that_has_just_started_tells_its_own_time() -> None:
    own, other = Timestamp(100, 1), Timestamp(101, 1)
    assert told({"operationTime": own}) == own
    assert told({"operationTime": own, "$clusterTime": {"clusterTime": other}}) == other


def test_after_a_while_a_detection_is_stamped_with_a_time_that_is_known(
    client: FlaskClient, app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the database's clock did meanwhile."""
    context: Context = app.extensions["context"]
    inserts = context.recorder._inserts
    renewed: list[int] = []
    renew = inserts.renew

    def counted(documents: list[dict[str, Any]]) -> None:
        renewed.append(len(documents))
        renew(documents)

    monkeypatch.setattr(inserts, "renew", counted)
    send(client, 100)
    renewed.clear()
    send(client, 101)
    assert renewed == []
    monkeypatch.setattr(inserts._clock, "_told", Timestamp(int(time.time()) - 60, 1))
    send(client, 102)
    assert renewed == [1]
