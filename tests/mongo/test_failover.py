"""Three members, and the primary killed while detections come in."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from ingest import create_app
from mongo.replica_set import primary_of
from mongo.topology import ReplicaSet, Topology
from tests.cluster import Cluster
from tests.phones import Phones, inside

NAMES = ("a", "b", "c")
SET = Topology(ReplicaSet("three", tuple(f"{name}:1" for name in NAMES)), None, (), ())
WRITERS = 4


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(SET, tmp_path)
    cluster.start()
    cluster.bootstrap()
    yield cluster
    cluster.stop()


def test_a_killed_primary_costs_seconds_and_no_detection(cluster: Cluster) -> None:
    members = cluster.local.users_set.members
    # With three members a failover will come: the driver may wait for it.
    app = create_app(cluster.service(timeout_ms=8000))
    with Phones(inside(app), [*range(WRITERS)]) as writers:
        time.sleep(2)
        primary = primary_of(cluster.local.users_set)
        assert primary
        cluster.kill(NAMES[members.index(primary)])
        time.sleep(10)
    print(f"\nfailover: longest stall {writers.longest_seconds:.1f} s")
    assert set(writers.answers) <= {200, 202, 503}
    assert writers.longest_seconds < 14  # the election takes 3 s, what follows its time
    until = time.monotonic() + 60
    while app.extensions["context"].recorder.queued:
        assert time.monotonic() < until
        time.sleep(0.1)
    app.extensions["context"].close()
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        for number in range(WRITERS):
            stored = client["ICT3102"]["staff"].count_documents({"staff_id": number})
            assert stored == writers.acknowledged[number] > 0
