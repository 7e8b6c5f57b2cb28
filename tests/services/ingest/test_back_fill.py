"""A database whose detections are older than the collection `latest`."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bson import Timestamp
from flask import Flask
from flask.testing import FlaskClient
from pymongo import MongoClient
from pymongo.database import Database

from ingest.assembly import Context
from ingest.recording import back_fill
from ingest.rules.detection_identity import event_key
from ingest.rules.where import RECENT
from ingest.storage.detections import documents
from ingest.storage.detections.inserts import Inserts
from ingest.storage.detections.stamps import NEW
from ingest.storage.people.latest import Latest
from scripts.processes.waiting import eventually
from tests.phones import BEACON, Phones, through
from tests.service import Service

PEOPLE = [*range(150), *(f"guard-{number}" for number in range(150))]
OLD = 1_700_000_000


def old(staff_id: object, timestamp: int) -> dict[str, Any]:
    """Return a detection as the source system keeps it."""
    place = {"level": "4", "location": "Lobby B", "mac": BEACON, "rssi": -60}
    return {"staff_id": staff_id, "timestamp": timestamp} | place


@pytest.fixture
def upgraded(app: Flask, database: Database[Any]) -> Database[Any]:
    """Return a database of many people, with fewer and with more detections than are shown."""
    rows = [
        old(staff_id, OLD + n)
        for number, staff_id in enumerate(PEOPLE)
        for n in range(2 + number % RECENT * 2)
    ]
    database["staff"].insert_many(rows)
    return database


@pytest.fixture
def services(mongod: str, upgraded: Database[Any], tmp_path: Path) -> Iterator[list[Service]]:
    services = [Service(mongod, tmp_path) for _ in range(2)]
    with contextlib.ExitStack() as held:
        for service in services:
            held.callback(service.kill)
            service.start()
        yield services


def exact(database: Database[Any]) -> bool:
    """Tell whether `latest` shows the newest of everybody, each once."""
    noted = {row["_id"]: row["recent"] for row in database["latest"].find()}
    for staff_id in database["staff"].distinct("staff_id"):
        newest = database["staff"].find({"staff_id": staff_id}).sort("timestamp", -1).limit(RECENT)
        shown = noted.get(staff_id, [])
        if [row["timestamp"] for row in shown] != [row["timestamp"] for row in newest]:
            return False
        assert len({row["id"] for row in shown}) == len(shown)
    return True


@pytest.mark.long
def test_two_services_note_everybody_while_detections_come_in(
    mongod: str, services: list[Service]
) -> None:
    busy = ["guard-0", "guard-1", "guard-7", "nobody-before"]
    with MongoClient[dict[str, Any]](mongod) as client:
        with Phones(through(*(running.url for running in services)), busy) as phones:
            eventually(lambda: client["ICT3102"]["latest"].count_documents({}) > len(PEOPLE), 90)
            time.sleep(0.5)
        eventually(lambda: exact(client["ICT3102"]), 180)
        stored = client["ICT3102"]["staff"].count_documents({"staff_id": "nobody-before"})
    assert stored == phones.acknowledged["nobody-before"]
    for service in services:
        people = {row["staff_id"]: row for row in service.get("/api/v1/staff").json()["data"]}
        assert set(people) == {*PEOPLE, "nobody-before"}
        assert people[149]["timestamp"] == OLD + 1 + 149 % RECENT * 2
        assert people["guard-0"]["freshness"] in ("now", "recent")  # "now" is a minute
        assert len(service.history(149)) == 2 + 149 % RECENT * 2


def test_what_is_noted_stays_as_it_is(app: Flask, upgraded: Database[Any]) -> None:
    upgraded["staff"].insert_one({"staff_id": "broken", "timestamp": None})  # heard at no time
    context: Context = app.extensions["context"]
    assert context.recording.back_fill.fill() == len(PEOPLE)
    context.people.notes.bring_up()  # their stamps, which the thread does
    before = list(upgraded["latest"].find())
    assert context.recording.back_fill.fill() == 0
    assert list(upgraded["latest"].find()) == before
    upgraded["staff"].delete_one({"staff_id": "broken"})
    assert exact(upgraded)


def test_nobody_is_shown_by_what_another_hand_deleted(
    client: FlaskClient, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is deleted, and while others note: the newest of what is left, or nothing."""
    context: Context = client.application.extensions["context"]
    monkeypatch.setattr(back_fill, "SWEEP_REST_SECONDS", 0)
    last = OLD + 2 * RECENT
    kinds = {
        "all": {"$gte": OLD},
        "heard again": {"$gte": OLD},
        "heard late": {"$gte": OLD},
        "newest": {"$gte": last - RECENT},
        "newest, heard late": {"$gt": last - RECENT},
        "all but the oldest": {"$gt": OLD},
        "some": {"$in": [last, last - 5]},
        "oldest": {"$lt": last - RECENT},
        "nothing": {"$lt": OLD},
    }
    staff = database["staff"]
    staff.insert_many([old(staff_id, OLD + n) for staff_id in kinds for n in range(2 * RECENT + 1)])
    context.recording.back_fill.fill()
    context.people.notes.bring_up()
    assert context.recording.back_fill.sweep() == 0
    for staff_id, timestamp in kinds.items():
        staff.delete_many({"staff_id": staff_id, "timestamp": timestamp})
    replace, renew = Latest.replace, Inserts.renew

    def hear(staff_id: str, timestamp: int) -> None:
        made = staff.insert_one(old(staff_id, timestamp) | {"stored": NEW})
        context.people.latest.record_changes(staff.find({"_id": made.inserted_id}))

    def while_others_note(*arguments: Any) -> Any:
        """What is late is older than what is gone: it is not shown with that."""
        hear("heard late", OLD - 1)
        hear("newest, heard late", last - RECENT)
        return replace(*arguments)

    def and_then(*arguments: Any) -> None:
        renew(*arguments)
        hear("heard again", last + 1)

    monkeypatch.setattr(Latest, "replace", while_others_note)
    monkeypatch.setattr(Inserts, "renew", and_then)
    assert context.recording.back_fill.sweep() == len(kinds) - 2
    monkeypatch.undo()
    monkeypatch.setattr(back_fill, "SWEEP_REST_SECONDS", 0)
    for _ in range(2):
        assert exact(database)
        staff_ids = {row["staff_id"] for row in client.get("/api/v1/staff").get_json()["data"]}
        assert staff_ids == kinds.keys() - {"all"}
        assert database["latest"].count_documents({}) == len(staff_ids)
        context.people.notes.bring_up()
        assert context.recording.back_fill.sweep() == 0


def test_a_service_looks_for_what_was_deleted(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(back_fill, "SWEEP_SECONDS", 0.05)
    context: Context = app.extensions["context"]
    database["staff"].insert_many(
        [old(staff_id, OLD) | {"stored": NEW} for staff_id in (7, "gone")]
    )
    context.people.notes.bring_up()
    assert database["latest"].count_documents({}) == 2
    context.recording.back_fill.start()
    database["staff"].delete_one({"staff_id": "gone"})
    eventually(lambda: [row["_id"] for row in database["latest"].find()] == [7], 30)


ICCID = 8_944_500_612_345_678_901


def test_numbers_above_2_53_become_texts(
    app: Flask, client: FlaskClient, database: Database[Any]
) -> None:
    """An older release stored them as numbers: in JavaScript two of them are one person."""
    people = [2**53, 2**53 + 1, ICCID]
    now = int(time.time())
    for staff_id in people:
        key = event_key("e", now)
        fields = (staff_id, ("4", "Lobby B"), now, -60, BEACON, float(now), key)
        database["staff"].insert_one(documents.document(*fields) | {"stored": Timestamp(now, 1)})
        database["latest"].insert_one({"_id": staff_id, "version": 1, "changes": [], "recent": []})
    database["staff"].insert_many([old(7, OLD), old(float("inf"), OLD)])
    context: Context = app.extensions["context"]
    context.recording.back_fill.fill()
    texts = {str(staff_id) for staff_id in people}
    assert set(database["staff"].distinct("staff_id")) == {*texts, 7, float("inf")}
    staff_ids = [row["staff_id"] for row in client.get("/api/v1/staff").get_json()["data"]]
    assert sorted(staff_ids, key=str) == sorted([*texts, 7], key=str)
    for staff_id in people:
        rows = client.get(f"/api/v1/staff/{staff_id}/detections").get_json()["data"]
        assert [row["timestamp"] for row in rows] == [now]
        item = {"staff_id": staff_id, "mac": BEACON, "rssi": -60, "event_id": "e", "timestamp": now}
        answer = client.post("/api/v1/detections", json=item).get_json()
        assert answer["results"][0]["status"] == "duplicate"  # its name is the same
    context.people.notes.bring_up()  # their stamps, which the thread does
    assert context.recording.back_fill.fill() == 0
