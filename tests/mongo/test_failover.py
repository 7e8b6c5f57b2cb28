"""Three members, and the primary killed while detections come in."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from ingest import create_app
from mongo.replica_set import primary_of
from mongo.topology import ReplicaSet, Topology
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.mongo.settings import settings
from tests.phones import Phones, inside

NAMES = ("a", "b", "c")
SET = Topology(ReplicaSet("three", tuple(f"{name}:1" for name in NAMES)), None, (), ())
WRITERS = 4


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(SET, tmp_path).running() as cluster:
        yield cluster


@pytest.mark.long
def test_a_killed_primary_costs_seconds_and_no_detection(cluster: Cluster) -> None:
    members = cluster.local.users_set.members
    # With three members a failover will come: the driver may wait for it.
    app = create_app(settings(cluster, timeout_ms=8000))
    with Phones(inside(app), [*range(WRITERS)]) as writers:
        writers.wait_for(200, more=50)
        primary = primary_of(cluster.local.users_set)
        assert primary
        cluster.kill(NAMES[members.index(primary)])
        writers.wait_for(200, more=100, seconds=60)
    print(f"\nfailover: longest stall {writers.longest_seconds:.1f} s")
    assert set(writers.answers) <= {200, 202, 503}
    assert writers.longest_seconds < 14  # the election takes 3 s, what follows its time
    eventually(lambda: not app.extensions["context"].recording.recorder.queued, 60)
    app.extensions["context"].close()
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        for number in range(WRITERS):
            stored = client["ICT3102"]["staff"].count_documents({"staff_id": number})
            assert stored == writers.acknowledged[number] > 0
