"""Two services without a gateway, killed and frozen in the middle of a group with their database.

Phones send each event until it is confirmed, each try to the other service. The database must hold
exactly what was confirmed, once, and both services must tell exactly that.
"""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from mongo import topology
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.phones import Phones, through
from tests.service import Service

STAFF = [f"walker-{number % 6}" for number in range(24)]  # 24 phones: groups are large


@pytest.fixture(scope="module")
def cluster(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(topology.load(topology.EMBEDDED), tmp_path_factory.mktemp("kills") / "m")
    with cluster.running(root / "mongo" / "directory.csv"):
        yield cluster


@pytest.fixture(scope="module")
def services(cluster: Cluster) -> Iterator[list[Service]]:
    services = [Service(cluster.uri(), cluster.folder) for _ in range(2)]
    for service in services:
        service.start()
    yield services
    for service in services:
        service.kill()


@pytest.fixture(autouse=True)
def nothing_stored(cluster: Cluster, services: list[Service]) -> None:
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        for collection in ("staff", "latest"):
            client["ICT3102"][collection].delete_many({})


def mongod(cluster: Cluster, fault: str, seconds: float) -> None:
    """Kill or freeze the database for a while."""
    if fault == "killed":
        cluster.kill("mongod")
        time.sleep(seconds)
        cluster.start()
    else:
        cluster.send_signal("mongod", signal.SIGSTOP)
        time.sleep(seconds)
        cluster.send_signal("mongod", signal.SIGCONT)


def drained(service: Service) -> bool:
    ready = service.get("/readyz")
    return ready.status_code == 200 and ready.json()["queued"] == 0


def exactly(cluster: Cluster, services: list[Service], phones: Phones) -> None:
    """The database and both services hold what was confirmed, and nothing else."""
    for service in services:
        eventually(lambda one=service: drained(one), 60)  # type: ignore[misc]
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        staff = client["ICT3102"]["staff"]
        assert Counter(one["staff_id"] for one in staff.find()) == phones.acknowledged
        noted = {one["_id"]: one["recent"] for one in client["ICT3102"]["latest"].find()}
        for staff_id, recent in noted.items():
            newest = staff.find({"staff_id": staff_id}).sort("timestamp", -1).limit(len(recent))
            assert [one["timestamp"] for one in recent] == [one["timestamp"] for one in newest]
            assert len({one["id"] for one in recent}) == len(recent)
    for service in services:
        told = {staff_id: len(service.history(staff_id)) for staff_id in set(STAFF)}
        assert told == phones.acknowledged


def keep_reading(services: list[Service]) -> None:
    """Make both services keep every history, so that they have something to be wrong about."""
    for service in services:
        for staff_id in set(STAFF):
            service.get("/extractbeacon", staff_id=staff_id, start_time=0, end_time=4102444800)


def test_a_service_killed_in_mid_group(cluster: Cluster, services: list[Service]) -> None:
    with Phones(through(*(one.url for one in services)), STAFF) as phones:
        for service in services:
            keep_reading(services)
            service.kill()
            service.start()
    assert phones.answers[0] > 0  # else nothing was cut off
    assert set(phones.answers) <= {0, 200, 202, 503}
    exactly(cluster, services, phones)


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_the_database_lost_in_mid_write(
    cluster: Cluster, services: list[Service], fault: str
) -> None:
    with Phones(through(*(one.url for one in services)), STAFF) as phones:
        time.sleep(0.5)
        keep_reading(services)
        mongod(cluster, fault, 3)
        eventually(lambda: all(drained(one) for one in services), 60)
        time.sleep(0.5)
    assert phones.answers[202] > 0
    assert set(phones.answers) <= {200, 202, 503}
    exactly(cluster, services, phones)


def test_database_and_services_killed_at_once(cluster: Cluster, services: list[Service]) -> None:
    with Phones(through(*(one.url for one in services)), STAFF) as phones:
        time.sleep(0.5)
        keep_reading(services)
        cluster.kill("mongod")
        eventually(lambda: phones.answers[202] > 20, 20)
        for service in services:
            service.kill()  # with detections in its spool
        cluster.start()
        for service in services:
            service.start()
        time.sleep(0.5)
    exactly(cluster, services, phones)


def test_an_answer_that_never_came_is_repeated_elsewhere(
    cluster: Cluster, services: list[Service]
) -> None:
    """The insert is done, the answer is late: the phone asks the other service meanwhile."""
    first, second = services
    body = {"user_address": "walker-0", "beacon_address": "C2A628384B08", "rssi": -20}
    bodies = [body | {"event_id": f"late-{number}"} for number in range(20)]
    for one in bodies:  # the same event on both, at different times: one of them is a repeat
        answers = [service.session.post(f"{service.url}/newbeacondetect", data=one, timeout=30)
                   for service in (first, second)]  # fmt: skip
        assert [answer.headers["X-Detection"] for answer in answers] == ["stored", "duplicate"]
    assert len(first.history("walker-0")) == len(second.history("walker-0")) == 20


@pytest.mark.parametrize("step_seconds", [-3600, 3600])
def test_a_clock_that_steps_loses_and_doubles_nothing(
    cluster: Cluster, services: list[Service], step_seconds: int
) -> None:
    """The gateway's clock steps between a try and its repeat, and the phone's with it."""
    service = services[0]
    keep_reading(services)
    now = time.time()
    for number in range(20):
        body = {"user_address": "walker-1", "beacon_address": "C2A628384B08", "rssi": -20}
        body |= {"event_id": f"step-{number}"}
        for stamp in (now, now + step_seconds):
            headers = {"X-Request-ID": f"r{number}", "X-Request-Start": f"{stamp:.3f}"}
            url = f"{service.url}/newbeacondetect"
            answer = service.session.post(url, data=body, headers=headers, timeout=30)
            assert answer.status_code == 200
        stepped = {"user_address": "walker-1", "beacon_address": "C2A628384B08", "rssi": -20}
        stepped |= {"timestamp": str(int(now) + step_seconds - number)}
        url = f"{services[number % 2].url}/newbeacondetect"
        assert service.session.post(url, data=stepped, timeout=30).status_code == 200
    for one in services:
        times = [found["timestamp"] for found in one.history("walker-1")]
        assert len(times) == 40
        assert times == sorted(times, reverse=True)
