"""A database whose detections are older than the collection `latest`."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from pymongo import MongoClient
from pymongo.database import Database

from ingest.context import Context
from ingest.storage.latest_updates import RECENT
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
        old(who, OLD + n)
        for number, who in enumerate(PEOPLE)
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
    noted = {one["_id"]: one["recent"] for one in database["latest"].find()}
    for who in database["staff"].distinct("staff_id"):
        newest = database["staff"].find({"staff_id": who}).sort("timestamp", -1).limit(RECENT)
        shown = noted.get(who, [])
        if [one["timestamp"] for one in shown] != [one["timestamp"] for one in newest]:
            return False
        assert len({one["id"] for one in shown}) == len(shown)
    return True


def test_two_services_note_everybody_while_detections_come_in(
    mongod: str, services: list[Service]
) -> None:
    busy = ["guard-0", "guard-1", "guard-7", "nobody-before"]
    with MongoClient[dict[str, Any]](mongod) as client:
        with Phones(through(*(one.url for one in services)), busy) as phones:
            eventually(lambda: client["ICT3102"]["latest"].count_documents({}) > len(PEOPLE), 90)
            time.sleep(0.5)
        eventually(lambda: exact(client["ICT3102"]), 180)
        stored = client["ICT3102"]["staff"].count_documents({"staff_id": "nobody-before"})
    assert stored == phones.acknowledged["nobody-before"]
    for service in services:
        told = {one["staff_id"]: one for one in service.get("/api/v1/staff").json()["data"]}
        assert set(told) == {*PEOPLE, "nobody-before"}
        assert told[149]["timestamp"] == OLD + 1 + 149 % RECENT * 2
        assert told["guard-0"]["freshness"] in ("now", "recent")  # "now" is a minute
        assert len(service.history(149)) == 2 + 149 % RECENT * 2


def test_what_is_noted_stays_as_it_is(app: Flask, upgraded: Database[Any]) -> None:
    upgraded["staff"].insert_one({"staff_id": "broken", "timestamp": None})  # heard at no time
    context: Context = app.extensions["context"]
    assert context.back_fill.fill() == len(PEOPLE)
    context.notes.bring_up()  # their stamps, which the thread does
    before = list(upgraded["latest"].find())
    assert context.back_fill.fill() == 0
    assert list(upgraded["latest"].find()) == before
    upgraded["staff"].delete_one({"staff_id": "broken"})
    assert exact(upgraded)
