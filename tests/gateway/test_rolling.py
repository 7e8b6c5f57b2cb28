"""Services restarted one after the other, as fast as they come back: nobody notices."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scripts.processes.waiting import eventually
from tests.gateway.conftest import Answer, Gateway
from tests.service import Service, running

pytestmark = pytest.mark.long

RATE = 30
BATCH, PAUSE_SECONDS = 20, 0.5
ROUNDS = 6
DETECTION = {"user_address": 7, "beacon_address": "C2A628384B08", "rssi": -20}


@pytest.fixture
def services(mongod: str, tmp_path: Path) -> Iterator[list[Service]]:
    """Run two ingest services as they ship."""
    with running(*(Service(mongod, tmp_path) for _ in range(2))) as services:
        yield services


@pytest.fixture
def before(services: list[Service], tmp_path: Path) -> Iterator[Gateway]:
    """Run the gateway before them."""
    run = tmp_path / "gateway"
    run.mkdir()
    addresses = " ".join(f"127.0.0.1:{service.port}" for service in services)
    gateway = Gateway(run, ingest=addresses)
    gateway.answer_open()
    yield gateway.start()
    gateway.close()


class Load:
    """Detections and reads, at a rate whatever the answers, as long as the context lasts.

    Beside them a follower, who waits for changes, and batches, of which `taken` counts the
    detections that were acknowledged.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.answers: list[Answer] = []
        self.taken = 0
        self.walker = f"walker-{time.time()}"  # of no other test on this database
        self._gateway = gateway
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=("POST", "/newbeacondetect", DETECTION)),
            threading.Thread(target=self._run, args=("GET", "/api/v1/now", None)),
            threading.Thread(target=self._follow),
            threading.Thread(target=self._send_batches),
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self, method: str, path: str, data: dict[str, object] | None) -> None:
        while not self._stopped.is_set():
            self.answers += self._gateway.load(RATE, 1, path, method=method, data=data)

    def _follow(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            self.answers.append(self._gateway.timed("GET", "/api/v1/changes?wait=5"))

    def _send_batches(self) -> None:
        item = {"staff_id": self.walker, "mac": "C2A628384B08", "rssi": -20}
        number = 0
        while not self._stopped.wait(PAUSE_SECONDS):
            items = [item | {"event_id": f"{number}-{index}"} for index in range(BATCH)]
            body = {"detections": items}
            answer = self._gateway.timed("POST", "/api/v1/detections", json=body)
            self.answers.append(answer)
            if answer.status in (200, 202):  # else the same once more
                self.taken += BATCH
                number += 1


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_services_restarted_in_turns_cost_no_request(
    services: list[Service], before: Gateway, end: str
) -> None:
    with Load(before) as load:
        for number in itertools.count():
            if number >= ROUNDS and len(load.answers) >= 2 * ROUNDS * RATE:
                break  # where they come back at once, more rounds
            service = services[number % 2]
            getattr(service, end)()
            service.start()
    counted = Counter(answer.status for answer in load.answers)
    assert counted[200] > ROUNDS * RATE
    assert set(counted) <= {200, 202, 503}

    def stored() -> int:
        return len(services[0].history(load.walker))

    # What was queued, too, and each once; of the last batch nobody may have heard that it is there.
    eventually(lambda: load.taken <= stored() <= load.taken + BATCH, 60)
    # None on a quiet machine, and 40 of 100 before. Where a service gets no CPU for seconds while
    # the other one starts, nobody is healthy: 6 of 100 were seen.
    assert counted[503] <= counted[200] / 5


def test_services_that_all_were_gone_are_used_as_soon_as_one_is_back(
    services: list[Service], before: Gateway
) -> None:
    for service in services:
        service.kill()
    for _ in range(50):
        assert before.timed("POST", "/newbeacondetect", data=DETECTION).status == 503
    services[0].start()
    assert before.timed("POST", "/newbeacondetect", data=DETECTION).status == 200


def test_a_frozen_service_costs_few_requests_one_wait(
    services: list[Service], before: Gateway
) -> None:
    master = psutil.Process(services[0].pid)
    frozen = [master, *master.children(recursive=True)]
    with Load(before) as load:
        try:
            for process in frozen:
                process.suspend()
            time.sleep(8)
        finally:
            for process in frozen:
                process.resume()
    assert {answer.status for answer in load.answers} <= {200, 202}  # a busy database queues
    lone = ("/newbeacondetect", "/api/v1/now")  # followers wait, and batches may take longer
    waited = [
        line for line in before.logged() if line["path"] in lone and float(line["seconds"]) > 2
    ]
    # In each circuit 5 until it opens, and then who tries the service again.
    assert 1 <= len(waited) <= 2 * (5 + 8)
    assert max(float(line["seconds"]) for line in waited) < 5
