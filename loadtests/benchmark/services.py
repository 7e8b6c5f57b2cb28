"""What takes turns on one database, and the histories in it."""

import datetime
import time
from functools import partial
from pathlib import Path
from typing import Any

from bson import ObjectId
from pymongo import MongoClient

from loadtests.architectures import old_environment, old_service
from loadtests.benchmark.loads import LONG, SHORT, SHORT_STAFF, STAFF
from mongo.directory import DATABASE
from scripts.processes.control_groups import SERVICE
from scripts.processes.health import http_problem
from scripts.processes.ports import free_port
from scripts.processes.process import Process
from scripts.processes.service import IngestService

Document = dict[str, Any]


class OldService(Process):
    """The old architecture's application, inside the same limits."""

    def __init__(self, mongodb_uri: str, folder: Path) -> None:
        self.port = free_port()
        log, environment = folder / "old.log", old_environment(mongodb_uri)
        command = old_service(self.port)
        super().__init__("old", command, log, environment=environment, limits=SERVICE)

    def start(self) -> None:
        """Start it, and wait until it serves."""
        super().start()
        self.wait_until_healthy(partial(http_problem, f"http://127.0.0.1:{self.port}/healthz"))


def service(mongodb_uri: str, folder: Path, checkout: Path | None) -> OldService | IngestService:
    """Return the service of a checkout inside the limits; without a checkout, the old one."""
    if checkout is None:
        return OldService(mongodb_uri, folder)
    return IngestService(mongodb_uri, folder, limits=SERVICE, source=checkout)


def prepare(mongodb_uri: str) -> None:
    """Store the histories that the cases read: 14 long ones and a short one."""
    now, at = int(time.time()), datetime.datetime.now(datetime.UTC)
    same = {"rssi": -60, "mac": "C2A628384B08", "received_at": at}
    with MongoClient[Document](mongodb_uri) as client:
        database = client[DATABASE]
        for staff, count in [*((n, LONG) for n in range(STAFF)), (SHORT_STAFF, SHORT)]:
            history = [
                {"_id": ObjectId(), "staff_id": staff, "level": str(1 + n // 60 % 7)}
                | {"location": f"Lobby {'AB'[n // 30 % 2]}", "timestamp": now - 4 * n, **same}
                for n in range(count)
            ]
            database["staff"].insert_many(history, ordered=False)
            latest = {"_id": staff, "version": 1, "changes": [0], "recent": []}
            database["latest"].insert_one(latest)


def stored(mongodb_uri: str, staff: int) -> int:
    """Return how many detections of somebody are stored."""
    with MongoClient[Document](mongodb_uri) as client:
        return client[DATABASE]["staff"].count_documents({"staff_id": staff})
