"""Ingest services killed under load: what clients see, and what is in the database."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts.processes.waiting import eventually
from tests.phones import Phones, through
from tests.system.conftest import Stack, kill_tree, running_stack

CLIENTS = 8
REQUESTS_A_CLIENT = 100
EVERYTHING = {"staff_id": 0, "start_time": 0, "end_time": 4102444800}
OPEN = '{"data": "Flask servers circuit breaker open."}'


@pytest.fixture(scope="module")
def stack(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack of its own: these tests break it."""
    with running_stack(root, tmp_path_factory.mktemp("faults")) as stack:
        yield stack


def clients(stack: Stack, staff_id: str) -> Phones:
    # 130/s in all: the gateway lets 200/s of one address pass
    sender = through(stack.url)
    return Phones(sender, [staff_id] * CLIENTS, each=REQUESTS_A_CLIENT, rest_seconds=0.06)


@contextmanager
def not_restarted(stack: Stack) -> Iterator[None]:
    """Keep killed parts dead for a while."""
    os.kill(stack.supervisor_pid(), signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(stack.supervisor_pid(), signal.SIGCONT)


@pytest.mark.long
def test_one_killed_ingest_service_is_not_noticed(stack: Stack) -> None:
    phones = clients(stack, "one")
    pid = stack.pids()["ingest-1"]
    with phones:
        phones.wait_for(200, more=50)
        kill_tree(pid)
    assert phones.worst_tries <= 2
    assert phones.acknowledged.total() == CLIENTS * REQUESTS_A_CLIENT
    assert len(stack.history("one")) == phones.acknowledged.total()
    eventually(lambda: stack.script("status").returncode == 0, 90)


@pytest.mark.long
def test_both_killed_answer_503_at_once_and_come_back_with_everything(stack: Stack) -> None:
    phones = clients(stack, "both")
    pids = stack.pids()
    with phones:
        phones.wait_for(200, more=50)
        with not_restarted(stack):
            kill_tree(pids["ingest-1"])
            kill_tree(pids["ingest-2"])
            phones.wait_for(503, more=5)
            for method, path in (("GET", "/extractbeacon"), ("POST", "/newbeacondetect")):
                waits = []
                for _ in range(5):  # the best of them: these machines are shared and stall
                    answer = stack.session.request(method, stack.url + path, timeout=30)
                    waits.append(answer.elapsed.total_seconds())
                assert min(waits) < 0.2  # a try at a service would take 1 s
                assert (answer.status_code, answer.text) == (503, OPEN)
                assert answer.headers["X-Circuit-State"] == "open"
                assert "Retry-After" in answer.headers
        eventually(lambda: stack.get("/extractbeacon", **EVERYTHING).status_code == 200, 60)
    assert {200, 503} <= set(phones.answers) <= {200, 202, 503}
    assert phones.acknowledged.total() == CLIENTS * REQUESTS_A_CLIENT
    assert len(stack.history("both")) == phones.acknowledged.total()


def test_a_killed_database_loses_nothing_that_was_acknowledged(stack: Stack) -> None:
    phones = clients(stack, "database")
    mongod = stack.pids()["mongod"]
    with phones:
        phones.wait_for(200, more=50)
        with not_restarted(stack):
            kill_tree(mongod)
            phones.wait_for(202, more=5)
            began = time.monotonic()
            assert stack.get("/extractbeacon", **EVERYTHING).status_code == 503
            assert time.monotonic() - began < 3.5  # 0.4 s of each service, not 2
    assert set(phones.answers) == {200, 202}
    assert phones.acknowledged.total() == CLIENTS * REQUESTS_A_CLIENT
    eventually(lambda: len(stack.history("database")) == phones.acknowledged.total(), 90)
