"""Versions of data: older ones are brought up, newer ones left alone."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure

from common import schema
from mongo import data, migrations, topology
from mongo.clients import as_administrator
from scripts.processes.cluster import Cluster

MAC = "C2A628384B08"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("data")
    with Cluster(topology.load(topology.EMBEDDED), folder) as cluster:
        cluster.bootstrap()
        yield cluster


@pytest.fixture
def database(cluster: Cluster) -> Iterator[Database[dict[str, Any]]]:
    with as_administrator(cluster.local.users_set, cluster.secrets) as client:
        database = client[schema.DATABASE]
        for collection in schema.COLLECTIONS:
            database[collection.name].delete_many({})
        yield database


def of_the_source(**fields: Any) -> dict[str, Any]:
    """Return a detection as the source system stored it, with some fields as others did."""
    row = {"staff_id": 7, "mac": MAC, "rssi": -61, "timestamp": 1_600_000_000}
    return row | {"level": "1", "location": "Lobby"} | fields


def test_a_new_database_is_of_this_version_and_has_a_name(
    cluster: Cluster, database: Database[dict[str, Any]]
) -> None:
    assert cluster.bootstrap() == []
    made = data.current(database)
    assert (made["version"], type(made["name"])) == (data.VERSION, ObjectId)
    assert cluster.bootstrap() == []
    assert data.current(database) == made


def test_what_the_source_system_stored_is_brought_up_once(
    cluster: Cluster, database: Database[dict[str, Any]]
) -> None:
    good = [
        of_the_source(),
        of_the_source(staff_id="SDA-001"),
        of_the_source(staff_id="007"),
        of_the_source(staff_id=str(2**53)),
        of_the_source(rssi="strong", timestamp="yesterday", mac="no beacon"),
        of_the_source(mac=None, rssi=None),
        {"_id": "of another kind"},
    ]
    odd: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (of_the_source(staff_id="7"), {"staff_id": 7}),
        (of_the_source(staff_id="0", rssi="-70"), {"staff_id": 0, "rssi": -70}),
        (of_the_source(timestamp="1600000000"), {"timestamp": 1_600_000_000}),
        (of_the_source(timestamp=" 1600000000.75"), {"timestamp": 1_600_000_000}),
        (of_the_source(mac="c2:a6:28:38:4b:08"), {"mac": MAC}),
        (of_the_source(mac="C2-A6-28-38-4B-08", staff_id="9"), {"mac": MAC, "staff_id": 9}),
    ]
    database["staff"].insert_many([*good, *(row for row, _ in odd)])
    database["latest"].insert_many([{"_id": "7"}, {"_id": 7}, {"_id": "007"}])
    said = cluster.bootstrap()
    assert said == [
        "data version 2: texts of the source system become numbers",
        "6 detections in all",
    ]
    stored = {row["_id"]: row for row in database["staff"].find()}
    assert len(stored) == len(good) + len(odd)
    assert [stored[row["_id"]] for row in good] == good
    for row, changed in odd:
        assert stored[row["_id"]].pop(schema.STAMP).time > 1_700_000_000
        assert stored[row["_id"]] == row | changed
    assert {entry["_id"] for entry in database["latest"].find()} == {7, "007"}
    assert data.current(database)["version"] == 2
    database["staff"].insert_one(of_the_source(staff_id="7"))
    assert cluster.bootstrap() == []  # once


def test_beacons_of_the_source_system_are_found_by_their_id(
    cluster: Cluster, database: Database[dict[str, Any]]
) -> None:
    database["staff"].insert_one(of_the_source())
    database["beacons"].insert_many(
        [
            {"mac": "c2:a6:28:38:4b:08", "level": 1, "location": "Lobby"},
            {"mac": "AAAAAAAAAAAA", "level": "2", "location": "Copied twice"},
            {"_id": "AAAAAAAAAAAA", "mac": "AAAAAAAAAAAA", "level": "2", "location": "Library"},
            {"mac": "BBBBBBBBBBBB"},
        ]
    )
    cluster.bootstrap()
    places = {row["_id"]: row.get("location") for row in database["beacons"].find()}
    (unknown,) = [name for name in places if isinstance(name, ObjectId)]
    assert places == {MAC: "Lobby", "AAAAAAAAAAAA": "Library", unknown: None}
    assert database["beacons"].find_one({"_id": MAC}) == {
        "_id": MAC,
        "mac": MAC,
        "level": "1",
        "location": "Lobby",
    }


def test_one_that_was_killed_goes_on(
    cluster: Cluster, database: Database[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 3 * migrations.BATCH
    rows = [of_the_source(timestamp=str(1_600_000_000 + n)) for n in range(count)]
    database["staff"].insert_many(rows)
    told: list[str] = []

    def killed(text: str) -> None:
        told.append(text)
        if len(told) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(migrations, "TOLD", migrations.BATCH)
    with pytest.raises(KeyboardInterrupt):
        data.bring_up(database, killed)
    assert data.current(database)["version"] == data.FIRST
    assert 0 < database["staff"].count_documents({"timestamp": {"$type": "string"}}) < count
    cluster.bootstrap()
    times = sorted(row["timestamp"] for row in database["staff"].find())
    assert times == [1_600_000_000 + n for n in range(count)]


def test_whether_data_would_be_changed_is_told_before(
    cluster: Cluster, database: Database[dict[str, Any]], root: Path
) -> None:
    def said() -> str:
        command = [sys.executable, "-m", "mongo.data", "--topology", str(topology.EMBEDDED)]
        command += ["--secrets", str(cluster.folder / "secrets")]
        command += ["--local-port", cluster.local.users_set.members[0].rpartition(":")[2]]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else done.stdout

    database["staff"].insert_one(of_the_source(staff_id="7"))
    assert said() == f"the data, version 1, become version {data.VERSION}\n"
    assert data.current(database) == {}
    cluster.bootstrap()
    assert said() == ""
    database["directory"].update_one({"_id": schema.DATA}, {"$inc": {"version": 1}})
    assert said().startswith("data: a newer Waymark has made these data version")


def test_newer_data_are_left_alone_and_the_services_kept_out(
    cluster: Cluster, database: Database[dict[str, Any]]
) -> None:
    cluster.bootstrap()
    newer = {"version": data.VERSION + 1, "by": "9.1.0"}
    database["directory"].update_one({"_id": schema.DATA}, {"$set": newer})
    said = f"Waymark 9.1.0 has made these data version {data.VERSION + 1}, and this one knows"
    with pytest.raises(data.NewerDataError, match=said):
        cluster.bootstrap()
    with MongoClient[dict[str, Any]](cluster.uri()) as service:
        with pytest.raises(OperationFailure, match="not authorized"):
            service[schema.DATABASE]["staff"].insert_one(of_the_source())
        database["directory"].update_one({"_id": schema.DATA}, {"$set": {"version": data.VERSION}})
        cluster.bootstrap()
        service[schema.DATABASE]["staff"].insert_one(of_the_source())
