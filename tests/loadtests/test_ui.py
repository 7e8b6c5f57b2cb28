"""Locust's own page starts a plan, and counts its requests and what is wrong with them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest

from scripts.processes import ROOT
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.loadtests.faulty_server import FaultyServer

pytestmark = pytest.mark.long

FORM = {"user_count": 1, "spawn_rate": 1, "plan": "PERF-TP-1", "ramp": 1, "only": "2100"}
PAGE_KEEPS_SECONDS = 2.1  # what it told of the run before


@contextmanager
def page(*arguments: str) -> Iterator[str]:
    """Run a plan with --ui; yield the page's address."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [f"{ROOT}/scripts/load", "run", "PERF-TP-1", "--ui", str(port), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            eventually(lambda: is_up(url))
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def is_up(url: str) -> bool:
    try:
        return "<title>Locust" in ask(url)
    except urllib.error.URLError:
        return False


def ask(url: str, form: dict[str, Any] | None = None) -> str:
    body = None if form is None else urlencode(form).encode()
    with urllib.request.urlopen(url, body, timeout=5) as answer:
        return str(answer.read().decode())


def run(url: str, **form: object) -> dict[str, dict[str, Any]]:
    """Start the plan by the page's form; return the statistics of each kind of request."""
    assert json.loads(ask(f"{url}/swarm", FORM | form))["success"]
    time.sleep(PAGE_KEEPS_SECONDS)
    found: dict[str, Any] = {}

    def stopped() -> bool:
        found.update(json.loads(ask(f"{url}/stats/requests")))
        return bool(found["state"] == "stopped")

    eventually(stopped)
    return {one["name"]: one for one in found["stats"]} | {"errors": found["errors"]}


def test_the_page_runs_plans_against_a_stack_of_its_own() -> None:
    with page("--no-limits") as url:
        assert re.search(r"PERF-RT-2-1", ask(url))  # its form offers the plans
        for shift in (0, 100):
            found = run(url, shift=shift)
            assert found["insert"]["num_requests"] == 35
            assert found["Aggregated"]["num_failures"] == 0
        found = run(url, plan="PERF-RT-2", only="600", shift=200)
        assert found["extract"]["num_requests"] == 14


@pytest.mark.parametrize(
    ("fault", "plan", "error"),
    [
        ("loses", "PERF-TP-1", "documents instead of"),
        ("drops", "PERF-TP-2", "verification: "),
        ("fails", "PERF-TP-1", "http: 500"),
    ],
)
def test_the_page_tells_what_is_wrong(fault: str, plan: str, error: str) -> None:
    with FaultyServer(fault) as server, page("--target", server.url) as url:
        found = run(url, plan=plan, only="", ramp=0.5, pages=0)
    assert found["Aggregated"]["num_failures"] > 0
    assert any(error in one["error"] for one in found["errors"])  # type: ignore[index]


COUNT = """
from locust.env import Environment
from loadtests.engine.locustfile import LocustApi
from loadtests.figures import HTTP, Row

environment = Environment()
environment.create_local_runner()
api = LocustApi("http://127.0.0.1:1", environment, 1)

def send(name, error=""):
    api.record(Row("P", "1", name, 0, 0, 5, 200, 26, error), "GET")

send("insert")
forget = api.checkpoint()
send("insert", HTTP)
send("hacs")
forget()
send("insert")
stats = environment.stats
print(len(api.rows), stats.total.num_requests, stats.total.num_failures, len(stats.errors))
print([(name, entry.num_requests) for (name, _), entry in stats.entries.items()])
"""


def test_locust_forgets_a_step_that_is_sent_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["2 2 0 0", "[('insert', 2)]"]
