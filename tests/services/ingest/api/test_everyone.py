"""Everybody at once: exact for each who asks, cheap where nothing changed, small in memory."""

import datetime
import random
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bson import ObjectId
from bson.int64 import Int64
from flask import Flask, Response
from flask.testing import FlaskClient
from pymongo.database import Database

from ingest import create_app
from ingest.api.people.last_positions import LastDetection
from ingest.api.people.staff import Now, Staff
from ingest.assembly import Context
from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.rules.where import RECENT
from ingest.storage.people.latest import Latest
from ingest.storage.people.notes import Notes
from tests.services.ingest.api.conftest import MAC, Api

MIB = 1 << 20


@pytest.fixture
def other(mongod: str, app: Flask, tmp_path: Path) -> Iterator[Api]:
    """Return a second service on the same database."""
    del app  # it has emptied the database
    spool = str(tmp_path / "other.db")
    application = create_app(Config(mongodb_uri=mongod, spool_file=spool))
    yield Api(application)
    application.extensions["context"].close()


def crowd(database: Database[Any], count: int, times: int = RECENT) -> None:
    """Let so many people have been heard now, a tenth of them on another level."""
    now = datetime.datetime.now(datetime.UTC)
    seconds = int(now.timestamp())

    def shown(staff_id: int, number: int) -> dict[str, Any]:
        detection = {"id": ObjectId(), "timestamp": seconds - number, "received_at": now}
        place = {"level": "5" if staff_id % 10 == 0 else "4", "location": "Lobby B"}
        return detection | {"mac": MAC, "rssi": -60} | place

    database["latest"].insert_many(
        {"_id": staff_id, "version": Int64(seconds * 1000 + staff_id), "changes": [seconds] * 32}
        | {"recent": [shown(staff_id, number) for number in range(times)]}
        for staff_id in range(count)
    )


def test_only_who_changed_is_read_again(
    api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    entries = Latest.entries

    def spied(self: Latest, staff_ids: list[Any], as_of: Any = None) -> Any:
        asked.append(len(staff_ids))
        return entries(self, staff_ids, as_of)

    monkeypatch.setattr(Latest, "entries", spied)
    crowd(database, 600)
    assert len(api.get("/staff")["data"]) == 600
    assert sum(asked) == 600
    asked.clear()
    api.get("/staff")
    api.get("/now")
    assert asked == []
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    api.hear(7)
    api.hear("new")
    everybody = api.get("/staff")["data"]
    assert len(everybody) == 601
    assert asked == []  # nothing is noted: who is new, and no other, is read with what is noted
    api.context.people.notes.bring_up()
    assert api.get("/staff")["data"] == everybody
    assert asked == [2]
    database["latest"].delete_one({"_id": 7})
    assert 7 not in [row["staff_id"] for row in api.get("/staff")["data"]]


def test_what_was_acknowledged_is_there_whoever_took_it(api: Api, other: Api) -> None:
    """Several phones and readers at two services: each reads what it was just told is stored."""
    base = int(time.time()) - 100

    def walk(staff_id: int) -> None:
        mine = random.Random(staff_id)
        services = [Api(client.client.application) for client in (api, other)]
        for number in range(15):
            mac = f"{staff_id + 1:06X}{number:06X}"
            mine.choice(services).hear(staff_id, mac, timestamp=base + number)
            rows = mine.choice(services).get("/staff")["data"]
            assert [row["mac"] for row in rows if row["staff_id"] == staff_id] == [mac]

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(walk, range(4)))


def test_both_services_give_the_same_tag(
    api: Api, other: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.hear(1)
    other.hear(2, ago=30)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    for path in ("/staff", "/now", "/now?level=4"):
        tags = {
            service.client.get(f"/api/v1{path}").headers["ETag"] for service in (api, other, api)
        }
        assert len(tags) == 1


def test_a_freshness_that_changes_changes_the_tag(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = api.hear(1)
    tags = []
    for age in (0, 60, 61, 900, 901, 5000):
        now = heard + age + 0.5
        monkeypatch.setattr(time, "time", lambda now=now: now)
        answer = api.client.get("/api/v1/staff")
        assert answer.json is not None
        tags.append((answer.json["data"][0]["freshness"], answer.headers["ETag"]))
    assert [freshness for freshness, _ in tags] == [*["now"] * 2, *["recent"] * 2, *["stale"] * 2]
    assert len(set(tags)) == 3
    assert len({tag for _, tag in tags}) == 3


@pytest.mark.long
@pytest.mark.parametrize("count", [0, 1, 1200, 6000])
def test_an_answer_in_pieces_is_the_same_json(
    api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    if count:
        crowd(database, count)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    kinds: list[tuple[str, type[Staff | Now]]] = [("/staff", Staff), ("/now", Now)]
    for path, kind in kinds:
        text = api.client.get(f"/api/v1{path}").data
        answer = msgspec.json.decode(text, type=kind)  # checks each field
        assert msgspec.json.encode(answer) + b"\n" == text
        assert answer.complete
    staff = msgspec.json.decode(api.client.get("/api/v1/staff").data, type=Staff).data
    assert [person.staff_id for person in staff] == list(range(count))
    assert all(isinstance(person, LastDetection) for person in staff)
    by_level = msgspec.json.decode(api.client.get("/api/v1/now").data, type=Now).levels
    assert [level.level for level in by_level] == {0: [], 1: ["5"]}.get(count, ["4", "5"])
    assert sum(len(level.staff) for level in by_level) == count


def drained(client: FlaskClient, path: str) -> int:
    """Read an answer as it comes, and keep nothing of it."""
    with client.get(path) as answer:
        assert answer.status_code == 200
        return sum(len(piece) for piece in answer.response)


@pytest.mark.long
def test_five_thousand_people_take_little_memory_and_a_304_little_time(
    app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd(database, 5000)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)  # nobody's freshness changes meanwhile
    client = FlaskClient(app, Response)
    peaks = []
    for path in ("/api/v1/staff", "/api/v1/staff", "/api/v1/now"):
        tracemalloc.start()
        assert drained(client, path) > MIB / 2
        peaks.append(tracemalloc.get_traced_memory()[1] / MIB)
        tracemalloc.stop()
    assert peaks[0] < 6  # all of them as the driver and msgspec have them: 48
    assert max(peaks[1:]) < 2
    etag = client.get("/api/v1/staff").headers["ETag"]

    def cost(headers: dict[str, str], status: int) -> float:
        began = time.process_time()
        with client.get("/api/v1/staff", headers=headers) as answer:
            assert answer.status_code == status
            for _ in answer.response:
                pass
        return time.process_time() - began

    held, not_held = {"If-None-Match": etag}, {"If-None-Match": 'W/"0"'}
    # In turns, and of many the least: on a busy machine the same work takes more CPU time as well.
    costs = [(cost(held, 304), cost(not_held, 200)) for _ in range(30)]
    assert min(one for one, _ in costs) < 0.8 * min(whole for _, whole in costs)


@pytest.mark.long
def test_pages_of_fifty_thousand_people_take_little_memory(
    app: Flask, database: Database[Any]
) -> None:
    crowd(database, 50_000, times=1)
    client = FlaskClient(app, Response)
    peaks = []
    for path in ("/staff?limit=500", "/now?limit=500&level=4&after=40000", "/staff"):
        tracemalloc.start()
        assert drained(client, f"/api/v1{path}") > MIB / 16
        peaks.append(tracemalloc.get_traced_memory()[1] / MIB)
        tracemalloc.stop()
    assert peaks[0] < 27  # with what is kept of them
    assert max(peaks[1:]) < 9  # beside that, also of everybody


def test_nobody_is_not_told_when_no_shard_answers(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise StoreUnavailable("away")

    api.hear(1)
    monkeypatch.setattr(Latest, "every_version", away)
    monkeypatch.setattr(Notes, "arrived_there", lambda _: ({}, False))
    monkeypatch.setattr(Latest, "every_version_there", lambda _: ([], [], False))
    assert api.client.get("/api/v1/now").status_code == 503
    monkeypatch.setattr(Notes, "arrived_there", lambda _: ({}, True))
    monkeypatch.setattr(Latest, "every_version_there", lambda _: ([], [], True))
    assert api.get("/staff")["data"] == []


def test_who_was_read_before_a_failure_is_not_read_again(
    api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    context: Context = api.context
    crowd(database, 1200)
    entries, calls = Latest.entries, []

    def once_broken(self: Latest, staff_ids: list[Any], as_of: Any = None) -> Any:
        calls.append(len(staff_ids))
        if len(calls) == 2:
            raise StoreUnavailable("away")
        return entries(self, staff_ids, as_of)

    monkeypatch.setattr(Latest, "entries", once_broken)
    assert api.client.get("/api/v1/staff").status_code == 503
    assert len(context.people.last_positions.read().staff) == 1200
    assert calls == [500, 500, 500, 200]
