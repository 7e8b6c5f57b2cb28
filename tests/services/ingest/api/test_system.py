"""How the service says it is."""

import time
from unittest.mock import MagicMock

import pytest

from ingest import process
from ingest.storage.database.cluster_usage import Cluster
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
    figures = {"count": 320, "numOrphanDocs": 120, "storageSize": 4096}
    staff = MagicMock()
    staff.database.command.return_value = {}
    staff.aggregate.return_value = [
        {"shard": "shard1", "storageStats": figures},
        {"shard": "shard2", "storageStats": {"count": 120, "storageSize": 4096}},
    ]
    assert [(shard.name, shard.documents) for shard in Cluster(staff).shards()] == [
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
