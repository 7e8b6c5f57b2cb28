"""What is older than RETENTION_DAYS is told by no address, and deleted soon."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database

from ingest import create_app
from ingest.config import Config
from ingest.recording.expiry import Expiry
from ingest.recording.steady_clock import SteadyClock
from ingest.rules.retention import Retention
from ingest.storage.detections.expired import BLOCKS, PIECE, Expired
from ingest.storage.sealed.blocks import of_row, sealed
from ingest.storage.sealed.sealed import HEAD
from ingest.tasks.repeated import AT_ONCE
from tests.services.ingest.api.conftest import Api
from tests.services.ingest.sealed.test_blocks import row

HOUR, DAY = 3600, 86_400
OTHER, STRANGER = "A0B1C2D3E4F5", "C0FFEE000001"


@pytest.fixture
def day(
    api: Api,  # it brings the database to its beginning
    mongod: str,
    tmp_path: Path,
) -> Iterator[Api]:
    """Return a service that keeps one day."""
    spool = str(tmp_path / "day.db")
    config = Config(mongodb_uri=mongod, mongodb_timeout_ms=5000, spool_file=spool, retention_days=1)
    kept = Api(create_app(config))
    yield kept
    kept.context.close()


def delete_all(service: Api) -> None:
    while service.context.recording.expiry.delete_some() == AT_ONCE:
        pass


def test_what_is_due_is_told_by_no_address(day: Api) -> None:
    began = int(time.time())
    day.client.put(f"/api/v1/beacons/{OTHER}", json={"level": "5", "location": "Library"})
    day.hear("gone", OTHER, ago=2 * DAY)
    day.hear("gone", STRANGER, ago=2 * DAY)
    day.hear("both", ago=2 * DAY)
    day.hear("both", ago=60)
    assert [row["staff_id"] for row in day.get("/staff")["data"]] == ["both"]
    everything = {"staff_id": "both", "start_time": 0, "end_time": 2**31}
    answer = day.client.get("/extractbeacon", query_string=everything)
    assert answer.json is not None
    assert len(answer.json["location"]) == 1
    assert len(day.get("/staff/both/detections")["data"]) == 1
    assert day.get("/staff/both/detections", to=began - DAY - HOUR)["data"] == []
    assert len(day.client.get("/api/v1/staff/both/detections?format=csv").text.splitlines()) == 2
    assert day.client.get("/api/v1/staff/gone/detections").status_code == 404
    days = {"from": began - 3 * DAY, "to": began}
    visits = day.get("/visits", location="Lobby B", **days)
    assert [visit["detections"] for visit in visits["data"]] == [1]
    assert day.get("/visits", location="Library", **days)["data"] == []
    last = {place["location"]: place["last_visited"] for place in day.get("/coverage")["data"]}
    assert last["Library"] is None
    assert last["Lobby B"] is not None
    assert day.get("/beacons/unknown")["data"] == []
    lines = day.client.get(f"/api/v1/changes?from={began}").text.splitlines()
    changes = [json.loads(line) for line in lines[:-1]]
    people = [change["staff_id"] for change in changes if change["staff_id"] in ("gone", "both")]
    assert people == ["both"]


def test_what_becomes_due_goes_from_what_is_cached(
    day: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    day.hear("moved", ago=HOUR * 3)
    day.hear("moved", ago=5)  # no freshness changes meanwhile
    day.hear("left", ago=HOUR * 3)
    address = "/extractbeacon?staff_id=moved&start_time=0&end_time=2147483648"

    def rows() -> tuple[int, str]:
        answer = day.client.get(address)
        assert answer.json is not None
        return len(answer.json["location"]), answer.headers["ETag"]

    def people() -> tuple[list[str], str]:
        answer = day.client.get("/api/v1/staff")
        assert answer.json is not None
        return [row["staff_id"] for row in answer.json["data"]], answer.headers["ETag"]

    before = rows(), people()
    assert (rows(), people()) == before
    assert [before[0][0], before[1][0]] == [2, ["left", "moved"]]
    floor = int(time.time()) - HOUR
    monkeypatch.setattr(Retention, "floor", lambda _: floor)
    after = rows(), people()
    assert [after[0][0], after[1][0]] == [1, ["moved"]]
    assert after[0][1] != before[0][1]
    assert after[1][1] != before[1][1]


def test_what_is_due_is_deleted_in_pieces(day: Api, database: Database[Any]) -> None:
    now = int(time.time())
    due = [{"staff_id": 1, "timestamp": now - 3 * DAY - n // 3} for n in range(9)]
    stood_still = now - 2 * DAY
    due += [{"staff_id": 1, "timestamp": stood_still} for _ in range(2 * PIECE)]
    older = [
        {"staff_id": 1, "timestamp": (now - 2 * DAY) * 1000},
        {"staff_id": 1, "timestamp": datetime.fromtimestamp(now - 2 * DAY, UTC)},
    ]
    kept = [
        {"staff_id": 2, "timestamp": now - 13 * HOUR},
        {"staff_id": 2, "timestamp": (now - 60) * 1000},
        {"staff_id": 2, "timestamp": datetime.fromtimestamp(now - 60, UTC)},
        {"staff_id": 2},
    ]
    database["staff"].insert_many(due + older + kept)
    assert day.context.recording.expiry.delete_some() == AT_ONCE
    assert PIECE <= len(due) + len(older) + len(kept) - count(database) <= PIECE + 5
    delete_all(day)
    assert count(database) == len(kept)
    assert {row["staff_id"] for row in database["staff"].find()} == {2}


def test_a_block_goes_when_all_of_it_is_due(day: Api, database: Database[Any]) -> None:
    """What is due of one that reaches beyond is told to nobody; its person's head goes last."""
    floor = day.context.retention.floor()

    def block(staff_id: str, *times: int) -> dict[str, Any]:
        rows = [row(timestamp) | {"staff_id": staff_id} for timestamp in times]
        return sealed(staff_id, [of_row(one) for one in rows]) | {"sealed_at": floor}

    def head(staff_id: str) -> dict[str, Any]:
        name = {"staff_id": staff_id, "last": HEAD}
        return {"_id": name, "staff_id": staff_id, "version": 7}

    database["sealed"].insert_many(
        [
            head("gone"),
            *(block("gone", floor - 100 * n - 9, floor - 100 * n - 1) for n in range(BLOCKS + 1)),
            head("both"),
            block("both", floor - 900, floor - 800),
            block("both", floor - 10, floor - 1, floor, floor + 5),
        ]
    )
    assert Expired(database["staff"]).keeps_any(floor)
    assert not Expired(database["staff"]).keeps_any(floor + 6)
    told = day.get("/staff/both/detections", **{"from": 0})["data"]
    assert [detection["timestamp"] for detection in told] == [floor + 5, floor]
    assert day.context.recording.expiry.delete_some() == AT_ONCE
    left = database["sealed"].count_documents({"count": {"$exists": True}})
    assert left == BLOCKS + 3 - BLOCKS
    delete_all(day)
    assert [block["_id"]["last"] for block in database["sealed"].find().sort("_id")] == [
        floor + 5,
        HEAD,
    ]
    assert database["sealed"].distinct("staff_id") == ["both"]


def test_nothing_is_deleted_by_a_clock_that_was_set(day: Api, database: Database[Any]) -> None:
    """By one that jumps ten years ahead everything would be due."""
    day.hear("kept", ago=60)
    ahead = 0.0
    retention = Retention(1, lambda: time.time() + ahead)
    steady = SteadyClock(clock=lambda: time.time() + ahead)
    expiry = Expiry(retention, Expired(database["staff"]), steady)
    ahead = 3650.0 * DAY
    assert retention.floor() > time.time()
    assert expiry.delete_some() != AT_ONCE
    assert count(database) == 1


def test_where_all_is_due_it_is_deleted_a_day_later(day: Api, database: Database[Any]) -> None:
    """The clock may be wrong since the start; or nobody was heard for so long."""
    day.hear("old", ago=3 * DAY)
    passed = 0.0
    clock = SteadyClock(None, lambda: 1e9 + passed, lambda: passed)
    expiry = Expiry(Retention(1), Expired(database["staff"]), clock)
    assert expiry.delete_some() != AT_ONCE
    assert count(database) == 1
    passed = DAY + 1.0
    assert expiry.delete_some() == AT_ONCE
    assert count(database) == 0


def test_what_came_by_a_wrong_clock_is_no_proof_of_it(day: Api, database: Database[Any]) -> None:
    """A clock that was ahead before the start: all of the truth is due, and what comes is kept."""
    day.hear("true", ago=0)

    def clock() -> float:
        return time.time() + 400 * DAY

    steady = SteadyClock(clock=clock)
    expiry = Expiry(Retention(30, clock), Expired(database["staff"]), steady)
    database["staff"].insert_one({"staff_id": "came", "timestamp": int(clock()) - 60})
    fresh = SteadyClock()
    assert fresh.is_right(lambda: False, "sealed") is False
    assert fresh.warning() == ""  # a quiet week is no mistake
    assert expiry.delete_some() != AT_ONCE
    assert count(database) == 2
    assert steady.warning() == "tells that all is old: nothing is deleted for a day"
    # What is kept of some days ago was there before.
    database["staff"].insert_one({"staff_id": "kept", "timestamp": int(clock()) - 9 * DAY})
    assert expiry.delete_some() == AT_ONCE
    assert {row["staff_id"] for row in database["staff"].find()} == {"came", "kept"}


def test_a_clock_is_compared_with_the_databases_and_with_what_is_stored(
    day: Api, database: Database[Any]
) -> None:
    day.hear("kept", ago=13 * HOUR)
    day.hear("due", ago=3 * DAY)
    recording = day.context.recording
    assert recording.sealing.steady.doubt() == ""

    def doubt(ahead: float) -> str:
        witnesses = recording.sealing.steady.witnesses

        def clock() -> float:
            return time.time() + ahead

        steady = SteadyClock(witnesses, clock)
        said = steady.doubt()
        expiry = Expiry(Retention(1, clock), Expired(database["staff"]), steady)
        assert (expiry.delete_some() == AT_ONCE) == (not said)
        return said

    assert doubt(-400 * DAY) == "is 400 days behind the database's"
    assert doubt(5 * HOUR) == "is 5 hours ahead of the database's"
    database["staff"].insert_one({"staff_id": 1, "timestamp": int(time.time()) + 3 * DAY})
    assert doubt(0).startswith("is behind a time that is stored, or was ahead when")
    database["staff"].delete_one({"staff_id": 1})
    assert doubt(0) == ""


def test_without_it_all_is_kept(api: Api, database: Database[Any]) -> None:
    api.hear("old", ago=900 * DAY)
    api.context.recording.expiry.start()
    assert api.context.recording.expiry.delete_some() != AT_ONCE
    assert count(database) == 1
    assert len(api.get("/staff/old/detections")["data"]) == 1


def count(database: Database[Any]) -> int:
    return database["staff"].count_documents({})
