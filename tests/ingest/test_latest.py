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
from ingest.storage.latest import CHANGES, RECENT, Latest, Version

GOOD = {"user_address": "7", "beacon_address": "C2A628384B08", "rssi": -20}


def send(client: FlaskClient, timestamp: int | None = None, **more: Any) -> None:
    given = {} if timestamp is None else {"timestamp": timestamp}
    assert client.post("/newbeacondetect", json=GOOD | given | more).status_code == 200


def shown(database: Database[Any], staff_id: object = 7) -> dict[str, Any]:
    document: dict[str, Any] | None = database["latest"].find_one({"_id": staff_id})
    assert document
    return document


def test_it_holds_the_newest_of_each_in_order(client: FlaskClient, database: Database[Any]) -> None:
    began = time.time() * 1000 - 1000
    for timestamp in (100, 300, 200, 50, *range(400, 400 + RECENT - 2)):
        send(client, timestamp)
    found = shown(database)
    assert 0 < found["version"] - began - RECENT < 60_000
    assert found["changes"] == [100, 300, 200, 50, *range(400, 400 + RECENT - 2)]
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
    assert (found["version"], found["recent"]) == (before["version"] + 1, before["recent"])


def test_a_repeat_shows_what_is_stored_and_not_what_it_brings(
    client: FlaskClient, database: Database[Any]
) -> None:
    send(client, event_id="no-time")
    (stored,) = database["staff"].find()
    database["latest"].delete_many({})  # as if the first try had ended before its note
    database["staff"].update_one({}, {"$set": {"timestamp": stored["timestamp"] - 500}})
    send(client, event_id="no-time")
    found = shown(database)
    assert found["changes"] == [stored["timestamp"] - 500]
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
        assert found["changes"] == [1000 + staff_id]
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


@pytest.mark.parametrize(
    ("have", "since"),
    [(0, None), (7, None), (8, 100), (9, 100), (10, 300), (11, None), (12, None)],
)
def test_what_a_reader_has_to_read_again(have: int, since: int | None) -> None:
    assert Version(11, [200, 100, 300]).changed_since(have) == since


def test_only_the_last_changes_are_kept(client: FlaskClient, database: Database[Any]) -> None:
    for timestamp in range(CHANGES + 3):
        send(client, timestamp)
    assert shown(database)["changes"] == list(range(3, CHANGES + 3))


def test_an_edit_in_place_makes_everything_read_again(
    client: FlaskClient, database: Database[Any]
) -> None:
    for timestamp in (100, 200):
        send(client, timestamp)
    context: Context = client.application.extensions["context"]
    database["staff"].update_many({}, {"$set": {"location": "Corrected"}})
    context.latest.rewrite({7: context.detections.newest(7, RECENT)})
    found = context.latest.versions([7, 8])
    assert found == {7: Version(shown(database)["version"], [100, 200, 0])}
    (entry,) = context.latest.entries([7, 8])
    assert [one.location for one in entry.recent] == ["Corrected"]
