"""Rows of an older database, without what is stored now or with times in milliseconds."""

import time
from typing import Any

import pytest
from bson.datetime_ms import DatetimeMS
from flask import Flask
from pymongo.database import Database

from ingest.assembly import Context
from tests.services.ingest.api.conftest import MAC, Api

NOW = int(time.time())
PLACE = {"level": "4", "location": "Lobby B"}
OLDER: dict[str, dict[str, Any]] = {
    "without received_at": {"timestamp": NOW - 60, "mac": MAC, "rssi": -60} | PLACE,
    "in milliseconds": {"timestamp": (NOW - 60) * 1000, "mac": MAC, "rssi": -60} | PLACE,
    "with a fraction": {"timestamp": NOW - 59.5, "mac": MAC, "rssi": -60.0} | PLACE,
    "with nothing else": {"timestamp": NOW - 60, "mac": MAC},
    "without a time": {"timestamp": None, "mac": MAC, "rssi": -60} | PLACE,
    "of another kind": {"timestamp": "x", "mac": MAC, "rssi": "x", "level": 4, "location": {}},
    "with dates that no calendar has": {
        "timestamp": NOW - 60,
        "received_at": DatetimeMS(2**60),
        "mac": MAC,
        "rssi": -60,
    }
    | PLACE,
    "with a huge time": {"timestamp": 2**62, "mac": MAC, "rssi": -60} | PLACE,
}


@pytest.fixture(params=OLDER)
def row(request: pytest.FixtureRequest, database: Database[Any]) -> dict[str, Any]:
    document = {"staff_id": 7} | OLDER[request.param]
    database["staff"].insert_one(dict(document))
    return document


@pytest.fixture
def context(app: Flask) -> Context:
    extension: Context = app.extensions["context"]
    return extension


def test_histories_and_the_last_minutes(api: Api, row: dict[str, Any]) -> None:
    query = {"staff_id": 7, "start_time": 0, "end_time": 253_402_300_799}
    answer = api.client.get("/extractbeacon", query_string=query)
    assert answer.status_code == 200
    for place in answer.json["location"]:  # type: ignore[index]
        assert all(isinstance(place[name], str) for name in PLACE)
        assert abs(place["timestamp"] - NOW) < 100
    assert api.client.get("/retrieveformonitoring").status_code == 200
    api.get("/staff/7/detections")  # checked against its schema
    answer = api.client.get("/api/v1/staff/7/detections?format=csv")
    assert answer.status_code == 200


def test_the_back_fill(api: Api, context: Context, row: dict[str, Any]) -> None:
    timed = isinstance(row["timestamp"], int | float)
    assert context.recording.back_fill.fill() == int(timed)
    context.people.notes.bring_up()
    assert context.recording.back_fill.fill() == 0
    everyone = api.get("/staff")["data"]
    assert len(everyone) == int(timed)
    if timed and row["timestamp"] < 2**62:
        assert abs(everyone[0]["timestamp"] - NOW) < 100
    api.hear(7)
    assert api.get("/staff")["data"][0]["staff_id"] == 7


def test_everybody_whose_shard_answers(api: Api, context: Context, row: dict[str, Any]) -> None:
    context.recording.back_fill.fill()
    context.people.notes.bring_up()
    timed = isinstance(row["timestamp"], int | float)
    for _ in range(2):
        context.people.last_positions._doubtful = True  # as after a read that took too long
        assert len(api.get("/staff")["data"]) == int(timed)


def test_a_correction_of_the_past(api: Api, database: Database[Any]) -> None:
    for number, row in enumerate(OLDER.values()):
        database["staff"].insert_one({"staff_id": number} | row)
    database["staff"].insert_one(dict(OLDER["without received_at"]))  # nobody's
    place = {"level": "5", "location": "Roof"}
    answer = api.client.put(f"/api/v1/beacons/{MAC}?correct_past=1", json=place)
    assert answer.status_code == 200, answer.text
    for number in range(len(OLDER)):
        api.hear(number)
    everyone = api.get("/staff")["data"]
    assert {person["level"] for person in everyone} == {"5"}
    assert {person["staff_id"] for person in everyone} == set(
        range(len(OLDER))
    )  # nobody is "unknown"


def test_the_change_feed(api: Api, database: Database[Any]) -> None:
    cursor = api.client.get("/api/v1/changes").get_data(as_text=True).split('"')[3]
    for row in OLDER.values():
        database["staff"].insert_one({"staff_id": 7} | row)
    lines: list[str] = []
    deadline = time.monotonic() + 30
    while len(lines) < len(OLDER):
        assert time.monotonic() < deadline
        answer = api.client.get(f"/api/v1/changes?wait=1&after={cursor}")
        assert answer.status_code == 200
        *changes, last = answer.get_data(as_text=True).splitlines()
        lines += changes
        cursor = last.split('"')[3]
    assert len(lines) == len(OLDER)


def test_pages_over_fractions_of_a_second_lose_nothing(api: Api, database: Database[Any]) -> None:
    times = [100, 100.2, 100.5, 99.5, 100, 101, 99]
    for time_ in times:
        row = {"staff_id": 7, "timestamp": time_, "mac": MAC, "rssi": -60} | PLACE
        database["staff"].insert_one(row)
    for limit in (1, 2, 3, 7):
        ids: list[str] = []
        query: dict[str, Any] = {"limit": limit}
        while query.get("cursor", "first"):
            page = api.get("/staff/7/detections", **query)
            ids += [detection["id"] for detection in page["data"]]
            query["cursor"] = page["next"]
        assert len(ids) == len(set(ids)) == len(times)


def test_the_newest_are_not_hidden_by_milliseconds(
    api: Api, context: Context, database: Database[Any]
) -> None:
    for number in range(10):
        old = {"staff_id": 7.0, "timestamp": (NOW - 9000 + number) * 1000, "mac": MAC, "rssi": -60}
        database["staff"].insert_one(old | PLACE)
    database["staff"].insert_one({"staff_id": 7, "timestamp": NOW - 9, "mac": MAC} | PLACE)
    assert context.recording.back_fill.fill() == 1
    (one,) = api.get("/staff")["data"]
    assert (one["staff_id"], one["timestamp"]) == (7, NOW - 9)
