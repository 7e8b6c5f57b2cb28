"""`locust -f loadtests/locustfile.py`, as a person starts it, against a real stack with tokens."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from pymongo import MongoClient

from common.schema import DATABASE
from loadtests import gateway_log
from loadtests.architectures import New
from loadtests.stack import Stack
from scripts.processes import ROOT
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually

pytestmark = pytest.mark.long

TOKEN = "load"
LOCUST = [sys.executable, "-m", "locust", "-f", "loadtests/locustfile.py"]
CROWD = ["--headless", "--json", "--users", "30", "--spawn-rate", "30", "--run-time", "6s"]
DETECT = "/newbeacondetect"
ATTEMPTS = 5


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("WAYMARK_ACCESS", "required")
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        environment.setenv("WAYMARK_ADMIN_TOKEN_SHA256", digest)
        with New(limited=False) as stack:
            yield stack


@pytest.fixture
def staff(stack: Stack) -> Iterator[Any]:
    """Return the collection of detections, without any."""
    with MongoClient[Any](stack.mongodb_uri) as client:
        client[DATABASE]["staff"].delete_many({})
        yield client[DATABASE]["staff"]


def locust(*options: str) -> subprocess.Popen[str]:
    """Start it, in the environment of a person."""
    return subprocess.Popen(
        [*LOCUST, *options],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "WAYMARK_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def figures(run: subprocess.Popen[str]) -> dict[str, tuple[int, int]]:
    """Wait for its end; return the requests of each address, and how many failed."""
    output, errors = run.communicate(timeout=120)
    rows = {row["name"]: (row["num_requests"], row["num_failures"]) for row in json.loads(output)}
    failed = any(failures for _, failures in rows.values())
    assert run.returncode == int(failed), output + errors
    return rows


@contextmanager
def frozen_gateway(stack: Stack) -> Iterator[None]:
    """Have NGINX stand still: it takes requests, and answers none."""
    gateway = psutil.Process(stack.pid("gateway")).children(recursive=True)
    for process in gateway:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in gateway:
            process.send_signal(signal.SIGCONT)


def drained(staff: Any, least: int) -> int:
    """Return how many detections are stored, once there are as many; what was queued is soon."""
    eventually(lambda: staff.count_documents({}) >= least, 60)
    stored: int = staff.count_documents({})
    return stored


def test_what_it_says_was_acknowledged_is_stored_once(stack: Stack, staff: Any) -> None:
    for _ in range(ATTEMPTS):
        staff.delete_many({})
        began = time.time()
        told = figures(locust("--host", stack.url, *CROWD, "--stop-timeout", "30"))
        requests, failures = told[DETECT]
        assert (stored := drained(staff, requests - failures)) <= requests
        if not failures:
            break  # a busy machine may refuse some, of which some are stored
    assert told.keys() == {DETECT, "/extractbeacon", "/monitoring/api/staff"}
    assert stored == requests >= 28
    assert len(staff.distinct("staff_id")) == 14
    logged = [row for row in gateway_log.rows(stack.folder / "log", began) if row.name == DETECT]
    assert len(logged) == stored


def test_what_workers_tell_after_the_end_is_counted(stack: Stack, staff: Any) -> None:
    port = str(free_port())
    as_master = ["--master", "--expect-workers", "2", "--master-bind-port", port]
    with frozen_gateway(stack):
        run = locust("--host", stack.url, *CROWD, "--stop-timeout", "60", *as_master)
        workers = [locust("--worker", "--master-port", port) for _ in range(2)]
        assert run.stderr
        assert any("run-time limit reached" in line for line in run.stderr)
        time.sleep(2)  # Locust itself would give them half a second
    told = figures(run)
    for worker in workers:
        worker.communicate(timeout=60)
    requests, failures = told[DETECT]
    assert requests == 28  # each ambassador's first answer
    assert requests - failures <= drained(staff, requests - failures) <= requests


def test_what_is_under_way_at_the_end_is_counted(stack: Stack, staff: Any) -> None:
    with frozen_gateway(stack):
        told = figures(locust("--host", stack.url, *CROWD, "--stop-timeout", "0"))
    # Each user waits for its first answer.
    assert told == {DETECT: (28, 28), "/extractbeacon": (1, 1), "/monitoring/api/staff": (1, 1)}
    assert staff.count_documents({}) <= 28


def test_another_machine_is_refused() -> None:
    run = locust("--host", "http://192.0.2.1:8080", *CROWD)
    output, errors = run.communicate(timeout=60)
    assert "--i-own-this-host" in errors, output + errors
    assert (run.returncode, json.loads(output)) == (2, [])
