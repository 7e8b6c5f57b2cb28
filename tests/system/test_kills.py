"""Two services without a gateway, killed and frozen in the middle of a group with their database.

Phones send each event until it is confirmed, each try to the other service. The database must hold
exactly what was confirmed, once, and both services must answer exactly that.
"""

import time
from functools import partial
from typing import Any, Literal

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.phones import Phones, through
from tests.service import Service
from tests.system import acknowledged

pytestmark = pytest.mark.long

STAFF = [f"walker-{number % 6}" for number in range(24)]  # 24 phones: groups are large


def check(cluster: Cluster, services: list[Service], phones: Phones) -> None:
    """The database and both services hold what was confirmed, and nothing else."""
    acknowledged.check(cluster, services, phones.acknowledged)
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        database = client["ICT3102"]
        for staff_id in set(STAFF):
            eventually(partial(all_is_noted, database, staff_id), 60)


def all_is_noted(database: Database[dict[str, Any]], staff_id: str) -> bool:
    """Tell whether `latest` shows the newest of somebody, each once."""
    noted = database["latest"].find_one({"_id": staff_id})
    if not noted:
        return False
    recent = noted["recent"]
    newest = database["staff"].find({"staff_id": staff_id}).sort("timestamp", -1)
    assert len({one["id"] for one in recent}) == len(recent)
    # What came later for its time stands further behind.
    times = sorted((one["timestamp"] for one in recent), reverse=True)
    return times == [one["timestamp"] for one in newest.limit(len(recent))]


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
    check(cluster, services, phones)


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_the_database_lost_in_mid_write(
    cluster: Cluster, services: list[Service], fault: Literal["killed", "frozen"]
) -> None:
    with Phones(through(*(one.url for one in services)), STAFF) as phones:
        phones.wait_for(200, more=50)
        keep_reading(services)
        with cluster.away("mongod", fault):
            phones.wait_for(202, more=20)
        phones.wait_for(200, more=50, seconds=60)
    assert set(phones.answers) <= {200, 202, 503}
    check(cluster, services, phones)


def test_database_and_services_killed_at_once(cluster: Cluster, services: list[Service]) -> None:
    with Phones(through(*(one.url for one in services)), STAFF) as phones:
        phones.wait_for(200, more=50)
        keep_reading(services)
        with cluster.away("mongod", "killed"):
            phones.wait_for(202, more=20)
            for service in services:
                service.kill()  # with detections in its spool
        for service in services:
            service.start()
        phones.wait_for(200, more=50)
    check(cluster, services, phones)


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
