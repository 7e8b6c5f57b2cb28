"""Two services without a gateway, killed and frozen in the middle of a group with their database.

Phones send each event until it is confirmed, each try to the other service. The database must hold
exactly what was confirmed, once, and both services must answer exactly that.
"""

import signal
from functools import partial
from typing import Any, Literal

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.phones import Phones, through
from tests.service import Service
from tests.stack import acknowledged

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
    assert len({detection["id"] for detection in recent}) == len(recent)
    # What came later for its time stands further behind.
    times = sorted((detection["timestamp"] for detection in recent), reverse=True)
    return times == [detection["timestamp"] for detection in newest.limit(len(recent))]


def keep_reading(services: list[Service]) -> None:
    """Make both services keep every history, so that they have something to be wrong about."""
    for service in services:
        for staff_id in set(STAFF):
            service.get("/extractbeacon", staff_id=staff_id, start_time=0, end_time=4102444800)


def test_a_service_killed_in_mid_group(cluster: Cluster, services: list[Service]) -> None:
    with Phones(through(*(service.url for service in services)), STAFF) as phones:
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
    with Phones(through(*(service.url for service in services)), STAFF) as phones:
        phones.wait_for(200, more=50)
        keep_reading(services)
        with cluster.away("mongod", fault):
            phones.wait_for(202, more=20)
        phones.wait_for(200, more=50, seconds=60)
    assert set(phones.answers) <= {200, 202, 503}
    check(cluster, services, phones)


def test_database_and_services_killed_at_once(cluster: Cluster, services: list[Service]) -> None:
    with Phones(through(*(service.url for service in services)), STAFF) as phones:
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


def test_services_end_soon_while_the_database_is_away(
    cluster: Cluster, services: list[Service]
) -> None:
    with cluster.away("mongod", "killed"):
        for service in services:
            assert service.detect("walker-0").status_code == 202  # what it knew of it is gone
            service.send_signal(signal.SIGTERM)
        for service in services:
            ended = service.wait(15)  # not killed for a hang of 30 s
            assert ended == -signal.SIGTERM, service.log
