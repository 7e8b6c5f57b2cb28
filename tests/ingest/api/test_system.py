"""How the service says it is."""

import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from ingest import process
from ingest.storage.cluster_usage import Cluster
from scripts.processes import ROOT
from scripts.processes.control_groups import Limits
from scripts.processes.limited_group import LimitedGroup
from tests.ingest.api.conftest import Api
from tests.needs import limited

LIMIT = 64 * 1024 * 1024


def test_it_names_itself_and_tells_how_it_is(api: Api) -> None:
    said = api.get("/system")
    assert said["service"]
    assert (said["queued"], said["set_aside"]) == (0, 0)
    assert said["mongodb"]["reachable"]
    assert said["mongodb"]["complete"]
    assert 0 < said["mongodb"]["latency_ms"] < 2000
    assert said["memory"]["used_bytes"] > 1024 * 1024
    assert said["started_at"] <= said["as_of"] <= time.time()


def test_what_a_shard_gave_away_is_not_counted_there() -> None:
    given = {"count": 320, "numOrphanDocs": 120, "storageSize": 4096}
    staff = MagicMock()
    staff.database.command.return_value = {}
    staff.aggregate.return_value = [
        {"shard": "shard1", "storageStats": given},
        {"shard": "shard2", "storageStats": {"count": 120, "storageSize": 4096}},
    ]
    assert [(one.name, one.documents) for one in Cluster(staff).shards()] == [
        ("shard1", 200),
        ("shard2", 120),
    ]


def test_it_counts_documents_and_minutes(api: Api) -> None:
    timestamp = api.hear("counted", ago=120)
    said = api.get("/system/database")
    assert sum(shard["documents"] for shard in said["shards"]) >= 1
    assert len(said["minutes"]) == 61
    minute = next(one for one in said["minutes"] if one["timestamp"] == timestamp // 60 * 60)
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


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": str(LIMIT), "memory.stat": "anon 5\nfile 7\n"}, (5, LIMIT)),
        (
            {
                "memory/memory.limit_in_bytes": str(LIMIT),
                "memory/memory.stat": "rss 1\ntotal_rss 6\n",
            },
            (6, LIMIT),
        ),
    ],
)
def test_a_container_knows_its_limit(
    tmp_path: Path, files: dict[str, str], expected: tuple[int, int]
) -> None:
    (tmp_path / "memory").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert process.memory(tmp_path) == expected


def test_without_a_limit_it_is_the_process_that_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    used, limit = process.memory(tmp_path)
    assert used > 1024 * 1024
    assert limit is None


@limited
def test_a_process_knows_the_limit_of_its_own_group() -> None:
    """Which is no container's: systemd's, or a test's."""
    told = "from ingest import process; input(); print(*process.memory())"
    with (
        LimitedGroup("own", Limits(None, LIMIT)) as group,
        subprocess.Popen(
            [sys.executable, "-c", told],
            cwd=ROOT / "services" / "ingest",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as asked,
    ):
        group.adopt(asked.pid)
        used, limit = map(int, asked.communicate("\n", timeout=60)[0].split())
    assert limit == LIMIT
    assert 0 <= used < limit
