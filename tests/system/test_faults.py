"""Ingest services killed under load: what clients see, and what is in the database."""

import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from tests.system.conftest import Stack, eventually, kill_tree

CLIENTS = 8
REQUESTS_A_CLIENT = 100
EVERYTHING = {"staff_id": 0, "start_time": 0, "end_time": 4102444800}
OPEN = '{"data": "Flask servers circuit breaker open."}'


@pytest.fixture(scope="module")
def stack(root: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack of its own: these tests break it."""
    stack = Stack(root, tmp_path_factory.mktemp("faults") / "data")  # type: ignore[arg-type]
    stack.up()
    yield stack
    stack.down()


class Clients:
    """Phones that send each detection until it is confirmed, and count how often they had to."""

    def __init__(self, stack: Stack, staff_id: str) -> None:
        self._stack = stack
        self._staff_id = staff_id
        self.acknowledged = 0
        self.worst_tries = 0
        self.statuses: set[int] = set()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run) for _ in range(CLIENTS)]

    def _run(self) -> None:
        with requests.Session() as session:
            session.trust_env = False
            for _ in range(REQUESTS_A_CLIENT):
                self._send_until_confirmed(session)
                time.sleep(0.06)  # 130/s in all: the gateway lets 200/s of one address pass

    def _send_until_confirmed(self, session: requests.Session) -> None:
        body = {"user_address": self._staff_id, "beacon_address": "C2A628384B08", "rssi": -20}
        body |= {"event_id": uuid.uuid4().hex}
        url = f"{self._stack.url}/newbeacondetect"
        for tries in range(1, 400):
            status = session.post(url, data=body, timeout=30).status_code
            with self._lock:
                self.statuses.add(status)
                self.worst_tries = max(self.worst_tries, tries)
                self.acknowledged += status in (200, 202)
            if status in (200, 202):
                return
            time.sleep(0.1)

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        yield
        for thread in self._threads:
            thread.join()


@contextmanager
def not_restarted(stack: Stack) -> Iterator[None]:
    """Keep killed parts dead for a while."""
    os.kill(stack.supervisor_pid(), signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(stack.supervisor_pid(), signal.SIGCONT)


def test_one_killed_ingest_service_is_not_noticed(stack: Stack) -> None:
    clients = Clients(stack, "one")
    with clients.running():
        time.sleep(1)
        kill_tree(stack.pids()["ingest-1"])
    assert clients.worst_tries <= 2
    assert clients.acknowledged == CLIENTS * REQUESTS_A_CLIENT
    assert len(stack.history("one")) == clients.acknowledged
    eventually(lambda: stack.script("status").returncode == 0, 90)


def test_both_killed_answer_503_at_once_and_come_back_with_everything(stack: Stack) -> None:
    clients = Clients(stack, "both")
    pids = stack.pids()
    with clients.running():
        time.sleep(1)
        with not_restarted(stack):
            kill_tree(pids["ingest-1"])
            kill_tree(pids["ingest-2"])
            time.sleep(0.5)
            for method, path in (("GET", "/extractbeacon"), ("POST", "/newbeacondetect")):
                waits = []
                for _ in range(5):  # the best of them: these machines are shared and stall
                    answer = stack.session.request(method, stack.url + path, timeout=30)
                    waits.append(answer.elapsed.total_seconds())
                assert min(waits) < 0.2  # a service that is asked would take 1 s
                assert (answer.status_code, answer.text) == (503, OPEN)
                assert answer.headers["X-Circuit-State"] == "open"
                assert "Retry-After" in answer.headers
        eventually(lambda: stack.get("/extractbeacon", **EVERYTHING).status_code == 200, 60)
    assert {200, 503} <= clients.statuses <= {200, 202, 503}
    assert clients.acknowledged == CLIENTS * REQUESTS_A_CLIENT
    assert len(stack.history("both")) == clients.acknowledged


def test_a_killed_database_loses_nothing_that_was_acknowledged(stack: Stack) -> None:
    clients = Clients(stack, "database")
    mongod = stack.pids()["mongod"]
    with clients.running():
        time.sleep(1)
        with not_restarted(stack):
            kill_tree(mongod)
            time.sleep(1)
            began = time.monotonic()
            assert stack.get("/extractbeacon", **EVERYTHING).status_code == 503
            assert time.monotonic() - began < 2  # 0.4 s of each service
    assert clients.statuses == {200, 202}
    assert clients.acknowledged == CLIENTS * REQUESTS_A_CLIENT
    eventually(lambda: len(stack.history("database")) == clients.acknowledged, 90)
