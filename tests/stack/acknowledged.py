"""What was acknowledged is in the database and in every service, once, and nothing else is."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from pymongo import MongoClient

from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.service import Service

DRAINED_SECONDS = 60


def drained(service: Service) -> bool:
    """Tell whether a service reaches the database and has nothing queued."""
    ready = service.get("/readyz")
    return ready.status_code == 200 and ready.json()["queued"] == 0


def documents(cluster: Cluster) -> list[dict[str, Any]]:
    """Return every detection in the database."""
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        return list(client["ICT3102"]["staff"].find())


def check(
    cluster: Cluster, services: Sequence[Service], wanted: Counter[Any], *, except_for: str = ""
) -> None:
    """Wait until all queues are empty, then compare the detections of each staff member."""
    for service in services:
        eventually(partial(drained, service), DRAINED_SECONDS)
    stored = Counter(document["staff_id"] for document in documents(cluster))
    stored.pop(except_for, None)
    assert stored == wanted
    for service in services:
        assert {staff_id: len(service.history(staff_id)) for staff_id in wanted} == wanted
