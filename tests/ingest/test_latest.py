"""The collection `latest`: what each commit leaves there, and what a reader learns from it."""

import threading
import time
from typing import Any

import pytest
from bson import ObjectId
from flask import Flask
from flask.testing import FlaskClient
from pymongo.database import Database

from ingest.context import Context
from ingest.storage.directory import Place
from ingest.storage.latest import Latest, Version
from ingest.storage.latest_updates import CHANGES, RECENT

GOOD = {"user_address": "7", "beacon_address": "C2A628384B08", "rssi": -20}


def send(client: FlaskClient, timestamp: int | None = None, **more: Any) -> None:
    given = {} if timestamp is None else {"timestamp": timestamp}
    assert client.post("/newbeacondetect", json=GOOD | given | more).status_code == 200


def shown(database: Database[Any], staff_id: object = 7) -> dict[str, Any]:
    document: dict[str, Any] | None = database["latest"].find_one({"_id": staff_id})
    assert document
    return document


def since(found: dict[str, Any]) -> list[int]:
    """Return from which timestamp on each commit changed something."""
    return [change % 2**32 for change in found["changes"]]


def test_it_holds_the_newest_of_each_in_order(client: FlaskClient, database: Database[Any]) -> None:
    began = int(time.time() * 1000) - 1000
    for timestamp in (100, 300, 200, 50, *range(400, 400 + RECENT - 2)):
        send(client, timestamp)
    found = shown(database)
    steps = sum(change >> 32 for change in found["changes"])
    assert 0 < found["version"] - steps - began < 60_000
    assert since(found) == [100, 300, 200, 50, *range(400, 400 + RECENT - 2)]
    newest = [*reversed(range(400, 400 + RECENT - 2)), 300, 200]
    assert [one["timestamp"] for one in found["recent"]] == newest
    stored = database["staff"].find_one({"timestamp": 300}, {"staff_id": 0})
    assert stored
    assert found["recent"][-2] == {"id": stored.pop("_id")} | stored


def test_a_repeat_changes_nothing(client: FlaskClient, database: Database[Any]) -> None:
    url = "/extractbeacon?staff_id=7&start_time=0&end_time=4102444800"
    send(client, 100, event_id="a")
    send(client, 200, event_id="b")
    before, etag = shown(database), client.get(url).headers["ETag"]
    send(client, 100, event_id="a")
    assert shown(database) == before
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 304


def test_a_repeat_of_what_is_shown_no_more_shows_nothing_twice(
    client: FlaskClient, database: Database[Any]
) -> None:
    for timestamp in range(100, 100 + RECENT + 1):
        send(client, timestamp, event_id="a")
    before = shown(database)
    send(client, 100, event_id="a")  # whether its version was ever raised cannot be told
    found = shown(database)
    assert found["recent"] == before["recent"]
    assert found["version"] > before["version"]


def test_a_repeat_shows_what_is_stored_and_not_what_it_brings(
    client: FlaskClient, database: Database[Any]
) -> None:
    send(client, event_id="no-time")
    (stored,) = database["staff"].find()
    database["latest"].delete_many({})  # as if the first try had ended before its note
    database["staff"].update_one({}, {"$set": {"timestamp": stored["timestamp"] - 500}})
    send(client, event_id="no-time")
    found = shown(database)
    assert since(found) == [stored["timestamp"] - 500]
    assert [one["timestamp"] for one in found["recent"]] == [stored["timestamp"] - 500]


def test_a_batch_is_one_change_for_each_staff_member(app: Flask, database: Database[Any]) -> None:
    context: Context = app.extensions["context"]
    documents = [
        {"_id": ObjectId(), "staff_id": n % 3, "timestamp": 1000 + n, "received_at": None}
        | {"mac": "A" * 12, "rssi": -1, "level": "$level", "location": "$$ROOT"}
        for n in range(60)
    ]
    context.latest.record_changes(documents)
    for staff_id in range(3):
        found = shown(database, staff_id)
        assert since(found) == [1000 + staff_id]
        assert {one["location"] for one in found["recent"]} == {"$$ROOT"}
        assert len(found["recent"]) == RECENT


def test_commits_at_once_are_all_counted(app: Flask, database: Database[Any]) -> None:
    def bump() -> None:
        latest = Latest(app.extensions["context"].client.database["latest"])
        for n in range(10):
            document = dict.fromkeys(("received_at", "mac", "rssi", "level", "location"))
            latest.record_changes([document | {"_id": ObjectId(), "staff_id": n, "timestamp": n}])

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
    document = dict.fromkeys(("received_at", "mac", "rssi", "level", "location"))
    latest.record_changes([document | {"_id": ObjectId(), "staff_id": 7, "timestamp": 1}])
    before = latest.versions([7])[7].number
    latest.record_changes([document | {"_id": ObjectId(), "staff_id": 7, "timestamp": 2**40}])
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


def test_an_edit_in_place_makes_everything_read_again(
    client: FlaskClient, database: Database[Any]
) -> None:
    send(client, 100)
    send(client, 200, beacon_address="AABBCCDDEEFF")
    context: Context = client.application.extensions["context"]
    before = context.latest.versions([7])[7].number
    places = [Place("4", "$Corrected"), Place("unknown", "unknown")]
    for mac in ("C2A628384B08", "AABBCCDDEEFF"):
        context.latest.correct([7, 8], mac, places)
    versions = context.latest.versions([7, 8])
    assert set(versions) == {7}  # who has no detections gets no entry
    assert versions[7].changed_since(before) == 0
    (entry,) = context.latest.entries([7, 8])
    assert [one.location for one in entry.recent] == ["unknown", "$Corrected"]
