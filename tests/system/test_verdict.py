"""One verdict on the whole system: the right sentence soon, and no other meanwhile."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from scripts.processes.waiting import eventually
from tests.system.conftest import Stack, running_stack

pytestmark = pytest.mark.long

HEALTHY = "Everything is healthy"
GATEWAY = "The gateway does not answer"
NOBODY = "No ingest service answers"
DATABASE = "The database does not answer"
SILENT = "{} does not answer"
BOTH = ("ingest-1", "ingest-2")
# What is away, which sentence that is, and within how many seconds: what hangs takes its time-outs.
CASES: list[tuple[tuple[str, ...], str, float]] = [
    (("ingest-1",), SILENT.format("ingest-1"), 60),
    (("ingest-2",), SILENT.format("ingest-2"), 60),
    (BOTH, NOBODY, 45),
    (("mongod",), DATABASE, 45),
    (("gateway",), GATEWAY, 45),
    (("mongod", "ingest-1"), DATABASE, 45),
    (("gateway", "ingest-1"), GATEWAY, 45),
    (("gateway", "mongod"), GATEWAY, 45),
    (("mongod", *BOTH), NOBODY, 45),
]


@pytest.fixture(scope="module")
def office(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(root, tmp_path_factory.mktemp("verdict"), "--demo") as stack:
        yield stack


def verdict(stack: Stack) -> dict[str, Any]:
    """Return it as the monitoring service tells it at its own port: the gateway may be away."""
    port = stack.environment["WAYMARK_MONITORING_PORT"]
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(f"http://127.0.0.1:{port}/monitoring/api/system", timeout=10)
    found: dict[str, Any] = answer.json()["verdict"] or {"what": HEALTHY}
    return found


def banner(stack: Stack) -> str:
    """Return the verdict that the page's banner gets with what it could not read."""
    port = stack.environment["WAYMARK_MONITORING_PORT"]
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(f"http://127.0.0.1:{port}/monitoring/api/staff", timeout=30)
    told: str = answer.headers.get("X-Verdict", "")
    return told


@contextmanager
def frozen(stack: Stack, *names: str) -> Iterator[None]:
    """Stop parts with all their processes, and let them go on."""
    pids = stack.pids()
    parents = [psutil.Process(pids[name]) for name in names]
    some = [one for parent in parents for one in (parent, *parent.children(recursive=True))]
    try:
        for one in some:
            os.kill(one.pid, signal.SIGSTOP)
        yield
    finally:
        for one in some:
            os.kill(one.pid, signal.SIGCONT)


@contextmanager
def stopped(stack: Stack, *names: str) -> Iterator[None]:
    """Let parts end, without others in their place."""
    stack.supervisorctl("stop", *names)
    try:
        yield
    finally:
        stack.supervisorctl("start", *names)


def seen_until(stack: Stack, what: str, seconds: float) -> set[str]:
    """Return which sentences were told until this one was."""
    seen: set[str] = set()

    def is_told() -> bool:
        seen.add(verdict(stack)["what"])
        return what in seen

    eventually(is_told, seconds)
    return seen


@pytest.mark.parametrize("fault", [frozen, stopped])
@pytest.mark.parametrize(("away", "what", "seconds"), CASES, ids=lambda one: str(one))
def test_what_is_wrong_is_told_in_one_sentence_that_stays(
    office: Stack, fault: Any, away: tuple[str, ...], what: str, seconds: float
) -> None:
    seen_until(office, HEALTHY, 90)
    with fault(office, *away):
        began = time.time()
        seen = seen_until(office, what, seconds)
        print(f"\n{fault.__name__} {away}: {time.time() - began:.0f} s, {seen}")
        assert seen <= {HEALTHY, what}
        told = verdict(office)
        assert began - 30 < told["since"] < time.time()
        deadline = time.monotonic() + 12
        while time.monotonic() < deadline:
            now = verdict(office)
            assert (now["what"], now["since"]) == (what, told["since"])
            time.sleep(0.3)
        if what not in (SILENT.format(name) for name in BOTH):
            assert what in banner(office)
    assert seen_until(office, HEALTHY, 90) <= {HEALTHY, what}
