"""The collection `latest`: what each commit leaves there, and what a reader learns from it."""

import contextlib
import datetime
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
from bson import ObjectId, Timestamp
from flask import Flask
from flask.testing import FlaskClient
from pymongo import _csot
from pymongo.database import Database

from ingest.assembly import Context
from ingest.errors import StoreUnavailable
from ingest.rules.where import RECENT
from ingest.storage.database.driver import cluster_time
from ingest.storage.detections import stamps
from ingest.storage.detections.documents import document
from ingest.storage.histories import recent_state
from ingest.storage.histories.recent_state import RecentState
from ingest.storage.people import last_positions, note_positions, notes
from ingest.storage.people.latest import Latest, Recorded
from ingest.storage.people.latest_updates import Change
from ingest.storage.people.note_positions import NotOurTurn
from ingest.storage.people.notes import Notes
from scripts.processes.waiting import eventually

GOOD = {"user_address": "7", "beacon_address": "C2A628384B08", "rssi": -20}
START = 1_700_000_000


def note(client: FlaskClient) -> None:
    context: Context = client.application.extensions["context"]
    context.people.notes.bring_up()


def send(client: FlaskClient, timestamp: int | None = None, **more: Any) -> None:
    times = {} if timestamp is None else {"timestamp": START + timestamp}
    assert client.post("/newbeacondetect", json=GOOD | times | more).status_code == 200
    note(client)


def shown(database: Database[Any], staff_id: object = 7) -> dict[str, Any]:
    entry: dict[str, Any] | None = database["latest"].find_one({"_id": staff_id})
    assert entry
    return entry


def test_it_holds_the_newest_of_each_in_order(client: FlaskClient, database: Database[Any]) -> None:
    for timestamp in (100, 300, 200, 50, *range(400, 400 + RECENT - 2)):
        send(client, timestamp)
    entry = shown(database)
    newest = [*reversed(range(400, 400 + RECENT - 2)), 300, 200]
    assert [row["timestamp"] - START for row in entry["recent"]] == newest
    stored = database["staff"].find_one({"timestamp": START + 300}, {"staff_id": 0})
    assert stored
    heard = {"id": stored.pop("_id"), "heard": START + 300}
    assert entry["recent"][-2] == heard | stored
    assert entry["stored"] == database["staff"].find_one(sort=[("stored", -1)])["stored"]  # type: ignore[index]


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
    first = shown(database)
    for timestamp in range(100, 100 + 2 * RECENT):
        answer = client.post("/newbeacondetect", json=GOOD | {"timestamp": START + timestamp})
        assert answer.status_code == 200
    assert shown(database) == first
    note(client)
    before = shown(database)
    assert before["version"] != first["version"]
    for _ in range(3):  # by any service, also one that has just started
        Notes(database, Latest(database["latest"])).bring_up()
        note(client)
    assert shown(database) == before
    notes_ = Notes(database, Latest(database["latest"]))
    eventually(lambda: notes_.bring_up() and not named(database), 30)
    position = list(database["notes"].find())
    time.sleep(2.1)  # the database's clock goes on
    notes_.bring_up()
    assert (shown(database), list(database["notes"].find())) == (before, position)


def test_a_batch_is_one_change_for_each_staff_member(app: Flask, database: Database[Any]) -> None:
    context: Context = app.extensions["context"]
    documents = [
        {"_id": ObjectId(), "staff_id": n % 3, "timestamp": START + n, "received_at": None}
        | {"mac": "A" * 12, "rssi": -1, "level": "$level", "location": "$$ROOT"}
        for n in range(60)
    ]
    context.people.latest.record_changes(documents)
    for staff_id in range(3):
        entry = shown(database, staff_id)
        assert {row["location"] for row in entry["recent"]} == {"$$ROOT"}
        assert [row["timestamp"] - START for row in entry["recent"]] == [
            *reversed(range(57 + staff_id - 3 * (RECENT - 1), 58 + staff_id, 3))
        ]


def test_services_that_note_at_once_show_the_newest_of_all(
    app: Flask, database: Database[Any]
) -> None:
    def record(first: int) -> None:
        latest = Latest(app.extensions["context"].database.client.database["latest"])
        for n in range(first, 60, 6):
            row = dict.fromkeys(("received_at", "mac", "rssi", "level", "location"))
            latest.record_changes(
                row | {"_id": ObjectId(), "staff_id": staff_id, "timestamp": n}
                for staff_id in range(10)
            )

    threads = [threading.Thread(target=record, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    newest = [*reversed(range(60 - RECENT, 60))]
    for entry in database["latest"].find():
        assert [row["timestamp"] for row in entry["recent"]] == newest
    assert database["latest"].count_documents({}) == 10


@pytest.mark.parametrize(
    ("levels", "shown_levels"), [(["4", "4", "4"], ["4"]), (["4", "5", "4"], ["4", "5", "4"])]
)
def test_an_entry_tells_what_may_tell_a_level(
    app: Flask, database: Database[Any], levels: list[str], shown_levels: list[str]
) -> None:
    recent = [{"level": level, "timestamp": 9 - n} for n, level in enumerate(levels)]
    database["latest"].insert_one({"_id": 7, "version": 1, "changes": [], "recent": recent})
    (entry,) = app.extensions["context"].people.latest.entries([7])
    assert [detection.level for detection in entry.recent] == shown_levels
    # An older database may lack the field: nobody is there on two levels for that, nor on one.
    database["latest"].update_one({"_id": 7}, {"$unset": {"recent.2.level": 1}})
    (entry,) = app.extensions["context"].people.latest.entries([7])
    assert len(entry.recent) == 3


def test_a_later_stamp_wins_whatever_is_noted_last(app: Flask, database: Database[Any]) -> None:
    context: Context = app.extensions["context"]
    row = dict.fromkeys(("received_at", "mac", "rssi", "level"))
    row |= {"_id": ObjectId(), "staff_id": 7, "timestamp": 100}
    corrected = row | {"stored": Timestamp(20, 1), "location": "Corrected"}
    before = row | {"stored": Timestamp(10, 1), "location": "Before"}
    for places in (before, corrected, before):
        context.people.latest.record_changes([places])
    (entry,) = shown(database)["recent"]
    assert (entry["location"], shown(database)["stored"]) == ("Corrected", Timestamp(20, 1))


def test_more_than_a_piece_is_noted_and_a_lost_position_does_no_harm(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    context: Context = app.extensions["context"]
    monkeypatch.setattr(context.people.notes, "_piece", 4)
    place, now = ("4", "A"), time.time()
    for staff_id in range(9):
        rows = [
            document(staff_id, place, n, -1, "A" * 12, now, (str(n), n))
            for n in range(staff_id + 1)
        ]
        context.recording.recorder.record(rows)

    def noted() -> bool:
        context.people.notes.bring_up()
        return database["latest"].count_documents({}) == 9

    eventually(noted, 30)
    database["notes"].delete_many({})
    database["latest"].delete_many({})
    eventually(noted, 30)


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
    """Counts the people who are written."""

    def __init__(self, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        show = context.people.latest.show

        def counted(changes: Iterable[Change]) -> Recorded:
            written = list(changes)
            self.count += len(written)
            return show(written)

        monkeypatch.setattr(context.people.latest, "show", counted)

    def by(self, notes_: Notes) -> int:
        before = self.count
        notes_.bring_up()
        return self.count - before


def test_each_is_written_once_and_then_nothing_while_nothing_is_new(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch, never: None
) -> None:
    """However many there are, and whichever service looks."""
    context: Context = app.extensions["context"]
    noted = Noted(context, monkeypatch)
    assert noted.by(context.people.notes) == 0
    database["staff"].insert_many(rows(3000), ordered=False)
    assert 50 <= noted.by(context.people.notes) <= 100  # in one second, or in two
    before = list(database["notes"].find())
    for notes_ in (context.people.notes, Notes(database, context.people.latest)):
        assert noted.by(notes_) == 0
    assert list(database["notes"].find()) == before


def test_what_is_noted_again_is_not_written_when_it_shows_nothing_new(
    app: Flask, database: Database[Any]
) -> None:
    context: Context = app.extensions["context"]
    database["staff"].insert_many(rows(300), ordered=False)
    context.people.notes.bring_up()
    before = list(database["latest"].find())
    database["notes"].delete_many({})
    context.people.notes.bring_up()
    assert list(database["latest"].find()) == before


def test_what_comes_late_is_noted_and_told_though_another_leaves_its_second(
    api_client: FlaskClient, app: Flask, database: Database[Any], never: None
) -> None:
    """A second is known by all its stamps, not by how many these are."""
    context: Context = app.extensions["context"]
    second = int(time.time()) - 2
    known, late = rows(2, people=2)
    known["stored"], late["stored"] = Timestamp(second, 1), Timestamp(second, 2)
    late["timestamp"] = known["timestamp"] = second
    database["staff"].insert_one(known)
    context.people.notes.bring_up()
    assert people(api_client) == {0}
    database["staff"].update_one({"staff_id": 0}, stamps.RENEWED)
    database["staff"].insert_one(late)
    assert people(api_client) == {0, 1}
    assert people(api_client, "/retrieveformonitoring", "location") == {0, 1}
    context.people.notes.bring_up()
    assert database["latest"].count_documents({}) == 2


@pytest.fixture
def api_client(app: Flask) -> FlaskClient:
    return app.test_client()


def people(client: FlaskClient, url: str = "/api/v1/staff", name: str = "data") -> set[Any]:
    answer = client.get(url)
    assert answer.status_code == 200, answer.text
    assert answer.json is not None
    assert answer.json.get("complete", True)
    return {row["staff_id"] for row in answer.json[name]}


def test_who_is_too_slow_notes_less_at_a_time_and_at_last_in_more_time(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch, soon: None
) -> None:
    """On a machine without CPU one second of detections takes longer than a turn, each time."""
    context: Context = app.extensions["context"]
    database["staff"].insert_many(rows(300, people=300), ordered=False)
    show, needed = context.people.latest.show, 0.3

    def slow(changes: Iterable[Change]) -> Recorded:
        if (left := _csot.remaining()) is None or left < needed:
            raise StoreUnavailable("too slow")
        return show(changes)

    monkeypatch.setattr(context.people.latest, "show", slow)
    monkeypatch.setattr(notes, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(notes, "NOTE_SECONDS", 0.1)
    monkeypatch.setattr(notes, "HURRY_SECONDS", 0.05)
    thread = Notes(database, context.people.latest)
    thread.start()
    try:
        eventually(lambda: database["latest"].count_documents({}) == 300, 60)
        eventually(lambda: thread.behind_seconds < 60, 30)
    finally:
        thread.close()


def test_more_with_one_stamp_than_a_piece_has_are_all_noted(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a copy may have them."""
    context: Context = app.extensions["context"]
    one_stamp = {"stored": Timestamp(int(time.time()) - 100, 1)}
    database["staff"].insert_many([row | one_stamp for row in rows(300, people=300)])
    monkeypatch.setattr(context.people.notes, "_piece", 10)
    context.people.notes.bring_up()
    assert database["latest"].count_documents({}) == 300


def test_the_position_of_the_release_before_is_read(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    context: Context = app.extensions["context"]
    noted = Noted(context, monkeypatch)
    database["staff"].insert_many(rows(100), ordered=False)
    at = {"at": (int(time.time()) + 1) << 32, "listed": b"12345678", "name": 7}
    eventually(lambda: time.time() > (at["at"] >> 32) + 1)  # type: ignore[operator]
    database["notes"].insert_one({"_id": "staff"} | at)
    assert noted.by(context.people.notes) == 0
    database["staff"].insert_many(rows(1), ordered=False)
    assert noted.by(context.people.notes) == 1


def test_one_service_notes_at_a_time_and_one_that_died_is_not_waited_for(
    app: Flask, database: Database[Any]
) -> None:
    context: Context = app.extensions["context"]
    other = Notes(database, context.people.latest)
    context.people.notes.bring_up()
    database["staff"].insert_many(rows(1), ordered=False)
    with other.unnoted(100, 5) as unnoted:
        other._positions.write(unnoted.position, 3)
    with pytest.raises(NotOurTurn):
        context.people.notes.bring_up()
    assert people(app.test_client()) == {0}  # a reader does not wait for either

    def noted() -> bool:
        with contextlib.suppress(NotOurTurn):
            context.people.notes.bring_up()
        return bool(database["latest"].count_documents({}))

    eventually(noted, 30)
    # A turn far ahead is of a clock that was set back since.
    database["staff"].insert_many(rows(2), ordered=False)
    ahead = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    database["notes"].update_one({}, {"$set": {"until": ahead, "by": "another"}})
    context.people.notes.bring_up()
    assert database["latest"].count_documents({}) == 2


def test_when_too_much_is_new_the_newest_is_told_and_that_it_is_not_all(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_positions, "MOST_NEW", 100)
    monkeypatch.setattr(last_positions, "MUCH", 100)
    monkeypatch.setattr(notes, "MAX_THERE", 50)
    client = app.test_client()
    now = int(time.time())
    for before, count in ((60, 200), (0, 50)):
        several = [row | {"timestamp": now - before} for row in rows(count, people=count)]
        database["staff"].insert_many(several, ordered=True)
    answer = client.get("/api/v1/now").json
    assert answer is not None
    assert answer["complete"] is False
    told_of = [person for level in answer["levels"] for person in level["staff"]]
    assert [row["timestamp"] for row in told_of] == [now] * 50
    eventually(lambda: all_are_told(client), 60)  # it is noted soon
    assert database["latest"].count_documents({}) == 200


def test_what_is_known_is_told_while_the_database_is_late_and_for_how_long_it_is(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object) -> None:
        raise StoreUnavailable("it took too long")

    def complete() -> bool:
        answer = client.get("/api/v1/staff").json
        assert answer is not None
        assert [row["staff_id"] for row in answer["data"]] == [7]
        return bool(answer["complete"])

    def late_seconds() -> int:
        report = client.get("/api/v1/system").json
        assert report is not None
        return int(report["late_seconds"])

    send(client)
    assert complete()
    monkeypatch.setattr(notes.Notes, "unnoted", late)
    monkeypatch.setattr(Latest, "every_version_there", late)
    assert not complete()
    eventually(lambda: not complete() and late_seconds() > 0)
    monkeypatch.setattr(last_positions, "ASKED_LATELY_SECONDS", 0)
    assert late_seconds() == 0  # nobody asks any more
    monkeypatch.undo()
    eventually(complete)
    assert late_seconds() == 0


def all_are_told(client: FlaskClient) -> bool:
    answer = client.get("/api/v1/now").json
    assert answer is not None
    return (
        bool(answer["complete"]) and sum(len(level["staff"]) for level in answer["levels"]) == 200
    )


def test_what_a_shard_did_not_take_is_noted_again(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    context: Context = app.extensions["context"]
    context.people.notes.bring_up()
    database["staff"].insert_many(rows(600, people=600), ordered=False)
    show, calls = context.people.latest.show, []

    def fails_once(changes: Iterable[Change]) -> Recorded:
        calls.append(1)
        if len(calls) == 2:
            return Recorded({7: "a shard is away"}, Timestamp(1, 1))
        return show(changes)

    monkeypatch.setattr(context.people.latest, "show", fails_once)
    with pytest.raises(StoreUnavailable, match="a shard is away"):
        context.people.notes.bring_up()
    assert database["latest"].count_documents({}) < 600
    context.people.notes.bring_up()
    assert database["latest"].count_documents({}) == 600


def named(database: Database[Any]) -> bytes:
    """Return the names of the seconds that are noted and not settled."""
    seconds: bytes = database["notes"].find_one()["seconds"]  # type: ignore[index]
    return seconds


@pytest.mark.long
def test_a_clock_that_does_not_go_on_stops_nothing(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when it was set back by an hour: until then no stamp is settled by its time."""
    context: Context = app.extensions["context"]
    monkeypatch.setattr(note_positions, "settled", lambda _: 0)
    noted = Noted(context, monkeypatch)
    database["staff"].insert_many(rows(5000), ordered=False)
    began = time.monotonic()
    assert noted.by(context.people.notes) >= 50
    eventually(lambda: noted.by(context.people.notes) == 0 and not named(database), 30)
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
    staff = client.get("/api/v1/staff").json
    assert staff
    assert [row["timestamp"] - START for row in staff["data"]] == [200, 50]
    # What is corrected now is later than what is shown.
    corrected = {"$set": {"location": "Corrected"}} | stamps.RENEWED
    database["staff"].update_one({"staff_id": 8}, corrected)
    note(client)
    assert [row["location"] for row in shown(database, 8)["recent"]] == ["Corrected"]
    # From now on they are as if they were stored now.
    now = Timestamp(int(time.time()) + 60, 0)
    for name, field in (("staff", "stored"), ("latest", "stored"), ("latest", "recent.stored")):
        assert database[name].count_documents({field: {"$gt": now}}) == 0
    assert (
        client.post("/newbeacondetect", json=GOOD | {"timestamp": START + 300}).status_code == 200
    )
    assert len(client.get(url).json["location"]) == 3  # type: ignore[index]
    assert context.histories.states.read({7: None})[7].is_all


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
    assert client.get(url).status_code == 200
    later = Timestamp(int(time.time()) + 3600, 1)
    if url == "/api/v1/staff":
        every_version = context.people.latest.every_version
        monkeypatch.setattr(context.people.latest, "every_version", lambda _: every_version(later))
        monkeypatch.setattr(context.people.notes, "arrived_there", lambda: ({}, False))
        assert not context.people.last_positions.read().complete
        return
    read = recent_state.read

    def of_later(*arguments: Any) -> tuple[RecentState, int]:
        state, since = read(*arguments)
        return state._replace(read_at=later), since

    monkeypatch.setattr(recent_state, "read", of_later)
    states = {7: context.histories.states.read({7: None})[7]._replace(read_at=later)}
    monkeypatch.setattr(context.histories.states, "read", lambda _: states)
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
    assert not clock.is_close(begun, cluster_time({}))  # or nothing
    slow = begun._replace(at=begun.at - stamps.WRITE_SECONDS - 1)
    assert not clock.is_close(slow, Timestamp(107, 9))


def test_a_server_that_has_just_started_tells_its_own_time() -> None:
    own, other = Timestamp(100, 1), Timestamp(101, 1)
    assert cluster_time({"operationTime": own}) == own
    assert cluster_time({"operationTime": own, "$clusterTime": {"clusterTime": other}}) == other


def test_after_a_while_a_detection_is_stamped_with_a_time_that_is_known(
    client: FlaskClient, app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the database's clock did meanwhile."""
    context: Context = app.extensions["context"]
    inserts = context.recording.recorder._inserts
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
    monkeypatch.setattr(inserts._clock, "_cluster_time", Timestamp(int(time.time()) - 60, 1))
    send(client, 102)
    assert renewed == [1]
