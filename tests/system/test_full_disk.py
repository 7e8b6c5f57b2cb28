"""Two services whose spools lie on real disks that are too small, while the database is away."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
import requests

from scripts.processes import ROOT
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.phones import BEACON, CONFIRMED, Phones, Post, through
from tests.service import Service, running
from tests.system import acknowledged
from tests.system.disks import Disks

pytestmark = pytest.mark.long

# The first is full before SQLite ever moves its log into the file, the second after.
DISKS = ["256k", "6m"]
BATCH = 200
SINGLES = [f"walker-{number}" for number in range(8)]
BATCHES = [f"backlog-{number}" for number in range(4)]


@pytest.fixture
def services(cluster: Cluster, tmp_path: Path) -> Iterator[list[Service]]:
    with contextlib.ExitStack() as held:
        services = []
        for number, size in enumerate(DISKS):
            folder = tmp_path / f"disk{number}"
            disk = held.enter_context(Disks({folder: size}))
            prefix = [*disk.prefix, "env", f"--chdir={ROOT / 'services' / 'ingest'}"]
            spool = folder / "spool.db"
            services.append(Service(cluster.uri(), tmp_path, prefix, SPOOL_FILE=spool))
        yield held.enter_context(running(*services))


def in_batches(*urls: str) -> Callable[[], Post]:
    """Return what makes a sender of whole batches, each try to the next service."""

    def make() -> Post:
        session, tries = requests.Session(), iter(range(10**9))
        session.trust_env = False

        def post(body: dict[str, Any]) -> int:
            item = {"staff_id": body["user_address"], "mac": BEACON, "rssi": -20}
            events = [f"{body['event_id']}-{number}" for number in range(BATCH)]
            batch = {"detections": [item | {"event_id": event} for event in events]}
            url = f"{urls[next(tries) % len(urls)]}/api/v1/detections"
            try:
                answer = session.post(url, json=batch, timeout=30)
            except requests.RequestException:
                return 0
            if answer.status_code in CONFIRMED:
                assert answer.json()["counts"]["rejected"] == 0
            return answer.status_code

        return post

    return make


def refuses(service: Service) -> bool:
    """Tell whether a service sends phones away, and how."""
    answer = service.detect("nobody", event_id="refused")
    if answer.status_code != 503:
        return False
    assert answer.headers["Retry-After"] == "2"
    return True


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_full_disks_lose_and_double_nothing_and_drain_alone(
    cluster: Cluster, services: list[Service], fault: Literal["killed", "frozen"]
) -> None:
    urls = [service.url for service in services]
    singles, batches = Phones(through(*urls), SINGLES), Phones(in_batches(*urls), BATCHES)
    with singles, batches:
        eventually(lambda: singles.answers[200] > 20 and batches.answers[200] > 4, 30)
        with cluster.away("mongod", fault):
            eventually(lambda: all(refuses(one) for one in services), 60)
            if fault == "killed":
                for service in services:  # with a full disk from its first moment on
                    service.kill()
                    service.start(health="/healthz")
                    eventually(partial(refuses, service))
        eventually(lambda: all(one.get("/readyz").status_code == 200 for one in services), 60)
        singles.wait_for(200, more=20)
    for phones in (singles, batches):
        assert phones.answers[202] > 0
        assert phones.answers[503] > 0
        assert set(phones.answers) <= {200, 202, 503} | ({0} if fault == "killed" else set())
    wanted = singles.acknowledged
    wanted.update({who: count * BATCH for who, count in batches.acknowledged.items()})
    acknowledged.check(cluster, services, wanted, except_for="nobody")
    # What the disks had taken is free again: the next outage finds room.
    cluster.kill("mongod")
    again = [service.detect("again", event_id=str(service.port)) for service in services]
    assert [answer.status_code for answer in again] == [202, 202]
