"""What takes turns on one database: this checkout's service, another's, the old architecture's."""

import datetime
import time
from functools import partial
from pathlib import Path
from typing import Any

from bson import ObjectId
from pymongo import MongoClient

from loadtests.architectures import old
from loadtests.benchmark.loads import LONG, SHORT, SHORT_STAFF, STAFF
from mongo.directory import DATABASE
from scripts.processes.control_groups import SERVICE
from scripts.processes.health import http_problem
from scripts.processes.ports import free_port
from scripts.processes.process import Process
from scripts.processes.service import IngestService

Document = dict[str, Any]


class OldService(Process):
    """The old application, inside the same limits."""

    def __init__(self, mongodb_uri: str, folder: Path) -> None:
        self.port = free_port()
        self._health = f"http://127.0.0.1:{self.port}/healthz"
        command = old.gunicorn(self.port, "loadtests.baseline.app:create_app()")
        log, environment = folder / "old.log", old.environment(mongodb_uri)
        super().__init__("old", command, log, environment=environment, limits=SERVICE)

    def start(self) -> None:
        """Start it, and wait until it serves."""
        super().start()
        self.wait_until_healthy(partial(http_problem, self._health))


def service(mongodb_uri: str, folder: Path, checkout: Path | None) -> OldService | IngestService:
    """Return the service of a checkout inside the limits, or the old one's without a checkout."""
    if checkout is None:
        return OldService(mongodb_uri, folder)
    return IngestService(mongodb_uri, folder, limits=SERVICE, source=checkout)


def prepare(mongodb_uri: str) -> None:
    """Store the histories that the cases read: 14 long ones and a short one."""
    with MongoClient[Document](mongodb_uri) as client:
        database = client[DATABASE]
        for staff_id, count in [*((n, LONG) for n in range(STAFF)), (SHORT_STAFF, SHORT)]:
            history = _history(staff_id, count)
            for first in range(0, count, 5000):
                database["staff"].insert_many(history[first : first + 5000], ordered=False)
            latest = {"_id": staff_id, "version": 1, "changes": [0], "recent": []}
            database["latest"].insert_one(latest)


def stored(mongodb_uri: str, staff_id: int) -> int:
    """Return how many detections of somebody are stored."""
    with MongoClient[Document](mongodb_uri) as client:
        return client[DATABASE]["staff"].count_documents({"staff_id": staff_id})


def _history(staff_id: int, count: int) -> list[Document]:
    now, at = int(time.time()), datetime.datetime.now(datetime.UTC)
    same = {"staff_id": staff_id, "rssi": -60, "mac": "C2A628384B08", "received_at": at}
    return [
        {"_id": ObjectId(), "level": str(1 + n // 60 % 7), "timestamp": now - 4 * n}
        | {"location": f"Lobby {'AB'[n // 30 % 2]}", **same}
        for n in range(count)
    ]
