"""Three hosts as processes: each a gateway and an ingest service with a spool of its own.

They have one database. A host is lost with detections in its spool; phones go to the others, and it
comes back.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from common.schema import DATABASE
from mongo import topology
from scripts.processes import ROOT
from scripts.processes.cluster import Cluster
from scripts.processes.service import IngestService
from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway
from tests.phones import Phones, through

pytestmark = pytest.mark.long

HOSTS = 3
AWAY_SECONDS = 60
REST_SECONDS = 0.05  # of each phone: all are one client address, which has 200 requests/s


class Host:
    """What one host has; its folder is its disk."""

    def __init__(self, folder: Path, mongodb_uri: str) -> None:
        folder.mkdir()
        self.run = folder / "run"
        self.run.mkdir()
        self.service = IngestService(mongodb_uri, folder)
        self.gateway: Gateway | None = None

    def start(self, services: list[IngestService]) -> None:
        """Start both parts; the gateway knows all services."""
        self.service.start("/healthz")
        addresses = " ".join(f"127.0.0.1:{service.port}" for service in services)
        if self.gateway is None:
            self.gateway = Gateway(self.run, ingest=addresses)
            self.gateway.answer_open()
        self.gateway.start()

    @property
    def url(self) -> str:
        """Where phones reach it."""
        assert self.gateway
        return self.gateway.url

    def lose(self) -> None:
        """End everything on it at once; the disk stays."""
        assert self.gateway
        self.gateway.process.kill()
        self.service.kill()

    def queued(self) -> int:
        """Return how many detections wait in its spool, as its service tells."""
        answer = requests.get(f"{self.service.url}/readyz", timeout=5)
        return int(answer.json()["queued"])

    def close(self) -> None:
        """End everything."""
        self.service.stop()
        if self.gateway:
            self.gateway.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hosts")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(topology.load(topology.EMBEDDED), folder / "db")
    with cluster.running(ROOT / "mongo" / "directory.csv"):
        yield cluster


@pytest.fixture(scope="module")
def hosts(cluster: Cluster, folder: Path) -> Iterator[list[Host]]:
    with ExitStack() as stack:
        hosts = [Host(folder / str(number), cluster.uri()) for number in range(HOSTS)]
        services = [host.service for host in hosts]
        for host in hosts:
            stack.callback(host.close)
            host.start(services)
        yield hosts


def stored(cluster: Cluster) -> int:
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        return client[DATABASE]["staff"].count_documents({})


def test_a_host_that_is_lost_with_a_full_spool_loses_nothing(
    cluster: Cluster, hosts: list[Host]
) -> None:
    lost, *others = hosts
    services = [host.service for host in hosts]
    (database,) = cluster.servers()
    before = stored(cluster)
    phones = Phones(
        through(*(host.url for host in hosts)), list(range(12)), rest_seconds=REST_SECONDS
    )
    with phones:
        phones.wait_for(200, 100)
        with cluster.away(database, "frozen"):
            eventually(lambda: all(host.queued() > 5 for host in hosts), AWAY_SECONDS)
            lost.lose()
            phones.wait_for(202, 50, AWAY_SECONDS)
        phones.wait_for(200, 200, AWAY_SECONDS)  # by the two others
        eventually(lambda: not any(host.queued() for host in others), AWAY_SECONDS)
    assert set(phones.answers) <= {0, 200, 202, 503}
    # Nobody reaches its disk: what waits there waits.
    missing = len(phones.confirmed) + before - stored(cluster)
    assert missing > 0
    lost.start(services)
    eventually(lambda: stored(cluster) - before == len(phones.confirmed), AWAY_SECONDS)
    eventually(lambda: lost.queued() == 0, AWAY_SECONDS)
    assert stored(cluster) - before == len(phones.confirmed)  # each once


def test_a_host_that_comes_back_empty_takes_part_again(
    cluster: Cluster, hosts: list[Host], folder: Path
) -> None:
    lost = hosts[0]
    services = [host.service for host in hosts]
    before = stored(cluster)
    with Phones(
        through(*(host.url for host in hosts)), list(range(8)), rest_seconds=REST_SECONDS
    ) as phones:
        phones.wait_for(200, 100)
        lost.lose()
        phones.wait_for(200, 100, AWAY_SECONDS)
        for spool in (folder / "0").glob("spool*"):
            spool.unlink()
        shutil.rmtree(lost.run)
        lost.run.mkdir()
        lost.start(services)
        unanswered = phones.answers[0]
        phones.wait_for(200, 200, AWAY_SECONDS)
        assert phones.answers[0] - unanswered <= 8  # what was under way
    assert stored(cluster) - before == len(phones.confirmed)
