"""A real sharded cluster: where queries go, where staff lie, how it grows, who gets in."""

import asyncio
import dataclasses
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from bson import MinKey
from flask import Flask
from flask.testing import FlaskClient
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from werkzeug.test import TestResponse

from common.erasures import Erasures
from common.revisions import CHECK_SECONDS
from ingest import create_app
from ingest.assembly import Context
from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.histories import last_minutes, read_through_cache
from ingest.histories.read_through_cache import STATE_SECONDS
from ingest.histories.time_window import Window
from ingest.rules.request_parameters import TimeRange
from ingest.rules.roles import Role
from ingest.storage.access import accounts, audit, tokens
from ingest.storage.database.indexes import BY_BEACON
from ingest.storage.detections import documents
from ingest.storage.detections.large_ids import LargeIds
from ingest.storage.detections.stamps import NEW
from ingest.storage.places.visits import Visit, Visits, _newest, _pieces
from mongo import clients, forget, topology
from mongo.bootstrap import LostVolumeError
from mongo.sharding import misplaced
from scripts.processes.cluster import DIRECTORY, Cluster
from scripts.processes.waiting import eventually
from tests.loops import run
from tests.mongo.settings import settings
from tests.needs import need_routers
from tests.phones import Phones, inside
from tests.reads import EXTRACT, RECOVERY_SECONDS, answered, read_while_frozen
from tests.services.ingest.api import contract

pytestmark = pytest.mark.long

NAMED = topology.load(topology.SHARDED)
MAC = "C2A628384B08"
MOVING_SECONDS = 2400


@pytest.fixture(scope="module", autouse=True)
def routers() -> None:
    need_routers()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster that no bootstrap has seen."""
    with Cluster(NAMED, tmp_path_factory.mktemp("sharded")) as started:
        yield started


@pytest.fixture(scope="module")
def steps(started: Cluster, root: Path) -> list[str]:
    """Kill its bootstrap after each step, and begin again, until it is done; return the steps."""
    options = ["--topology", topology.SHARDED, "--secrets", started.folder / "secrets"]
    options += ["--local-port", started.first_port, "--directory", DIRECTORY]
    command = [sys.executable, "-m", "mongo.bootstrap", *map(str, options)]
    steps = []
    while "the cluster is as configured\n" not in steps:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
            assert process.stdout
            steps.append(process.stdout.readline())
            assert steps[-1], steps
            process.kill()
    return steps


@pytest.fixture(scope="module")
def cluster(started: Cluster, steps: list[str]) -> Cluster:
    return started


@pytest.fixture
def staff(cluster: Cluster) -> Iterator[Any]:
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        eventually(partial(emptied, client), RECOVERY_SECONDS)
        yield client["ICT3102"]["staff"]


def emptied(client: MongoClient[dict[str, Any]]) -> bool:
    """Delete all detections; a shard that was killed before may not have its primary yet."""
    try:
        for collection in ("staff", "latest", "notes"):
            client["ICT3102"][collection].delete_many({})
    except PyMongoError:
        return False
    return True


def by_shard(cluster: Cluster) -> dict[str, int]:
    """Count the detections on each shard, by a connection to it alone."""
    counts = {}
    for shard in cluster.local.shards:
        with clients.as_system(shard.members[0], cluster.secrets) as client:
            counts[shard.name] = client["ICT3102"]["staff"].count_documents({})
    return counts


def balancer(cluster: Cluster) -> str:
    with MongoClient[dict[str, Any]](cluster.uri(user="admin")) as client:
        return str(client.admin.command("balancerStatus")["mode"])


def test_killed_after_each_step_the_bootstrap_goes_on(cluster: Cluster, steps: list[str]) -> None:
    assert len(steps) >= 8, steps
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        assert client["ICT3102"]["beacons"].count_documents({}) == 57


def test_run_again_it_does_nothing(cluster: Cluster) -> None:
    assert cluster.bootstrap(DIRECTORY) == []
    assert balancer(cluster) == "off"


def test_a_zone_that_was_lost_is_made_again(cluster: Cluster) -> None:
    with MongoClient[dict[str, Any]](cluster.uri(user="admin")) as client:
        zones = {"ns": "ICT3102.staff"}
        before = list(client["config"]["tags"].find(zones, {"_id": 0}))
        lost = {"updateZoneKeyRange": "ICT3102.staff", "zone": None}
        client.admin.command(lost | {bound: before[0][bound] for bound in ("min", "max")})
        assert cluster.bootstrap() == []
        after = list(client["config"]["tags"].find(zones, {"_id": 0}))
        assert sorted(map(str, after)) == sorted(map(str, before))
        assert len(after) == len(NAMED.shards)


def test_a_shard_keeps_its_oplog_for_hours_whatever_its_size(cluster: Cluster) -> None:
    """That MongoDB keeps it for so long then, MongoDB tests."""
    for member in cluster.local.shards:
        with clients.as_system(member.members[0], cluster.secrets) as shard:
            oplog = shard.admin.command("serverStatus")["oplogTruncation"]
            assert oplog["oplogMinRetentionHours"] == 2.0


def test_where_queries_go(staff: Any) -> None:
    staff.insert_many({"staff_id": n, "timestamp": n, "level": "1"} for n in range(20))
    extract = {"staff_id": 7, "timestamp": {"$gte": 0, "$lte": 9}}
    plan = staff.find(extract).sort("timestamp", -1).explain()["queryPlanner"]["winningPlan"]
    assert (plan["stage"], len(plan["shards"])) == ("SINGLE_SHARD", 1)
    assert "IXSCAN" in str(plan)
    recent = {"timestamp": {"$gte": 5}}
    plan = staff.find(recent).sort("timestamp", -1).explain()["queryPlanner"]["winningPlan"]
    assert (plan["stage"], len(plan["shards"])) == ("SHARD_MERGE_SORT", 2)


def test_the_visits_of_a_place_come_from_all_shards_by_the_index(staff: Any) -> None:
    place = {"mac": MAC, "level": "4", "location": "Lobby B"}
    staff.insert_many(
        {"staff_id": staff_id, "timestamp": 1000 + second} | place
        for staff_id in range(14)
        for second in (0, 4, 8)
    )
    visits = Visits(staff)
    for level in ("4", None):
        visits_read = list(visits.read("Lobby B", level, 1000, 2000, 300))
        assert visits_read == [Visit(staff_id, "4", 1000, 1008, 3) for staff_id in range(14)]
    # On both shards; what clocks ahead stamped, heard in the range and not.
    for staff_id in range(4):
        staff.insert_one({"staff_id": staff_id, "timestamp": 44_212, "heard": 1012} | place)
        staff.insert_one({"staff_id": staff_id, "timestamp": 1900, "heard": 100} | place)
    for level in ("4", None):
        visits_read = sorted(visits.read("Lobby B", level, 1000, 2000, 300))
        assert visits_read[:4] == [Visit(staff_id, "4", 1000, 1012, 4) for staff_id in range(4)]
        assert visits_read[4:] == [Visit(staff_id, "4", 1000, 1008, 3) for staff_id in range(4, 14)]
        assert list(visits.read("Lobby B", level, 44_000, 45_000, 300)) == []
    staff.delete_many({"heard": {"$gte": 0}})
    bounds = {"mac": {"$gte": ""}, "level": "4", "location": "Lobby B", "timestamp": {"$gte": 1}}
    explain = {"explain": {"distinct": staff.name, "key": "mac", "query": bounds}}
    assert str(staff.database.command(explain)).count("'DISTINCT_SCAN'") >= 2
    steps = [{"$match": bounds | {"mac": {"$in": [MAC]}}}, *_newest(), *_pieces(300)]
    command = {"aggregate": staff.name, "pipeline": steps, "cursor": {}, "hint": BY_BEACON}
    plan = staff.database.command({"explain": command, "verbosity": "executionStats"})
    assert "COLLSCAN" not in str(plan)
    assert str(plan).count("'totalDocsExamined': 0") == 2


def is_stored(client: FlaskClient, body: dict[str, Any]) -> bool:
    return client.post("/api/v1/detections", json=body).status_code == 200


def store(client: FlaskClient, staff_id: int, event: str = "e") -> None:
    """Have a detection stored; a busy machine may have it wait in the spool first."""
    body = {"user_address": staff_id, "beacon_address": MAC, "rssi": -20, "event_id": event}
    send = partial(client.post, "/newbeacondetect", json=body)
    eventually(lambda: send().status_code == 200, RECOVERY_SECONDS)


def test_an_event_repeated_over_the_other_router_is_stored_once(
    cluster: Cluster, staff: Any
) -> None:
    body = {"user_address": 3, "beacon_address": MAC, "rssi": -20, "event_id": "e1"}
    for router in (0, 1):
        app = create_app(settings(cluster, router))
        # On a busy machine the database may be late: then the spool has it first.
        assert app.test_client().post("/newbeacondetect", json=body).status_code in (200, 202)
        eventually(partial(drained, app), RECOVERY_SECONDS)
        app.extensions["context"].close()
    assert staff.count_documents({}) == 1


@pytest.fixture(scope="module")
def services(cluster: Cluster) -> Iterator[list[FlaskClient]]:
    """Run two services in this process, each on a router of its own."""
    apps = [create_app(settings(cluster, router)) for router in (0, 1)]
    yield [app.test_client() for app in apps]
    for app in apps:
        app.extensions["context"].close()


def test_a_beacon_changes_its_shard_and_is_there_once(
    cluster: Cluster, services: list[FlaskClient]
) -> None:
    def put(number: int) -> int:
        place = {"level": str(number % 7), "location": "Lobby"}
        return services[number % 2].put("/api/v1/beacons/AABBCCDDEEFF", json=place).status_code

    with ThreadPoolExecutor(2) as threads:
        assert set(threads.map(put, range(14))) == {200}
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        (document,) = client["ICT3102"]["beacons"].find({"mac": "AABBCCDDEEFF"})
    text = f"mac,level,location,x,y\nAABBCCDDEEFF,{(int(document['level']) + 1) % 7},Roof,,\n"
    answer = services[0].post("/api/v1/beacons/import", data=text, content_type="text/csv")
    assert answer.json is not None
    assert (answer.json["changed"], answer.json["others"]) == (1, 57)
    beacon = "/api/v1/beacons/AABBCCDDEEFF"
    eventually(lambda: (services[1].get(beacon).json or {}).get("location") == "Roof")
    assert services[1].delete("/api/v1/beacons/AABBCCDDEEFF").status_code == 204
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        assert client["ICT3102"]["beacons"].count_documents({}) == 57


def test_a_person_is_named_over_both_routers(services: list[FlaskClient]) -> None:
    def put(number: int) -> int:
        person = {"name": f"Jane {number}", "team": "Cleaning"}
        return services[number % 2].put("/api/v1/people/7", json=person).status_code

    with ThreadPoolExecutor(2) as threads:
        assert set(threads.map(put, range(14))) == {200}
    text = "staff_id,name\n7,Jane Tan\n8,John\n"
    answer = services[0].post("/api/v1/people/import", data=text, content_type="text/csv")
    assert answer.json is not None
    assert (answer.json["added"], answer.json["changed"], answer.json["others"]) == (1, 1, 0)

    def names(service: FlaskClient) -> list[str]:
        people = service.get("/api/v1/people?team=Cleaning").get_json()["data"]
        return [person["name"] for person in people]

    eventually(lambda: [names(service) for service in services] == [["Jane Tan"]] * 2)
    for staff_id in (7, 8):
        assert services[1].delete(f"/api/v1/people/{staff_id}").status_code == 204


def test_a_person_is_forgotten_on_every_shard(
    cluster: Cluster, staff: Any, services: list[FlaskClient]
) -> None:
    everybody = range(10, 18)
    for staff_id in everybody:
        for number, service in enumerate(services):
            store(service, staff_id, str(number))
    assert min(by_shard(cluster).values()) >= 2
    database = staff.database
    for staff_id in everybody:
        named = services[0].put(f"/api/v1/people/{staff_id}", json={"name": f"Jane {staff_id}"})
        assert named.status_code == 200

    def forgotten(staff_id: int) -> bool:
        body = {"staff_id": staff_id, "go_on": staff_id in begun}
        answer = services[staff_id % 2].post("/api/v1/people/forgotten", json=body)
        assert answer.status_code in (200, 202, 503), answer.text
        begun.add(staff_id)
        return answer.status_code == 200

    begun: set[int] = set()
    eventually(lambda: {*map(forgotten, everybody)} == {True}, RECOVERY_SECONDS)
    for name in ("staff", "sealed", "latest", "people"):
        assert list(database[name].find()) == []
    assert set(by_shard(cluster).values()) == {0}
    erasures = Erasures("", {})
    forget.forget(erasures, cluster.local, cluster.secrets)
    assert [log.name for log in forget.oplogs(cluster.local, cluster.secrets)] == [
        "config",
        "shard1",
        "shard2",
    ]


def test_what_a_beacon_tells_over_two_routers_is_one_series(
    staff: Any, services: list[FlaskClient]
) -> None:
    now = int(time.time())
    for day in range(30):
        raw = f"0201060303aafe1116aafe2000{2900 + day:04x}15000000006400000384"
        body = {"staff_id": 1, "mac": MAC, "rssi": -60, "raw": raw, "timestamp": now - day * 86400}
        eventually(partial(is_stored, services[day % 2], body), RECOVERY_SECONDS)
    contexts = [client.application.extensions["context"] for client in services]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda context: context.directory.telemetry.write(), contexts))
    for client in services:
        answer = client.get("/api/v1/beacons/batteries").json
        assert answer is not None
        [beacon] = answer["data"]
        assert beacon["mac"] == MAC
        assert beacon["battery"]["value"] == 2900
        assert beacon["battery"]["per_day"] == pytest.approx(-1, abs=0.01)


def test_what_another_hand_deletes_is_told_no_longer(
    staff: Any, services: list[FlaskClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted through a router, for whom it is asked of one shard, and for everybody of both."""
    for module in (read_through_cache, last_minutes):
        monkeypatch.setattr(module, "COUNT_SECONDS", 0)
    now = int(time.time())
    items = [
        {"staff_id": n % 4, "mac": MAC, "rssi": -60, "timestamp": now - 20 - n, "event_id": f"{n}"}
        for n in range(80)
    ]
    sent = services[0].post("/api/v1/detections", json={"detections": items})
    assert sent.status_code == 200, sent.text
    context: Context = services[1].application.extensions["context"]
    eventually(context.people.notes.bring_up)
    for left in (80, 60):
        for path, rows in ((f"{EXTRACT}2", left // 4), ("/retrieveformonitoring", left)):
            for _ in range(2):
                heard = answered(services[0], path, 200).get_json()["location"]
                assert len(heard) == rows, path
        staff.delete_many({"timestamp": {"$lte": now - 20 - 60}})
    staff.delete_many({"$or": [{"staff_id": 3}, {"timestamp": {"$gt": now - 20 - 40}}]})
    assert context.recording.back_fill.sweep() == 4
    people_shown = answered(services[0], "/api/v1/staff", 200).get_json()["data"]
    assert {row["staff_id"]: row["timestamp"] for row in people_shown} == {
        n: now - 20 - 40 - n for n in range(3)
    }


def test_the_feed_and_a_correction_over_two_shards(staff: Any, services: list[FlaskClient]) -> None:
    def changes(router: int, cursor: str, count: int) -> tuple[list[dict[str, Any]], str]:
        lines: list[dict[str, Any]] = []

        def complete() -> bool:
            nonlocal cursor
            answer = services[router].get(f"/api/v1/changes?after={cursor}&wait=5&limit=5")
            *rows, last = [json.loads(line) for line in answer.text.splitlines()]
            lines.extend(rows)
            cursor = last["next"]
            return len(lines) >= count

        eventually(complete, 60)
        return lines, cursor

    mac = "FFFFFFFFFFFE"
    cursor = json.loads(services[0].get("/api/v1/changes").text)["next"]
    for number in range(8):  # staff of both shards
        item = {"staff_id": number, "mac": mac, "rssi": -60, "event_id": "e"}
        body = {"detections": [item, item]}
        eventually(partial(is_stored, services[number % 2], body), RECOVERY_SECONDS)
    first, after = changes(0, cursor, 8)
    assert sorted(line["staff_id"] for line in first) == list(range(8))
    assert changes(1, cursor, 8)[0] == first
    (unknown,) = answered(services[0], "/api/v1/beacons/unknown", 200).get_json()["data"]
    assert (unknown["mac"], unknown["count"], unknown["staff"]) == (mac, 8, list(range(8)))
    place = {"level": "3", "location": "Library"}
    done = services[0].put(f"/api/v1/beacons/{mac}?correct_past=1", json=place)
    assert done.json is not None
    assert done.json["corrected"] == 8
    corrected, _ = changes(1, after, 8)
    assert {line["type"] for line in corrected} == {"corrected"}
    assert {line["id"] for line in corrected} == {line["id"] for line in first}
    everybody = services[1].get("/api/v1/staff").json["data"]  # type: ignore[index]
    assert {row["location"] for row in everybody} == {"Library"}
    # A scan of each of 57 beacons on two emulated shards may take longer than its limit.
    places = answered(services[0], "/api/v1/coverage", 200).get_json()["data"]
    (library,) = [candidate for candidate in places if candidate["location"] == "Library"]
    assert library["staff_id"] in range(8)
    services[0].delete(f"/api/v1/beacons/{mac}")


def drained(app: Flask) -> bool:
    context: Context = app.extensions["context"]
    return not (context.recording.recorder.queued or context.database.availability.degraded)


def test_a_frozen_shard_loses_and_doubles_nothing(cluster: Cluster, staff: Any) -> None:
    """14 staff members lie on both shards; one of these does not answer for a while."""
    apps = [create_app(settings(cluster, router, timeout_ms=1500)) for router in (0, 1)]
    everybody = [*range(14)]
    with Phones(inside(apps[0]), everybody) as one, Phones(inside(apps[1]), everybody) as two:
        eventually(lambda: one.answers[200] and two.answers[200], 60)
        with cluster.away("shard1", "frozen"):
            eventually(lambda: one.answers[202] > 5 and two.answers[202] > 5, 60)
            event = {"user_address": 3, "beacon_address": MAC, "rssi": -20, "event_id": "timed-out"}
            for app in apps:  # the same event, on both, while it is unknown whether it is stored
                answer = app.test_client().post("/newbeacondetect", json=event)
                assert answer.status_code == 202
    for app in apps:
        eventually(partial(drained, app), RECOVERY_SECONDS)
    assert set(one.answers + two.answers) <= {200, 202}
    confirmed = one.acknowledged + two.acknowledged + Counter({3: 1})
    assert Counter(row["staff_id"] for row in staff.find()) == confirmed
    for app in apps:
        for staff_id in everybody:
            query = {"staff_id": staff_id, "start_time": 0, "end_time": 4102444800}
            history = app.test_client().get("/extractbeacon", query_string=query).get_json()
            assert len(history["location"]) == confirmed[staff_id]
        app.extensions["context"].close()


def shard1(cluster: Cluster, ids: list[int]) -> list[int]:
    """Return of whom of these anything is stored on the first shard, asked alone."""
    with clients.as_system(cluster.local.shards[0].members[0], cluster.secrets) as shard:
        return sorted(shard["ICT3102"]["staff"].distinct("staff_id", {"staff_id": {"$in": ids}}))


def test_a_dead_shard_takes_only_its_own_people_away(cluster: Cluster, staff: Any) -> None:
    everybody, newcomers = [*range(14)], [*range(100, 114)]
    staff.insert_many({"staff_id": n} for n in newcomers)
    new = shard1(cluster, newcomers)[0]
    staff.delete_many({})
    app = create_app(settings(cluster, timeout_ms=5000))  # what a group would wait
    context: Context = app.extensions["context"]
    waits: list[float] = []
    sent: Counter[int] = Counter()

    def detect(staff_id: int) -> int:
        began = time.monotonic()
        body = {"user_address": staff_id, "beacon_address": MAC, "rssi": -20}
        status = app.test_client().post("/newbeacondetect", json=body).status_code
        waits.append(time.monotonic() - began)
        assert status in (200, 202)
        sent[staff_id] += 1
        return status

    eventually(lambda: {detect(n) for n in everybody} == {200}, RECOVERY_SECONDS)
    of_shard1 = shard1(cluster, everybody)
    there = sorted({*everybody} - {*of_shard1})
    with cluster.away("shard2", "killed"):
        eventually(lambda: detect(there[0]) == 202, RECOVERY_SECONDS)
        items = [{"staff_id": there[n % len(there)], "mac": MAC, "rssi": -20} for n in range(600)]
        answer = app.test_client().post("/api/v1/detections", json={"detections": items})
        assert answer.status_code == 202
        sent.update(item["staff_id"] for item in items)
        eventually(lambda: {detect(n) for n in of_shard1} == {200}, RECOVERY_SECONDS)
        waits.clear()
        for _ in range(5):
            for n in there:
                assert detect(n) == 202
            eventually(lambda: {detect(n) for n in of_shard1} == {200}, RECOVERY_SECONDS)
        assert statistics.median(waits) < 1
        eventually(lambda: not context.database.availability.away, RECOVERY_SECONDS)
        mongodb = app.test_client().get("/api/v1/system").json["mongodb"]  # type: ignore[index]
        assert mongodb == {"reachable": True, "complete": False, "latency_ms": None}
        # Somebody whom no shard shows yet, behind more than a group of those who have to wait.
        eventually(lambda: detect(new) == 200, RECOVERY_SECONDS)
        assert shard1(cluster, [new]) == [new]
        assert context.recording.recorder.queued > 600
    eventually(partial(drained, app), RECOVERY_SECONDS)
    assert Counter(row["staff_id"] for row in staff.find()) == sent
    app.extensions["context"].close()


@pytest.mark.named
def test_without_the_config_server_nothing_is_lost(cluster: Cluster, staff: Any) -> None:
    """Every 30 s a router reads the list of shards anew, and uses no old one meanwhile."""
    apps = [create_app(settings(cluster, router)) for router in (0, 1)]
    contexts: list[Context] = [app.extensions["context"] for app in apps]
    with (
        Phones(inside(apps[0]), [*range(4)], rest_seconds=1) as one,
        Phones(inside(apps[1]), [*range(4)], rest_seconds=1) as two,
    ):
        eventually(lambda: one.answers[200] and two.answers[200], RECOVERY_SECONDS)
        with cluster.away("configsvr", "frozen"):
            eventually(
                lambda: all(context.database.availability.away for context in contexts),
                RECOVERY_SECONDS,
            )
            for phones, app in ((one, apps[0]), (two, apps[1])):
                phones.wait_for(202, more=5, seconds=60)
                assert app.test_client().get(f"{EXTRACT}3").status_code == 503
    for app in apps:
        eventually(partial(drained, app), RECOVERY_SECONDS)
        assert len(answered(app.test_client(), f"{EXTRACT}3", 200).get_json()["location"]) > 1
        app.extensions["context"].close()
    assert set(one.answers + two.answers) <= {200, 202}
    confirmed = one.acknowledged + two.acknowledged
    assert Counter(row["staff_id"] for row in staff.find()) == confirmed


def test_the_first_write_after_a_shard_died_is_answered_in_time(
    cluster: Cluster, staff: Any
) -> None:
    """The gateway waits 2.5 s, then asks the other service, which would wait as long."""
    everybody = [*range(14)]
    staff.insert_many({"staff_id": n} for n in everybody)
    staff_id = min({*everybody} - {*shard1(cluster, everybody)})
    staff.delete_many({})
    app = create_app(settings(cluster, timeout_ms=Config.mongodb_timeout_ms))
    body = {"user_address": staff_id, "beacon_address": MAC, "rssi": -20}
    send = partial(app.test_client().post, "/newbeacondetect", json=body)
    faults: list[Literal["frozen", "killed"]] = ["frozen", "killed"]
    waits = []
    for fault in faults:
        eventually(lambda: send().status_code == 200 and drained(app), RECOVERY_SECONDS)
        time.sleep(CHECK_SECONDS + 0.1)  # the directory is asked whether it has changed
        with cluster.away("shard2", fault):
            time.sleep(0.1)  # it goes on until one of its threads gets to run
            began = time.monotonic()
            assert send().status_code == 202
            waits.append(time.monotonic() - began)
    eventually(partial(drained, app), RECOVERY_SECONDS)
    app.extensions["context"].close()
    assert min(waits) < 2.5, waits  # this machine may hold up one
    assert max(waits) < 3, waits  # what a phone is promised


@pytest.fixture
def full(cluster: Cluster, staff: Any) -> Iterator[Flask]:
    """Return a service whose spool takes nothing, and that has read the directory."""
    config = settings(cluster, timeout_ms=40_000)  # longer than the router looks for a dead shard
    app = create_app(dataclasses.replace(config, spool_max_detections=0))
    eventually(lambda: app.test_client().get("/readyz").status_code == 200, RECOVERY_SECONDS)
    read = partial(app.test_client().get, "/api/v1/beacons")
    eventually(lambda: read().status_code == 200, RECOVERY_SECONDS)
    yield app
    app.extensions["context"].close()


def of_shard2(cluster: Cluster, staff: Any) -> set[int]:
    """Return who of the staff members 0 to 13 lies on the second shard."""
    staff.insert_many({"staff_id": n} for n in range(14))
    with clients.as_system(cluster.local.shards[1].members[0], cluster.secrets) as shard2:
        there = set(shard2["ICT3102"]["staff"].distinct("staff_id"))
    staff.delete_many({})
    return there


def test_half_a_batch_is_answered_item_by_item(cluster: Cluster, staff: Any, full: Flask) -> None:
    """One shard is dead and the spool is full: no item is lost, and none is stored twice."""
    client = full.test_client()
    there = of_shard2(cluster, staff)
    items = [{"staff_id": n, "mac": MAC, "rssi": -20} for n in range(14)]  # without event_id
    with cluster.away("shard2", "killed"):
        answer = client.post("/api/v1/detections", json={"detections": items})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    body = answer.get_json()
    contract.check("POST", "/api/v1/detections", 503, answer.mimetype or "", answer.data)
    statuses = [result["status"] for result in body["results"]]
    assert statuses == ["unavailable" if n in there else "stored" for n in range(14)]
    eventually(
        lambda: not full.extensions["context"].database.availability.degraded, RECOVERY_SECONDS
    )
    again = [item for item, how in zip(items, statuses, strict=True) if how == "unavailable"]
    assert client.post("/api/v1/detections", json={"detections": again}).status_code == 200
    assert Counter(row["staff_id"] for row in staff.find()) == Counter(range(14))


def test_reads_of_a_shard_that_just_froze_are_a_503_soon(cluster: Cluster, staff: Any) -> None:
    """Its router lives, and answers a ping; the service would wait 10 s."""
    app = create_app(settings(cluster))
    client = app.test_client()
    everybody = [*range(14)]
    for staff_id in everybody:
        store(client, staff_id)
    with clients.as_system(cluster.local.shards[1].members[0], cluster.secrets) as shard2:
        there = shard2["ICT3102"]["staff"].distinct("staff_id")
    eventually(lambda: client.get("/readyz").status_code == 200, RECOVERY_SECONDS)
    assert read_while_frozen(client, cluster, "shard2", there[0], PARTIAL) == {}
    eventually(lambda: client.get("/readyz").status_code == 200, RECOVERY_SECONDS)
    for staff_id in everybody:
        assert len(answered(client, f"{EXTRACT}{staff_id}", 200).get_json()["location"]) == 1
    app.extensions["context"].close()


PARTIAL = ("/api/v1/staff", "/api/v1/now", "/api/v1/coverage")


def test_reads_of_living_shards_go_on(cluster: Cluster, staff: Any) -> None:
    gone = of_shard2(cluster, staff)
    living = set(range(14)) - gone
    app, fresh = (create_app(settings(cluster)) for _ in range(2))
    client, late = app.test_client(), fresh.test_client()
    for staff_id in range(14):
        store(client, staff_id)
    answered(late, "/api/v1/beacons", 200)  # one that has read nobody yet
    tags = {path: whole(client, path, {*range(14)}) for path in PARTIAL}
    with cluster.away("shard2", "killed"):
        for reader in (client, late):
            for path in PARTIAL:
                eventually(partial(told_of, reader, path, living), RECOVERY_SECONDS)
            assert reader.get("/retrieveformonitoring").status_code == 503
            for path in ("/api/v1/staff/{}/detections", EXTRACT + "{}"):
                answered(reader, path.format(min(living)), 200)
                assert reader.get(path.format(min(gone))).status_code == 503
        incomplete = {path: answered(client, path, 200).headers["ETag"] for path in PARTIAL}
        assert all(incomplete[path] != tags[path] for path in PARTIAL)
        eventually(lambda: run(at_once(app, range(14))) == living, RECOVERY_SECONDS)
        # The others hold them up no longer.
        assert min(seconds_for(app, living) for _ in range(5)) < STATE_SECONDS / 2
    for path in PARTIAL:
        assert whole(client, path, {*range(14)}) != incomplete[path]
    eventually(lambda: run(at_once(app, range(14))) == {*range(14)}, RECOVERY_SECONDS)
    for application in (app, fresh):
        application.extensions["context"].close()


def test_much_that_is_new_and_old_is_read_of_living_shards(cluster: Cluster, staff: Any) -> None:
    """More than is looked at of a group; of one nothing is stamped, as in an older database."""
    app = create_app(settings(cluster))
    context, client = app.extensions["context"], app.test_client()
    gone = of_shard2(cluster, staff)
    living = sorted(set(range(14)) - gone)
    for staff_id in range(14):
        store(client, staff_id)
    eventually(partial(are_noted, context), RECOVERY_SECONDS)
    whole(client, "/api/v1/staff", {*range(14)})
    old, busy = living[:2]
    staff.update_many({"staff_id": old}, {"$unset": {"stored": 1}})
    context.database.client.database["latest"].update_one({"_id": old}, {"$unset": {"stored": 1}})
    row = {"staff_id": busy, "mac": MAC, "rssi": -20, "level": "4", "location": "Lobby"}
    rows = [row | {"timestamp": n, "stored": NEW, "received_at": None} for n in range(5000)]
    staff.insert_many(rows, ordered=False)
    run(at_once(app, range(7)))  # some histories are cached
    with cluster.away("shard2", "killed"):
        eventually(partial(told_of, client, "/api/v1/staff", {*living}), RECOVERY_SECONDS)
        eventually(lambda: run(at_once(app, range(14))) == {*living}, RECOVERY_SECONDS)
    eventually(lambda: run(at_once(app, range(14))) == {*range(14)}, RECOVERY_SECONDS)
    eventually(partial(are_noted, context), RECOVERY_SECONDS)
    whole(client, "/api/v1/staff", {*range(14)})
    context.close()


def are_noted(context: Context) -> bool:
    """Note all that was stored; tell whether the emulated shards took it in time."""
    with suppress(StoreUnavailable):
        return context.people.notes.bring_up()
    return False


def complete(client: FlaskClient, path: str) -> list[TestResponse]:
    """Return an answer, if it says that it is complete."""
    read = answered(client, path, 200)
    return [read] if read.get_json()["complete"] else []


def whole(client: FlaskClient, path: str, everybody: set[int]) -> str:
    """Return the ETag of an answer that is about everybody."""
    [read] = eventually(partial(complete, client, path), RECOVERY_SECONDS)
    contract.check("GET", path, 200, read.mimetype or "", read.data)
    assert path == "/api/v1/coverage" or people(read.get_json()) == everybody
    return read.headers["ETag"]


def told_of(client: FlaskClient, path: str, living: set[int]) -> bool:
    """Tell whether an answer says that it is not complete, and is about these people alone."""
    read = answered(client, path, 200)  # an emulated shard on a busy machine may take too long
    contract.check("GET", path, 200, read.mimetype or "", read.data)
    body = read.get_json()
    if body["complete"]:
        return False
    # Until a shard is known to be away, those of whom it last told are told of from memory.
    return people(body) <= living and (path == "/api/v1/coverage" or people(body) == living)


def people(body: dict[str, Any]) -> set[int]:
    """Return who is told of in an answer about everybody."""
    rows = body.get("data") or [person for level in body["levels"] for person in level["staff"]]
    return {row["staff_id"] for row in rows} - {None}


async def at_once(app: Flask, staff_ids: Iterable[int]) -> set[int]:
    """Ask for the histories of several people at the same moment; return whose came."""
    context: Context = app.extensions["context"]
    asked = list(staff_ids)
    windows = [
        context.histories.cache.window(TimeRange(n, 0, 4102444800), time.time()) for n in asked
    ]
    results = await asyncio.gather(*windows, return_exceptions=True)
    answered_ids = {
        n for n, result in zip(asked, results, strict=True) if isinstance(result, Window)
    }
    for result in results:
        assert isinstance(result, Window | StoreUnavailable), result
    return answered_ids


def seconds_for(app: Flask, staff_ids: Iterable[int]) -> float:
    began = time.monotonic()
    run(at_once(app, staff_ids))
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("ids", "split"),
    [
        ([0, 1, 2, 3, 4], (1, 4)),  # the source system's 20 % / 80 %
        ([f"SDA-{n:03}" for n in range(1, 51)], (29, 21)),
    ],
)
def test_how_staff_are_spread(
    cluster: Cluster, staff: Any, ids: list[object], split: tuple[int, int]
) -> None:
    """The table of docs/measurements.md; the shard with the low hashes first."""
    staff.insert_many({"staff_id": staff_id} for staff_id in ids)
    with MongoClient[dict[str, Any]](cluster.uri(user="admin")) as client:
        config = client["config"]
        (collection,) = config["collections"].find({"_id": str(staff.full_name)})
        of_staff = {"uuid": collection["uuid"], "min": {"staff_id": MinKey()}}
        (lowest,) = config["chunks"].find(of_staff)
    counts = by_shard(cluster)
    low = counts.pop(lowest["shard"])
    assert (low, *counts.values()) == split


@pytest.mark.parametrize("kind", ["router", "config", "shard"])
def test_nobody_in_who_does_not_belong(cluster: Cluster, kind: str) -> None:
    local = cluster.local
    assert local.config
    addresses = {
        "router": local.routers,
        "config": local.config.members,
        "shard": [shard.members[0] for shard in local.shards],
    }
    for address in addresses[kind]:
        with MongoClient[dict[str, Any]](f"mongodb://{address}/?directConnection=true") as client:
            for database, command in (("ICT3102", "find"), ("admin", "listDatabases")):
                with pytest.raises(OperationFailure, match="requires authentication"):
                    client[database].command(command, "staff" if command == "find" else 1)
            with pytest.raises(OperationFailure, match="requires authentication"):
                client.admin.command("createUser", "root", pwd="x", roles=["root"])


def test_people_log_in_and_what_they_do_is_noted_for_good(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (accounts, audit, tokens):
        monkeypatch.setattr(module, "TIMEOUT_SECONDS", 20.0)  # emulated servers
    (tmp_path / "key").write_text("k" * 43)
    fields: dict[str, Any] = {
        "waymark_access": "required",
        "session_key_file": str(tmp_path / "key"),
    }
    app = create_app(dataclasses.replace(settings(cluster), **fields))
    context: Context = app.extensions["context"]
    try:
        stored = context.access.passwords.hash("correct horse battery")
        for name in ("anna", "ben"):
            context.access.accounts.put(name, Role.ADMIN, stored, time.time())
        browser = app.test_client()
        person = {"name": "anna", "password": "correct horse battery"}
        answer = browser.post("/api/v1/session", json=person)
        assert answer.status_code == 200
        csrf = {"X-CSRF-Token": answer.get_json()["csrf_token"]}
        place = {"level": "4", "location": "Lobby B"}
        for method, path, body, status in (
            ("PUT", f"/beacons/{MAC}", place, 200),
            ("DELETE", "/accounts/ben", None, 204),
            ("DELETE", "/accounts/anna", None, 409),
            ("POST", "/tokens", {"label": "x", "role": "read"}, 200),
            ("GET", "/system/database", None, 200),
        ):
            answer = browser.open(f"/api/v1{path}", method=method, json=body, headers=csrf)
            assert answer.status_code == status, answer.text
        noted = browser.get("/api/v1/audit").get_json()["data"]
        what = [entry["what"] for entry in noted[:4]]  # other tests wrote before
        assert what == ["token made", "account removed", "beacon put", "log-in"]
    finally:
        context.close()
    with MongoClient[dict[str, Any]](cluster.uri(1)) as client:
        there = client["ICT3102"]["audit"]
        changes: list[Callable[[], object]] = [
            lambda: there.delete_many({}),
            lambda: there.update_many({}, {"$set": {"who": "nobody"}}),
            there.drop,
        ]
        for change in changes:
            with pytest.raises(OperationFailure) as refused:
                change()
            assert refused.value.code == 13


@pytest.mark.named
@pytest.mark.parametrize(
    ("rows", "people", "piece_mib", "low_ids_moved"),
    [
        (80_000, 4, 1, 1),  # more than two pieces of one person: MongoDB calls them jumbo
    ],
)
def test_a_third_shard_takes_its_part_while_detections_come_in(
    tmp_path: Path, root: Path, rows: int, people: int, piece_mib: int, low_ids_moved: int
) -> None:
    """MongoDB refuses to move more than two pieces at once, and the least part here is more."""
    grown = tmp_path / "grown.toml"
    third = 'shard2 = ["shard2:27018"]\nshard3 = ["shard3:27018"]'
    grown.write_text(topology.SHARDED.read_text().replace('shard2 = ["shard2:27018"]', third))
    with (
        Cluster(NAMED, tmp_path).running() as cluster,
        MongoClient[dict[str, Any]](cluster.uri(user="admin")) as client,
    ):
        pieces = {"configureCollectionBalancing": "ICT3102.staff", "chunkSize": float(piece_mib)}
        client.admin.command(pieces)
        staff = client["ICT3102"]["staff"]
        for start in range(0, rows, 5000):
            heard = (
                documents.document(n % people, ("4", "Lobby"), n, -20, MAC, float(n), (str(n), 1))
                for n in range(start, start + 5000)
            )
            staff.insert_many(heard, ordered=False)
        app = create_app(settings(cluster, timeout_ms=20_000))
        with Phones(inside(app), [*range(4)]) as phones:
            cluster.topology = topology.load(grown)
            cluster.start("shard3")
            steps = cluster.bootstrap()
            assert "shard shard3: added" in steps
            assert "collection ICT3102.staff: 33.3% still to move, in the background" in steps
            eventually(lambda: misplaced(client, "ICT3102.staff") < 0.33, MOVING_SECONDS)
            assert balancer(cluster) == "full"
            cluster.kill("configsvr")  # the balancer is a part of it
            cluster.start("configsvr")
            command = [sys.executable, "-m", "mongo.bootstrap", "--wait", "--deadline", "360"]
            command += ["--topology", str(grown), "--secrets", str(tmp_path / "secrets")]
            command += ["--local-port", str(cluster.first_port)]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, cwd=root, timeout=MOVING_SECONDS
            )
        lines = done.stdout.splitlines()
        assert lines[-1] == "the cluster is as configured"
        assert balancer(cluster) == "off"
        assert any(line.startswith("collection ICT3102.staff: ") for line in lines)
        eventually(partial(drained, app), RECOVERY_SECONDS)
        app.extensions["context"].close()
        assert cluster.bootstrap() == []
        # Counted through the router: a shard still holds what it gave away for 15 minutes.
        assert phones.acknowledged.total() > 50
        assert staff.count_documents({}) == rows + phones.acknowledged.total()
        with clients.as_system(cluster.local.shards[2].members[0], cluster.secrets) as shard3:
            few = {"staff_id": {"$lt": 50}}
            assert len(shard3["ICT3102"]["staff"].distinct("staff_id", few)) == low_ids_moved


def test_ids_above_2_53_become_texts_on_the_shards_of_those(cluster: Cluster, staff: Any) -> None:
    ids = [2**53 + number for number in range(8)]
    for number in ids:
        row = {"staff_id": number, "timestamp": 1, "mac": MAC, "level": "4", "location": "Lobby"}
        staff.insert_one(row)
        staff.database["latest"].insert_one({"_id": number, "version": 1})
    ids_of = {document["_id"] for document in staff.find()}
    assert LargeIds(staff, staff.database["latest"]).as_text() == len(ids)
    rows = list(staff.find())
    assert {document["_id"] for document in rows} == ids_of
    assert {document["staff_id"] for document in rows} == {str(number) for number in ids}
    assert all(document["stored"].time for document in rows)
    assert staff.database["latest"].count_documents({}) == 0
    for document in rows:  # each is found by its shard key: it moved where that leads
        assert staff.find_one({"staff_id": document["staff_id"]}) == document


def test_ids_that_are_texts_of_numbers_go_to_the_shards_of_those(
    cluster: Cluster, staff: Any
) -> None:
    """Of the source system; 7 and "7" are of different shards."""
    ids = [str(number) for number in range(16)]
    rows = [{"staff_id": one, "timestamp": "1600000000", "mac": MAC, "rssi": -60} for one in ids]
    staff.insert_many(rows)
    before = by_shard(cluster)
    staff.database["directory"].delete_one({"_id": "data"})
    assert cluster.bootstrap() == [
        "data version 2: texts of the source system become numbers",
        f"{len(ids)} detections in all",
    ]
    assert {row["_id"] for row in rows} == {row["_id"] for row in staff.find()}
    assert sum(by_shard(cluster).values()) == len(ids)
    assert by_shard(cluster) != before
    for number in range(16):  # each is found by its shard key
        (row,) = staff.find({"staff_id": number})
        assert row["timestamp"] == 1_600_000_000
    assert cluster.bootstrap() == []


@pytest.mark.parametrize("name", ["shard2", "configsvr"])
def test_a_part_that_lost_its_data_is_told_and_not_made_anew(
    cluster: Cluster, staff: Any, tmp_path: Path, name: str
) -> None:
    staff.insert_many([{"staff_id": number, "timestamp": 1} for number in range(16)])
    kept = tmp_path / name
    cluster.kill(name)
    (cluster.folder / name).rename(kept)
    try:
        cluster.start(name)
        of = {"configsvr": "config"}.get(name, name)
        with pytest.raises(LostVolumeError, match=f"the data of {of} are gone"):
            cluster.bootstrap()
        cluster.kill(name)
    finally:
        shutil.rmtree(cluster.folder / name)
        kept.rename(cluster.folder / name)
        cluster.start(name)
    assert cluster.bootstrap() == []
    assert eventually(lambda: len(list(staff.find())) == 16, RECOVERY_SECONDS)
