"""The collection `latest`: what each commit leaves there, and what a reader learns from it."""

import threading
import time
from typing import Any

import pytest
from bson import ObjectId
from flask import Flask
from flask.testing import FlaskClient
from pymongo.database import Database

from ingest.context import Store
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


def test_a_repeat_grows_the_version_and_shows_nothing_twice(
    client: FlaskClient, database: Database[Any]
) -> None:
    send(client, 100, event_id="a")
    first = shown(database)["version"]
    send(client, 200, event_id="b")
    send(client, 100, event_id="a")
    found = shown(database)
    assert (found["version"] - first, found["changes"]) == (2, [100, 200, 100])
    assert [one["timestamp"] for one in found["recent"]] == [200, 100]


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
    store: Store = app.extensions["store"]
    documents = [
        {"_id": ObjectId(), "staff_id": n % 3, "timestamp": 1000 + n, "received_at": None}
        | {"mac": "A" * 12, "rssi": -1, "level": "$level", "location": "$$ROOT"}
        for n in range(60)
    ]
    store.latest.bump(documents)
    for staff_id in range(3):
        found = shown(database, staff_id)
        assert found["changes"] == [1000 + staff_id]
        assert {one["location"] for one in found["recent"]} == {"$$ROOT"}
        assert len(found["recent"]) == RECENT


def test_commits_at_once_are_all_counted(app: Flask, database: Database[Any]) -> None:
    def bump() -> None:
        latest = Latest(app.extensions["store"].client["ICT3102"]["latest"])
        for n in range(10):
            document = dict.fromkeys(("received_at", "mac", "rssi", "level", "location"))
            latest.bump([document | {"_id": ObjectId(), "staff_id": n, "timestamp": n}])

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
    store: Store = client.application.extensions["store"]
    database["staff"].update_many({}, {"$set": {"location": "Corrected"}})
    store.latest.rewrite({7: store.detections.newest(7, RECENT)})
    told = store.latest.versions([7, 8])
    assert told == {7: Version(shown(database)["version"], [100, 200, 0])}
    (found,) = store.latest.everyone()
    assert [one["location"] for one in found["recent"]] == ["Corrected"] * 2
