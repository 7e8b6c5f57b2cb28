"""Who was at a place, and when, against a plain computation of the same."""

import random
import time
import tracemalloc
from collections import defaultdict
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from ingest.storage.places import visits
from ingest.storage.places.visits import Visits
from tests.services.ingest.api.conftest import MAC, Api
from tests.services.ingest.api.test_older_rows import NOW, OLDER
from tests.services.ingest.test_indexes import Heard

BASE = 1_760_000_000
HERE = {"level": "4", "location": "Lobby B"}
PLACES = [HERE, {"level": "4", "location": "Lobby A"}, {"level": "5", "location": "Lobby B"}]
MACS = [MAC, "AABB00000001", "AABB00000002"]
PEOPLE = [0, 7, 12, "ann", "7a"]
HOUR = 3600
# By how much somebody's clock is ahead for a part of the time.
AHEAD = {7: 12 * HOUR, "ann": -3 * HOUR, "7a": HOUR}
MIB = 1 << 20

Row = dict[str, Any]


def rows(seed: int, count: int = 1500, seconds: int = 20_000) -> list[Row]:
    """Return random detections in runs, as walking people make them, some in the same second."""
    dice = random.Random(seed)
    made: list[Row] = []
    while len(made) < count:
        staff_id, place, mac = dice.choice(PEOPLE), dice.choice(PLACES), dice.choice(MACS)
        at = BASE + dice.randrange(seconds)
        ahead = dice.choice([0, AHEAD.get(staff_id, 0)])
        for _ in range(dice.randrange(1, 20)):
            row = {"staff_id": staff_id, "timestamp": at + ahead, "mac": mac, "rssi": -60, **place}
            made.append(row | ({"heard": at} if ahead else {}))
            at += dice.choice([0, 4, 4, 60, 299, 300, 301, 600])
    return made


def heard_at(row: Row) -> int:
    at: int = row["heard"] if "heard" in row else row["timestamp"]
    return at


def plainly(
    stored: list[Row], start: int, end: int, gap: int = 300, levels: str = HERE["level"]
) -> list[dict[str, Any]]:
    times = defaultdict(list)
    for row in stored:
        is_here = row["level"] in levels and row["location"] == HERE["location"]
        if is_here and start <= heard_at(row) <= end:
            times[row["staff_id"], row["level"]].append(heard_at(row))
    all_visits = []
    for person, heard in times.items():
        run: list[int] = []
        for at in sorted(heard):
            if run and at - run[-1] > gap:
                all_visits.append(visit(person, run))
                run = []
            run.append(at)
        all_visits.append(visit(person, run))
    return sorted(
        all_visits, key=lambda visit: (-visit["from"], str(visit["staff_id"]), visit["level"])
    )


def visit(of: tuple[object, str], run: list[int]) -> dict[str, Any]:
    staff_id, level = of
    return {
        "staff_id": staff_id,
        "level": level,
        "from": run[0],
        "to": run[-1],
        "detections": len(run),
    }


def store(database: Database[Any], detections: list[Row]) -> None:
    database["staff"].insert_many([dict(detection) for detection in detections])


def asked(api: Api, **query: Any) -> list[dict[str, Any]]:
    """Return all pages of an answer."""
    all_visits: list[dict[str, Any]] = []
    wanted = {"from": BASE, "to": BASE + 30_000, **HERE} | query
    wanted = {name: value for name, value in wanted.items() if value is not None}
    while True:
        page = api.get("/visits", **wanted)
        all_visits += page["data"]
        if page["next"] is None:
            return all_visits
        assert len(page["data"]) == query.get("limit", 100)
        wanted["cursor"] = page["next"]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_visits_are_those_of_a_plain_computation(
    api: Api, database: Database[Any], seed: int
) -> None:
    stored = rows(seed)
    store(database, stored)
    dice = random.Random(-seed)
    for gap in (60, 299, 300, 301, 3600):
        start, end = sorted(BASE + dice.randrange(30_000) for _ in range(2))
        pages = asked(api, **{"from": start, "to": end, "gap": gap})
        assert pages == plainly(stored, start, end, gap)
    everything = plainly(stored, BASE, BASE + 30_000)
    assert len(everything) > 20
    for limit in (1, 3, 100):
        assert asked(api, limit=limit) == everything
    both = {"staff_id": 7, "timestamp": BASE + 29_000, "mac": MAC, "location": HERE["location"]}
    twice = [both | {"level": level} for level in "45"]  # in one second: a clock was set back
    store(database, twice)
    of_all_levels = plainly([*stored, *twice], BASE, BASE + 30_000, levels="45")
    assert {row["level"] for row in of_all_levels} == {"4", "5"}
    for limit in (1, 3, 100):
        assert asked(api, level=None, limit=limit) == of_all_levels


def test_a_visit_that_grows_between_two_pages_comes_once(api: Api, database: Database[Any]) -> None:
    begun = {"staff_id": "first", "timestamp": BASE + 5, "mac": MAC, **HERE}
    stored = [*rows(9), begun]
    store(database, stored)
    query = {"from": BASE, "to": BASE + 30_000, **HERE, "limit": 5}
    first = api.get("/visits", **query)
    new = begun | {"timestamp": BASE + 200}
    store(database, [new])
    rest = asked(api, cursor=first["next"], limit=5)
    assert first["data"] + rest == plainly([*stored, new], BASE, BASE + 30_000)


def test_a_beacon_that_moved_still_tells_of_its_old_place(api: Api) -> None:
    at = api.hear(7, ago=120)
    api.client.put(f"/api/v1/beacons/{MAC}", json={"level": "9", "location": "Roof"})
    api.client.delete(f"/api/v1/beacons/{MAC}")
    (only,) = api.get("/visits", **HERE, **{"from": at - 60, "to": at + 60})["data"]
    assert only == {"staff_id": 7, "level": "4", "from": at, "to": at, "detections": 1}
    assert api.get("/visits", level="4", location="Lobby", **{"from": at, "to": at}) == {
        "data": [],
        "next": None,
        "damaged_blocks": 0,
    }


@pytest.mark.parametrize("ahead", [12 * HOUR, 90, -3 * HOUR])
def test_a_wrong_clock_makes_no_visit_at_another_time(api: Api, ahead: int) -> None:
    """Ahead it is known by itself, behind where the phone says when it sends."""
    now = int(time.time())
    item = {"staff_id": 7, "mac": MAC, "rssi": -60, "timestamp": now + ahead}
    sent = {"detections": [item]} | ({"sent_at": now + ahead} if ahead < 0 else {})
    assert api.client.post("/api/v1/detections", json=sent).json
    (only,) = api.get("/visits", **HERE, **{"from": now - 5, "to": now + 600})["data"]
    assert only["from"] == only["to"] == pytest.approx(now, abs=60)
    elsewhere = {"from": now + ahead - 30, "to": now + ahead + 30}
    assert api.get("/visits", **HERE, **elsewhere)["data"] == []


def test_rows_of_an_older_database_break_nothing(api: Api, database: Database[Any]) -> None:
    for number, row in enumerate(OLDER.values()):
        store(database, [{"staff_id": number, **row}, row])  # the second is nobody's
    data = api.get("/visits", **HERE, **{"from": NOW - 900, "to": NOW + 900})["data"]
    # Those with seconds, and this place.
    assert {visit["staff_id"] for visit in data} == {0, 2, 6}
    assert all(abs(visit["from"] - NOW) < 300 for visit in data)


GOOD = {**HERE, "from": "2026-01-01T10:00:00Z", "to": "2026-01-01T10:30:00+00:00"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"level": "x" * 65}, ["level"]),
        ({"level": "x" * 65, "location": "", "from": "", "to": "noon"}, [*GOOD]),
        ({"location": "unknown"}, ["location"]),
        ({"from": "2026-01-01T10:30:01Z"}, ["from"]),
        ({"from": "2025-12-01T10:29:59Z"}, ["from"]),
        ({"gap": 59}, ["gap"]),
        ({"gap": 3601}, ["gap"]),
        ({"limit": 1001}, ["limit"]),
        ({"cursor": "x"}, ["cursor"]),
    ],
)
def test_an_error_names_the_field(api: Api, change: dict[str, Any], named: list[str]) -> None:
    assert api.get("/visits", **GOOD)["data"] == []
    answer = api.client.get("/api/v1/visits", query_string=GOOD | change)
    assert answer.status_code == 400
    assert answer.json is not None
    assert [error["field"] for error in answer.json["errors"]] == named


def test_what_is_too_much_is_refused_with_what_is_not(
    api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = rows(3)
    store(database, stored)
    times = sorted(heard_at(row) for row in stored if HERE.items() <= row.items())
    most = len(times) // 2
    monkeypatch.setattr(visits, "MAX_DETECTIONS", most)
    query = {"from": BASE, "to": BASE + 60_000, **HERE}
    answer = api.client.get("/api/v1/visits", query_string=query)
    assert answer.status_code == 400
    assert answer.json is not None
    (error,) = answer.json["errors"]
    assert error["field"] == "from"
    start = times[-most - 1] + 1
    assert f"must be {start} or later" in error["reason"]
    assert asked(api, **{"from": start, "to": BASE + 60_000}) == plainly(
        stored, start, BASE + 60_000
    )


@pytest.mark.parametrize("level", [HERE["level"], None])
def test_the_index_by_beacon_is_all_that_is_read(
    api: Api, mongod: str, database: Database[Any], level: str | None
) -> None:
    store(database, [row for row in rows(5) if "heard" not in row])
    heard = Heard()
    with MongoClient[dict[str, Any]](mongod, event_listeners=[heard]) as client:
        reader = Visits(client["ICT3102"]["staff"])
        assert list(reader.read(HERE["location"], level, BASE, BASE + 9000, 300))
    plans = []
    for command in (*heard.of("distinct"), *heard.of("aggregate")):
        assert command["readConcern"]["level"] in ("majority", "snapshot")
        assert command["maxTimeMS"] <= 5000
        bare = {name: command[name] for name in command if name not in UNEXPLAINED}
        plans.append(str(database.command("explain", bare, verbosity="executionStats")))
    *one_by_one, of_wrong_clocks, of_blocks, by_time = plans
    assert "places.mac_1" in of_blocks
    assert "level_1_location_1_heard_1" in of_wrong_clocks
    assert all("DISTINCT_SCAN" in plan for plan in one_by_one)
    assert "SORT_MERGE" in by_time
    for plan in plans:
        assert "COLLSCAN" not in plan
        assert "'totalDocsExamined': 0" in plan


@pytest.mark.parametrize("level", [HERE["level"], None])
def test_a_wrong_clock_has_nobody_read_all_detections(
    api: Api, mongod: str, database: Database[Any], level: str | None
) -> None:
    store(database, rows(5))
    heard = Heard()
    with MongoClient[dict[str, Any]](mongod, event_listeners=[heard]) as client:
        reader = Visits(client["ICT3102"]["staff"])
        assert list(reader.read(HERE["location"], level, BASE, BASE + 9000, 300))
    _, _, by_time = heard.of("aggregate")
    unions = [
        step["$unionWith"]["pipeline"] for step in by_time["pipeline"] if "$unionWith" in step
    ]
    assert len(unions) == 2
    for steps in unions:
        plan = database.command("explain", {"aggregate": "staff", "pipeline": steps, "cursor": {}})
        assert "COLLSCAN" not in str(plan)
        assert "IXSCAN" in str(plan)


# What the driver adds, and `explain` does not take.
UNEXPLAINED = {"lsid", "$clusterTime", "$db", "maxTimeMS", "readConcern", "apiVersion", "txnNumber"}


@pytest.mark.long
def test_the_most_that_is_read_takes_little_memory(
    api: Api, database: Database[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    most = visits.MAX_DETECTIONS
    # To be watched takes several times as long.
    monkeypatch.setattr(visits, "SCAN_TIMEOUT_SECONDS", 60)
    # As many visits as can be: everybody is heard once.
    store(
        database,
        [
            {"staff_id": number, "timestamp": BASE + number % 9000, "mac": MACS[number % 3], **HERE}
            for number in range(most)
        ],
    )
    tracemalloc.start()
    try:
        page = api.get("/visits", **HERE, **{"from": BASE, "to": BASE + 9000, "limit": 1000})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(page["data"]) == 1000
    assert peak < 4 * MIB, peak
