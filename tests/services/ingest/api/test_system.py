"""How the service says it is."""

import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from flask import Flask
from pymongo.database import Database

from common import backup_report
from ingest import process
from ingest.api import system
from ingest.rules.disk_use import Disk, Kept
from ingest.storage.database.cluster_usage import Cluster, Shard
from tests.services.ingest.api.conftest import Api


def test_it_names_itself_and_tells_how_it_is(api: Api) -> None:
    said = api.get("/system")
    assert said["service"]
    assert said["version"] == "development"
    assert (said["queued"], said["set_aside"]) == (0, 0)
    assert said["mongodb"]["reachable"]
    assert said["mongodb"]["complete"]
    assert 0 < said["mongodb"]["latency_ms"] < 2000
    assert said["memory"]["used_bytes"] > 1024 * 1024
    assert said["started_at"] <= said["as_of"] <= time.time()


def test_what_a_shard_gave_away_is_not_counted_there() -> None:
    figures = {"count": 320, "numOrphanDocs": 120, "storageSize": 4096, "totalIndexSize": 1}
    staff = MagicMock()
    staff.database.command.return_value = {}
    staff.aggregate.return_value = [
        {"shard": "shard1", "storageStats": figures},
        {"shard": "shard2", "storageStats": figures | {"count": 120, "numOrphanDocs": 0}},
    ]
    assert [(shard.name, shard.rows.detections) for shard in Cluster(staff).shards()] == [
        ("shard1", 200),
        ("shard2", 120),
    ]


def test_it_counts_documents_and_minutes(api: Api) -> None:
    timestamp = api.hear("counted", ago=120)
    said = api.get("/system/database")
    assert sum(shard["documents"] for shard in said["shards"]) >= 1
    assert len(said["minutes"]) == 61
    minute = next(entry for entry in said["minutes"] if entry["timestamp"] == timestamp // 60 * 60)
    assert minute["count"] >= 1
    assert said["as_of"] - said["minutes"][-1]["timestamp"] < 60


def test_a_new_stack_does_not_know_yet_how_long_its_disk_lasts(api: Api) -> None:
    api.hear("first", ago=60)
    storage = api.get("/system/database")["storage"]
    assert storage["free_bytes"] > 0
    assert (storage["detection_bytes"], storage["detections_a_day"]) == (None, None)
    assert storage["days_left"] is None


def test_it_tells_of_the_last_backup(app: Flask, api: Api, tmp_path: Path) -> None:
    file = tmp_path / "backup.json"
    app.extensions["context"] = api.context._replace(backup_report=file)
    read_anew = partial(system._database, app.extensions["context"])
    assert read_anew().backup is None
    last = backup_report.Report(int(time.time()), 60, "the store is full", scheduled=True)
    backup_report.write(file, last)
    assert api.get("/system/database")["backup"] == {
        "scheduled": True,
        "started_at": last.started,
        "finished_at": 60,
        "failed": True,  # why is not for everybody
        "late": True,
    }
    backup_report.write(file, last._replace(finished=last.started, error=None))
    backup = read_anew().backup
    assert backup
    assert (backup.failed, backup.late) == (False, False)


def test_it_foresees_when_the_disk_is_full(api: Api, database: Database[Any]) -> None:
    """By a sample: what came evenly is told to some percent."""
    now, a_day = int(time.time()), 3000
    rows = [{"staff_id": 1, "timestamp": now - at * 86_400 // a_day} for at in range(5 * a_day)]
    database["staff"].insert_many(rows)
    storage = api.get("/system/database")["storage"]
    assert storage["detections_a_day"] == pytest.approx(a_day, rel=0.1)
    assert storage["detection_bytes"] > 1
    a_day_bytes = storage["detections_a_day"] * storage["detection_bytes"]
    assert storage["days_left"] == pytest.approx(storage["free_bytes"] / a_day_bytes, rel=0.1)


def test_what_is_sealed_is_counted_and_foreseen_too(api: Api, database: Database[Any]) -> None:
    """Of five days all but the last two are sealed; some of that is in rows as well."""
    now, a_day = int(time.time()), 3000
    times = [now - at * 86_400 // a_day for at in range(5 * a_day)]
    border = now - 2 * 86_400
    database["staff"].insert_many(
        {"staff_id": 1, "timestamp": at} for at in times if at > border - 3600
    )
    old = [at for at in times if at <= border]
    database["sealed"].insert_many(
        {"staff_id": 1, "count": 100, "until": old[first], "columns": bytes(600)}
        for first in range(0, len(old), 100)
    )
    database["sealed"].insert_one({"staff_id": 1, "version": 7})  # the head
    said = api.get("/system/database")
    [shard], storage = said["shards"], said["storage"]
    assert shard["sealed"] == pytest.approx(len(old), abs=100)
    assert shard["documents"] - shard["sealed"] == pytest.approx(2 * a_day + 125, abs=2)
    assert storage["detections_a_day"] == pytest.approx(a_day, rel=0.1)
    assert storage["seal_hours"] == 48


def test_shards_of_one_disk_share_what_is_free() -> None:
    disk = {"fsTotalSize": 8_000_000, "fsUsedSize": 3_000_000}
    moment_later = {"fsTotalSize": 8_000_000, "fsUsedSize": 3_000_100}
    other = {"fsTotalSize": 9_000_000, "fsUsedSize": 1_000_000}
    raw = {"shard1/a:1,b:1": disk, "shard2/a:2": moment_later, "shard3/c:1": other}
    staff = MagicMock()
    staff.database.command.return_value = {"raw": raw}
    shards = [
        Shard(f"shard{number}", Kept(number * 10, 100, 20), Kept(number, 10, 2))
        for number in (1, 2, 3)
    ]
    assert Cluster(staff).disks(shards) == [
        Disk(4_999_900, Kept(30, 200, 40), Kept(3, 20, 4)),
        Disk(8_000_000, Kept(30, 100, 20), Kept(3, 10, 2)),
    ]


@pytest.mark.parametrize(
    ("spool_file", "name"),
    [
        ("/var/lib/waymark/spool.db", "spool"),
        ("../spool/ingest-2.db", "ingest-2"),
        ("/spool/3.db", "ingest-3"),
    ],
)
def test_a_service_is_named_after_its_spool(spool_file: str, name: str) -> None:
    assert process.service_name(spool_file) == name
