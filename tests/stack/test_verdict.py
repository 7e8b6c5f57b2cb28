"""One verdict on the whole system: the right sentence soon, and no other meanwhile."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from scripts.processes.control_groups import Limits
from scripts.processes.limited_group import LimitedGroup
from scripts.processes.waiting import eventually
from tests.needs import limited
from tests.stack.conftest import Stack

pytestmark = pytest.mark.long

HEALTHY = "Everything is healthy"
GATEWAY = "The gateway does not answer"
NOBODY = "No ingest service answers"
DATABASE = "The database does not answer"
SILENT = "{} does not answer"
BLIND = "{} does not reach the database"
BOTH = ("ingest-1", "ingest-2")
ALONE: list[tuple[tuple[str, ...], str]] = [
    (("ingest-1",), SILENT.format("ingest-1")),
    (("ingest-2",), SILENT.format("ingest-2")),
    (BOTH, NOBODY),
    (("mongod",), DATABASE),
    (("gateway",), GATEWAY),
]
PAIRS: list[tuple[tuple[str, ...], str]] = [
    (("mongod", "ingest-1"), DATABASE),
    ((*BOTH, "mongod"), NOBODY),  # the other way round they would tell of the database first
    (("gateway", "ingest-1"), GATEWAY),
    (("gateway", "mongod"), GATEWAY),
]
# What may be said of one that is slow, since it may be true: it did not answer in time.
ONE = "An ingest service does not answer"
PART = "A part of the database does not answer"
SLOW = "The database is slow"
OF_THE_DATABASE = {
    DATABASE,
    SLOW,
    PART,
    "Detections wait to be stored",
    *map(BLIND.format, BOTH),
    "ingest-1 and ingest-2 do not reach the database",
}
SLOW_SECONDS = 15.0
STARVED_CORES = 0.01
# Five checks of what hangs, with their time-outs.
SOON_SECONDS = 60


@pytest.fixture(scope="module")
def office(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(root, tmp_path_factory.mktemp("verdict") / "data")
    stack.environment["OBSERVE_SECONDS"] = "1"
    try:
        stack.up("--demo")
        yield stack
    finally:
        stack.down()


def told_by_the_page(stack: Stack, path: str) -> requests.Response:
    """Ask the monitoring service at its own port: the gateway may be away."""
    return told_at(stack.environment["WAYMARK_MONITORING_PORT"], f"monitoring/api/{path}")


def told_at(port: str, path: str) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(f"http://127.0.0.1:{port}/{path}", timeout=30)


def verdict(stack: Stack) -> dict[str, Any]:
    sentence: dict[str, Any] = told_by_the_page(stack, "system").json()["verdict"]
    return sentence or {"what": HEALTHY}


def banner(stack: Stack) -> str:
    """Return the verdict that the page's banner gets when it cannot read; "" when it can."""
    answer = told_by_the_page(stack, "staff")
    is_read = answer.headers["X-Circuit-State"] == "closed"
    sentence: str = answer.headers.get("X-Verdict", "")
    assert bool(sentence) != is_read
    return sentence


def processes_of(stack: Stack, *names: str) -> list[int]:
    """Return the pids of parts, with all their children."""
    pids = stack.pids()
    parents = [psutil.Process(pids[name]) for name in names]
    return [
        process.pid for parent in parents for process in (parent, *parent.children(recursive=True))
    ]


def send(pids: list[int], what: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, what)


@contextmanager
def frozen(stack: Stack, *names: str) -> Iterator[None]:
    """Stop parts with all their processes, and let them go on."""
    pids = processes_of(stack, *names)
    try:
        send(pids, signal.SIGSTOP)
        yield
    finally:
        send(pids, signal.SIGCONT)


@contextmanager
def stopped(stack: Stack, *names: str) -> Iterator[None]:
    """Let parts end, without others in their place."""
    stack.supervisorctl("stop", *names)
    try:
        yield
    finally:
        stack.supervisorctl("start", *names)


@contextmanager
def starved(stack: Stack, name: str) -> Iterator[None]:
    """Let a part have a hundredth of a core."""
    with LimitedGroup("starved", Limits(STARVED_CORES, None)) as group:
        group.adopt(stack.pids()[name])
        try:
            yield
        finally:
            group.limit(Limits(1.0, None))  # its end, with that of the group, takes no minute


def seen_until(stack: Stack, what: str, seconds: float) -> set[str]:
    """Return which sentences were told until this one was."""
    seen: set[str] = set()

    def is_told() -> bool:
        seen.add(verdict(stack)["what"])
        return what in seen

    eventually(is_told, seconds)
    return seen


def test_on_a_healthy_stack_no_read_of_a_service_fails(office: Stack) -> None:
    """The plot of the page is of these; who asks for services that there are not pays for it."""
    seen_until(office, HEALTHY, 90)
    began = time.time()
    reads: list[dict[str, Any]] = []

    def are_many() -> bool:
        all_reads = told_by_the_page(office, "system").json()["reads"]
        reads[:] = [read for read in all_reads if read["timestamp"] > began]
        return len(reads) >= 2 * len(BOTH)

    eventually(are_many, 30)
    assert None not in [read["latency_ms"] for read in reads]


@pytest.mark.parametrize(
    ("fault", "away", "what"),
    [*((frozen, *case) for case in ALONE), *((stopped, *case) for case in PAIRS)],
    ids=lambda fault: getattr(fault, "__name__", None),
)
def test_what_is_wrong_is_told_in_one_sentence_that_stays(
    office: Stack, fault: Callable[..., AbstractContextManager[None]], away: list[str], what: str
) -> None:
    seen_until(office, HEALTHY, 90)
    with fault(office, *away):
        began = time.time()
        seen = seen_until(office, what, SOON_SECONDS)
        assert seen <= {HEALTHY, what}
        before = verdict(office)
        assert began - 30 < before["since"] < time.time()
        all_is_shown = what in (SILENT.format(name) for name in BOTH)
        deadline = time.monotonic() + 6
        while time.monotonic() < deadline:
            now = verdict(office)
            assert (now["what"], now["since"]) == (what, before["since"])
            assert (what in banner(office)) != all_is_shown
            time.sleep(0.5)
    seen_until(office, HEALTHY, 90)  # one part may be back before another


@contextmanager
def slowed(stack: Stack, *names: str) -> Iterator[None]:
    """Let parts work a fifth of the time."""
    pids = processes_of(stack, *names)
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            send(pids, signal.SIGSTOP)
            time.sleep(0.4)
            send(pids, signal.SIGCONT)
            time.sleep(0.1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("slow", "may_be_said"),
    [
        (("gateway",), {GATEWAY}),
        (("mongod", "ingest-1"), OF_THE_DATABASE | {SILENT.format("ingest-1"), ONE}),
    ],
)
def test_what_is_slow_is_not_told_as_something_else(
    office: Stack, slow: tuple[str, ...], may_be_said: set[str]
) -> None:
    """On a quiet machine nothing is said: it still answers."""
    seen_until(office, HEALTHY, 90)
    seen, statuses = set(), set()
    with slowed(office, *slow):
        deadline = time.monotonic() + SLOW_SECONDS
        while time.monotonic() < deadline:
            seen.add(verdict(office)["what"])
            statuses.add(office.detect("slow").status_code)
            time.sleep(0.2)
    assert seen <= may_be_said | {HEALTHY}
    assert statuses <= {200, 202}
    seen_until(office, HEALTHY, 90)


@limited
def test_a_database_that_is_starved_is_told_as_that_and_everybody_is_shown_all_the_same(
    office: Stack,
) -> None:
    """It may be too slow for anything; but no part of it is missing, and no service is at fault."""
    seen_until(office, HEALTHY, 90)
    # Who answers then tells what it knows: each has told everybody before.
    ports = office.environment["WAYMARK_INGEST_PORTS"].split()
    first = [told_at(port, "api/v1/staff") for port in ports]
    everybody = min(
        len(answer.json()["data"]) for answer in [told_by_the_page(office, "staff"), *first]
    )
    assert everybody
    seen, shown = set(), set()
    with starved(office, "mongod"):

        def is_told() -> bool:
            office.detect("starved")
            shown.add(len(told_by_the_page(office, "staff").json()["data"]))
            seen.add(verdict(office)["what"])
            return bool(seen & {SLOW, DATABASE})

        eventually(is_told, SOON_SECONDS)
        assert office.detect("starved").status_code in (200, 202)
        shown.add(len(told_by_the_page(office, "staff").json()["data"]))
    assert seen <= {HEALTHY} | OF_THE_DATABASE - {PART}
    assert min(shown) >= everybody
    seen_until(office, HEALTHY, 90)
