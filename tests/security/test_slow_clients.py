"""slowhttptest in all its modes, on each port: everybody else is answered meanwhile."""

import http.client
import re
import statistics
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from common.log_lines import FRAME
from tests.needs import need
from tests.security.case import TARGETS
from tests.security.site import Guarded

pytestmark = pytest.mark.long

CONNECTIONS, PER_SECOND, SECONDS = 400, 200, 8
# Whoever is slow comes from one address, everybody else from another of this machine.
ELSEWHERE = "127.0.0.2"
DETECTION = "/newbeacondetect?user_address=honest&beacon_address=C2A628384B08&rssi=-20"
# What others ask for meanwhile, each with what it must answer.
ASKED = {
    "gateway": ["/healthz", "/api/v1/now", "/monitoring/login", "/monitoring/latest", DETECTION],
    "ingest": ["/healthz", "/api/v1/now", DETECTION],
    "monitoring": ["/healthz", "/monitoring/login", "/monitoring/latest"],
}
# What is read slowly: the largest answers; what is sent slowly: to where the most is taken.
READ = {
    "gateway": "/monitoring/static/style.css",
    "ingest": "/api/v1/openapi.json",
    "monitoring": "/monitoring/static/style.css",
}
SENT = dict.fromkeys(TARGETS, "/api/v1/detections")
MODES = {
    "slow headers": (["-H", "-i", "1", "-x", "24"], READ),
    "slow body": (["-B", "-i", "1", "-x", "24", "-s", "8000", "-f", "application/json"], SENT),
    "slow read": (["-X", "-k", "4", "-w", "64", "-y", "512", "-n", "1", "-z", "32"], READ),
    "range": (["-R", "-a", "1", "-b", "1000"], READ),
}
# The crowd was there for its time, or all were answered and hung up on.
ENDS = ("Hit test time limit", "No open connections left")
MEDIAN_SECONDS = 2.0  # far from the 10 s that a slow head may take, for a machine that is busy


def attack(mode: str, guarded: Guarded, target: str) -> "subprocess.Popen[str]":
    need("slowhttptest")
    options, paths = MODES[mode]
    cookie = next(
        visitor.headers["Cookie"]
        for visitor in guarded.visitors
        if visitor.name == "keeper's cookie"
    )
    command = ["slowhttptest", *options, "-j", cookie, "-p", "8", "-l", str(SECONDS)]
    command += ["-c", str(CONNECTIONS), "-r", str(PER_SECOND)]
    command += ["-u", f"http://127.0.0.1:{guarded.ports[target]}{paths[target]}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def answered(guarded: Guarded, target: str, path: str) -> float:
    """Return how long a good answer takes; a 503 says itself that it is to be sent again."""
    began = time.monotonic()
    headers = {"Authorization": f"Bearer {guarded.admin}"}
    for _ in range(20):
        connection = http.client.HTTPConnection(
            "127.0.0.1", guarded.ports[target], timeout=30, source_address=(ELSEWHERE, 0)
        )
        connection.request("GET", path, headers=headers)
        status = connection.getresponse().status
        connection.close()
        if status != 503:
            break
        time.sleep(0.2)
    assert status in (200, 202), (target, path, status)
    return time.monotonic() - began


def services(guarded: Guarded) -> dict[int, str]:
    """Return the processes of the stack: who is killed comes back with another number."""
    pids = guarded.pids()
    children = (child for pid in pids.values() for child in psutil.Process(pid).children())
    return {child.pid: child.name() for child in children} | {p: name for name, p in pids.items()}


@pytest.fixture
def alive(guarded: Guarded) -> Iterator[None]:
    """At the end all processes are the same, and hold no connection of those who were slow."""
    before = services(guarded)
    yield
    assert services(guarded) == before
    for file in (guarded.data / "log").iterdir():
        assert FRAME not in file.read_text(errors="replace"), file


@pytest.mark.parametrize("mode", MODES)
def test_slow_clients_hold_up_nobody_else(guarded: Guarded, alive: None, mode: str) -> None:
    attacks = {target: attack(mode, guarded, target) for target in TARGETS}
    times: dict[str, list[float]] = {target: [] for target in TARGETS}

    def others(target: str) -> None:
        while attacks[target].poll() is None:
            for path in ASKED[target]:
                times[target].append(answered(guarded, target, path))

    with ThreadPoolExecutor(len(TARGETS)) as threads:
        list(threads.map(others, TARGETS))
    for target, running in attacks.items():
        output = re.sub(r"\x1b\[[0-9;]*[mHJ]", "", running.communicate(timeout=60)[0])
        print(f"{mode} at the {target}: {len(times[target])} answers meanwhile", output)
        assert running.returncode == 0, output
        [ended] = re.findall(r"^Exit status: (.+?)\s*$", output, re.MULTILINE)
        assert ended in ENDS, output
        assert "service available:   NO" not in output
        assert len(times[target]) >= len(ASKED[target])
        assert statistics.median(times[target]) < MEDIAN_SECONDS
    for target in TARGETS:
        for path in ASKED[target]:
            answered(guarded, target, path)
