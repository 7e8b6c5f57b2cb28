"""What takes turns on one database, and the histories in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pymongo import MongoClient

from common.schema import DATABASE
from loadtests import histories
from loadtests.benchmark.loads import LONG, SHORT, SHORT_STAFF, STAFF
from loadtests.old import old_environment, old_service
from scripts.processes.control_groups import SERVICE
from scripts.processes.health import http_problem
from scripts.processes.ports import free_port
from scripts.processes.process import Process
from scripts.processes.service import IngestService

Document = dict[str, Any]


@contextmanager
def service(mongodb_uri: str, folder: Path, checkout: Path | None) -> Iterator[tuple[str, Process]]:
    """Yield a checkout's service (or the old one) inside the limits: its address and process."""
    if checkout:
        with IngestService(mongodb_uri, folder, limits=SERVICE, source=checkout) as new:
            yield new.url, new
        return
    port, environment = free_port(), old_environment(mongodb_uri)
    log, url = folder / "old.log", f"http://127.0.0.1:{port}"
    with Process("old", old_service(port), log, environment=environment, limits=SERVICE) as old:
        old.wait_until_healthy(partial(http_problem, f"{url}/healthz"))
        yield url, old


def prepare(mongodb_uri: str) -> None:
    """Store the histories that the cases read: 14 long ones and a short one."""
    histories.store(mongodb_uri, dict.fromkeys(range(STAFF), LONG) | {SHORT_STAFF: SHORT})


def stored(mongodb_uri: str, staff: int) -> int:
    """Return how many detections of somebody are stored."""
    with MongoClient[Document](mongodb_uri) as client:
        return client[DATABASE]["staff"].count_documents({"staff_id": staff})
