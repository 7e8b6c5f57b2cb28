"""Spools of services that are gone: others adopt them, each by one and whole."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.recording.spool import Spool
from ingest.recording.spools import LOOK_SECONDS
from ingest.storage.detections.documents import document
from mongo import topology
from scripts.native import spools
from scripts.native.layout import Layout
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.phones import BEACON
from tests.service import Service, running
from tests.stack import acknowledged

pytestmark = pytest.mark.long

BATCH = 700  # more than a group


@pytest.fixture
def cluster(tmp_path: Path, root: Path) -> Iterator[Cluster]:
    cluster = Cluster(topology.load(topology.EMBEDDED), tmp_path / "mongod")
    with cluster.running(root / "mongo" / "directory.csv"):
        yield cluster


@pytest.fixture
def prefix(tmp_path: Path, root: Path) -> list[str]:
    """Return what starts a service as in its container, in a folder of the test."""
    folder = tmp_path / "spools"
    folder.mkdir()
    text = (root / "services" / "ingest" / "start.sh").read_text()
    for old, new in (("/spool", str(folder)), ("python3 -m ingest", '"$@"')):
        assert old in text
        text = text.replace(old, new)
    script = tmp_path / "start.sh"
    script.write_text(text)
    return ["sh", str(script)]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return a native stack of one service."""
    return Layout(tmp_path, 8080, (5001,), 4000, 27117, str(topology.EMBEDDED))


def queued(service: Service) -> int:
    return int(service.get("/readyz").json()["queued"])


def fill(service: Service, staff_id: str) -> None:
    items = [
        {"staff_id": staff_id, "mac": BEACON, "rssi": -20, "event_id": f"e{n}"}
        for n in range(BATCH)
    ]
    url = f"{service.url}/api/v1/detections"
    answer = service.session.post(url, json={"detections": items}, timeout=30)
    assert answer.status_code == 202


def test_the_spool_of_a_killed_service_is_stored_by_another_once(
    cluster: Cluster, tmp_path: Path, prefix: list[str]
) -> None:
    names = [f"walker-{number}" for number in range(4)]
    services = [Service(cluster.uri(), tmp_path, prefix) for _ in names]
    one, two, three, four = services
    try:
        for service in (one, two, three):  # each has the first spool that is free
            service.start()
        cluster.kill("mongod")
        for service, name in zip(services[:3], names, strict=False):
            fill(service, name)
        time.sleep(2 * LOOK_SECONDS)  # all live: nobody adopts anything
        assert [queued(service) for service in (one, two, three)] == [BATCH] * 3
        two.kill()
        eventually(lambda: queued(one) + queued(three) == 3 * BATCH, 60)
        four.start(health="/healthz")
        assert four.get("/api/v1/system").json()["service"] == "ingest-4"
        fill(four, names[3])
        three.kill()  # it may have adopted the other
        eventually(lambda: queued(one) + queued(four) == 4 * BATCH, 60)
        cluster.start()
        acknowledged.check(cluster, [one, four], Counter(dict.fromkeys(names, BATCH)))
        folder = tmp_path / "spools"
        eventually(lambda: sorted(folder.glob("*.db")) == [folder / "1.db", folder / "4.db"], 60)
        two.start()
        assert two.get("/api/v1/system").json()["service"] == "ingest-2"
    finally:
        for service in services:
            service.kill()


def test_a_native_stack_of_fewer_services_stores_the_spools_of_the_others(
    cluster: Cluster, tmp_path: Path, layout: Layout
) -> None:
    folder = tmp_path / "spool"
    for number in (1, 2):
        spool = Spool(folder / f"ingest-{number}.db", 10)
        spool.append([document(number, ("1", "x"), 1, -20, BEACON, 1.0, ("a", 1))])
        spool.close()
    (folder / "ingest-1.lock").touch()  # as if it had been adopted before
    spools.release(layout)
    assert [file.name for file in folder.glob("*.lock")] == ["ingest-2.lock"]
    service = Service(cluster.uri(), tmp_path, SPOOL_FILE=folder / "ingest-1.db")
    with running(service):
        acknowledged.check(cluster, [service], Counter([1, 2]))
        eventually(lambda: [file.name for file in folder.glob("*.db")] == ["ingest-1.db"], 60)
