"""A service that runs before its database is set up: nothing waits for that, nothing is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.rules.request_parameters import EARLIEST
from mongo import topology
from mongo.bootstrap import bootstrap
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.service import Service

READS = ("/readyz", "/retrieveformonitoring", "/api/v1/staff", "/api/v1/beacons")


class Interrupted(Exception):
    """Ends the bootstrap after a step."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(topology.load(topology.EMBEDDED), tmp_path / "mongod") as cluster:
        yield cluster


@pytest.mark.long
def test_detections_come_before_the_replica_set_and_before_the_user(
    cluster: Cluster, tmp_path: Path
) -> None:
    service = Service(cluster.uri(), tmp_path)

    def interrupt(step: str) -> None:
        if step.startswith("user admin"):
            raise Interrupted

    def say_503(number: int) -> None:
        assert service.detect("early", timestamp=EARLIEST + number).status_code == 202
        history = {"staff_id": "early", "start_time": 0, "end_time": EARLIEST + 9}
        assert service.get("/extractbeacon", **history).status_code == 503
        assert {service.get(path).status_code for path in READS} == {503}

    try:
        service.start(health="/healthz")
        say_503(1)
        with pytest.raises(Interrupted):  # MongoDB now says "authentication failed", code 18
            bootstrap(cluster.local, cluster.secrets, None, interrupt)
        say_503(2)
        cluster.bootstrap()
        eventually(lambda: service.get("/readyz").status_code == 200, 60)
        eventually(lambda: service.get("/readyz").json()["queued"] == 0, 60)
        assert service.detect("early", timestamp=EARLIEST + 3).status_code == 200
        times = [row["timestamp"] - EARLIEST for row in service.history("early")]
        assert times == [3, 2, 1]
    finally:
        service.kill()
