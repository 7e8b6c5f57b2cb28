"""Three members, and the primary killed while detections come in."""

import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from ingest import create_app
from mongo.replica_set import primary_of
from mongo.topology import ReplicaSet, Topology
from tests.cluster import Cluster

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


class Writers:
    """Clients of an ingest service that repeat a detection until it is confirmed."""

    def __init__(self, cluster: Cluster) -> None:
        # With three members a failover will come: the driver may wait for it.
        self._app = create_app(cluster.service(timeout_ms=8000))
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(WRITERS)]
        self.acknowledged: list[int] = [0] * WRITERS
        self.longest_seconds = 0.0
        self.statuses: set[int] = set()

    def _run(self, number: int) -> None:
        client = self._app.test_client()
        while not self._stop.is_set():
            body = {"user_address": number, "beacon_address": "A" * 12, "rssi": -50}
            body |= {"event_id": uuid.uuid4().hex}
            began = time.monotonic()
            while (status := client.post("/newbeacondetect", json=body).status_code) != 200:
                self.statuses.add(status)
            self.acknowledged[number] += 1
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)

    def __enter__(self) -> "Writers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._app.extensions["store"].close()


def test_a_killed_primary_costs_seconds_and_no_detection(cluster: Cluster) -> None:
    members = cluster.local.users_set.members
    with Writers(cluster) as writers:
        time.sleep(2)
        primary = primary_of(cluster.local.users_set)
        assert primary
        cluster.kill(NAMES[members.index(primary)])
        time.sleep(10)
    print(f"\nfailover: longest stall {writers.longest_seconds:.1f} s")
    assert writers.statuses <= {202, 503}
    assert writers.longest_seconds < 14  # the election takes 3 s, what follows its time
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        for number, acknowledged in enumerate(writers.acknowledged):
            stored = client["ICT3102"]["staff"].count_documents({"staff_id": number})
            assert (stored, acknowledged > 0) == (acknowledged, True)
