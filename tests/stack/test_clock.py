"""Two services whose clocks step by an hour in the middle of traffic, one after the other.

The services are real, and so is what they serve; libfaketime gives them the clocks.
"""

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from scripts.processes import ROOT
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.needs import need
from tests.phones import Phones, Post, through
from tests.service import Service, running
from tests.stack import acknowledged

pytestmark = pytest.mark.long

HOUR = 3600
STEPS = (-HOUR, 0, HOUR, 0)
READS = 3  # with each clock by each service
WALKERS = [f"walker-{number}" for number in range(6)]
RETRIED = [f"retried-{number}" for number in range(4)]
# This libfaketime breaks sleeping by the monotonic clock, which it is set to leave alone.
SLEEP = "import select, time\ntime.sleep = lambda seconds: select.select([], [], [], seconds)\n"


class Stepped(Service):
    """An ingest service with a clock of its own."""

    def __init__(self, mongodb_uri: str, folder: Path, number: int) -> None:
        need("faketime")
        self._clock = folder / f"clock-{number}"
        self.step(0)
        (folder / "sitecustomize.py").write_text(SLEEP)
        (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
        settings: dict[str, object] = {
            "LD_PRELOAD": library,
            "PYTHONPATH": f"{folder}:{ROOT}",
            "FAKETIME_TIMESTAMP_FILE": self._clock,
            "FAKETIME_NO_CACHE": 1,
            "FAKETIME_DONT_FAKE_MONOTONIC": 1,
            "NO_FAKE_STAT": 1,
        }
        super().__init__(mongodb_uri, folder, (), **settings)

    def step(self, seconds: int) -> None:
        """Set the clock so far from the true one."""
        fresh = self._clock.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.rename(self._clock)  # never half a number

    def clock(self) -> int:
        return int(self.get("/api/v1/system").json()["as_of"])


@pytest.fixture
def services(cluster: Cluster, tmp_path: Path) -> Iterator[list[Stepped]]:
    with running(*(Stepped(cluster.uri(), tmp_path, number) for number in range(2))) as services:
        yield services


def as_the_gateway(*urls: str) -> Callable[[], Post]:
    """Return what makes a sender that asks both services: the second time is the retry."""

    def make() -> Post:
        session = requests.Session()
        session.trust_env = False

        def post(body: dict[str, Any]) -> int:
            # What names it is the request id, which comes with the gateway's own, true time.
            body = dict(body)
            headers = {"X-Request-ID": body.pop("event_id")}
            headers["X-Request-Start"] = f"{time.time():.3f}"
            for url in urls:
                time.sleep(0.02)  # a step may come between them
                answer = session.post(
                    f"{url}/newbeacondetect", data=body, headers=headers, timeout=30
                )
                assert answer.status_code in (200, 202)
            return answer.status_code

        return post

    return make


class Follower(threading.Thread):
    """Reads the change feed by its cursors, each time from another service."""

    def __init__(self, services: list[Stepped]) -> None:
        super().__init__()
        self._services = itertools.cycle(services)
        self._enough = threading.Event()
        self._cursor = services[0].get("/api/v1/changes").text
        self._session = requests.Session()
        self._session.trust_env = False
        self.ids: list[str] = []

    def run(self) -> None:
        *_, last = self._cursor.splitlines()
        cursor = json.loads(last)["next"]
        fresh = 1
        while fresh or not self._enough.is_set():
            parameters: dict[str, Any] = {"after": cursor, "limit": 200}
            url = f"{next(self._services).url}/api/v1/changes"
            answer = self._session.get(url, params=parameters, timeout=30)
            fresh = 1
            if answer.status_code == 200:  # not while the database is away
                *lines, last = map(json.loads, answer.text.splitlines())
                self.ids += [line["id"] for line in lines]
                cursor, fresh = last["next"], len(lines)
            time.sleep(0.1)

    def __enter__(self) -> "Follower":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self.join()


class Reader:
    """Writes one detection after the other, and expects it in every answer after that."""

    def __init__(self, services: list[Stepped]) -> None:
        self._services = services
        self._count = 0
        self._newest = 0
        self._etags: set[str] = set()

    def write_and_read(self, writer: Stepped) -> None:
        event = f"read-{self._count}"
        # A busy machine queues some; they are repeated until they are stored.
        eventually(lambda: writer.detect("reader", event_id=event).status_code == 200, 30)
        self._count += 1
        self._newest = max(self._newest, writer.clock())
        everything: dict[str, Any] = {"staff_id": "reader", "start_time": 0, "end_time": 4102444800}
        answers = [service.read("/extractbeacon", **everything) for service in self._services]
        assert [len(answer.json()["location"]) for answer in answers] == [self._count] * 2
        (etag,) = {answer.headers["ETag"] for answer in answers}
        assert etag not in self._etags
        self._etags.add(etag)
        for service in self._services:
            (one,) = [
                row
                for row in service.read("/api/v1/staff").json()["data"]
                if row["staff_id"] == "reader"
            ]
            assert 0 <= self._newest - one["timestamp"] <= 2


@pytest.mark.parametrize("which", [(0,), (0, 1)], ids=["one clock", "both clocks"])
def test_clocks_that_step_lose_and_double_nothing(
    cluster: Cluster, services: list[Stepped], which: tuple[int, ...]
) -> None:
    urls = [service.url for service in services]
    follower, reader = Follower(services), Reader(services)
    walkers = Phones(through(*urls), WALKERS)
    retried = Phones(as_the_gateway(*urls), RETRIED)
    with follower:
        with walkers, retried:
            for seconds in STEPS:
                for number in which:
                    services[number].step(seconds)
                    assert abs(services[number].clock() - time.time() - seconds) < 5
                for _ in range(READS):
                    for service in services:
                        reader.write_and_read(service)
            with cluster.away("mongod", "frozen"):  # a step while detections go to the spool
                eventually(lambda: walkers.answers[202] > 20 and retried.answers[202] > 5, 30)
                for number in which:
                    services[number].step(-HOUR)
                walkers.wait_for(202, more=20)
            for service in services:
                service.read("/readyz")
            for service in services:
                reader.write_and_read(service)
        for service in services:
            eventually(partial(acknowledged.drained, service))
    assert set(walkers.answers + retried.answers) <= {200, 202}
    wanted = walkers.acknowledged + retried.acknowledged
    wanted["reader"] = len(services) * (READS * len(STEPS) + 1)
    acknowledged.check(cluster, services, wanted)
    stored = acknowledged.documents(cluster)
    names = (str(detection["_id"]) for detection in stored)
    kept = Counter(name[:8] + name[-4:] for name in names)  # what an id that is told begins with
    assert Counter(told[:12] for told in follower.ids) == kept
