"""The real NGINX with the real configuration, in front of servers that fail on command."""

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import requests

from gateway.render import variable
from gateway.request_log import NAME
from scripts.processes import ALLOCATOR, ROOT
from scripts.processes.control_groups import Limits
from scripts.processes.ports import free_port, is_free
from scripts.processes.process import Process
from scripts.processes.waiting import eventually
from tests.upstream import Upstream

# What waits for a service waits 1 s or longer, and what does not is answered in a few ms: half the
# answers are. A single one may take longer where the machine is busy, but not this long.
FAST_SECONDS, SLOW_SECONDS = 0.05, 0.5
OPEN = '{"data": "Flask servers circuit breaker open."}'


class Answer(NamedTuple):
    """What one request of a load got: a status (0: no answer), and after how many seconds."""

    status: int
    seconds: float
    began: float


class Gateway:
    """The gateway as it is started anywhere, two ingest upstreams and a monitoring upstream."""

    def __init__(self, run: Path, **settings: str) -> None:
        self.run = run
        self.ingest = [Upstream(), Upstream()]
        self.monitoring = Upstream()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.address = ("127.0.0.1", port)
        self.settings = {
            "listen": f"127.0.0.1:{port}",
            "ingest": " ".join(f"127.0.0.1:{upstream.port}" for upstream in self.ingest),
            "monitoring": f"127.0.0.1:{self.monitoring.port}",
            "run": str(run),
            "log_folder": str(run),
            "user": "root" if run.owner() == "root" else "",
        } | settings
        self.log, self.errors = run / NAME, run / "error.log"
        self.said = run / "said.log"

    def start(self, *prefix: str, limits: Limits | None = None) -> "Gateway":
        """Start it and wait until it listens; `prefix` is a command that runs it."""
        self.process = Process(
            "gateway",
            [*prefix, sys.executable, str(ROOT / "gateway" / "start.py")],
            self.said,
            errors=self.errors,
            environment=os.environ
            | ALLOCATOR  # as in the image
            | {variable(name): v for name, v in self.settings.items()},
            limits=limits,
        )
        self.process.start()
        self.process.wait_until_healthy(lambda: "is silent" if is_free(self.address[1]) else None)
        self.worker()  # it comes when all ports are open, the one above perhaps as the first
        return self

    def request(self, method: str, path: str, **more: Any) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(method, f"{self.url}{path}", **{"timeout": 30} | more)

    def timed(self, method: str, path: str, **more: Any) -> Answer:
        began = time.monotonic()
        try:
            status = self.request(method, path, **more).status_code
        except requests.RequestException:
            status = 0
        return Answer(status, time.monotonic() - began, began)

    def load(
        self, rate: float, seconds: float, path: str = "/newbeacondetect", **more: Any
    ) -> list[Answer]:
        """Send `rate` requests per second whatever the answers (an open loop)."""
        method = more.pop("method", "POST")
        with ThreadPoolExecutor(max_workers=200) as pool:
            began = time.monotonic()
            sent = []
            for number in range(int(rate * seconds)):
                time.sleep(max(0.0, began + number / rate - time.monotonic()))
                sent.append(pool.submit(self.timed, method, path, **more))
            return [answer.result() for answer in sent]

    def logged(self) -> list[dict[str, str]]:
        """Return the access log of clients' requests; every line has to be JSON."""
        self.request("GET", "/healthz")  # the one worker logs what it has answered before this
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["client"] != "unix:"]

    def worker(self) -> psutil.Process:
        """Return nginx's worker process when it is there."""

        def workers() -> list[psutil.Process]:
            children = psutil.Process(self.process.pid).children(recursive=True)
            with contextlib.suppress(psutil.NoSuchProcess):
                return [
                    process
                    for process in children
                    if "worker process" in " ".join(process.cmdline())
                ]
            return []

        return eventually(workers)[0]

    def answer_open(self) -> None:
        """Make the monitoring upstream answer as the real one does."""
        headers = {
            "X-Circuit-State": "open",
            "Retry-After": "5",
            "Access-Control-Allow-Origin": "*",
            "Content-Type": "application/json",
        }
        self.monitoring.answer(503, OPEN.encode(), headers)

    def close(self) -> None:
        for upstream in [*self.ingest, self.monitoring]:
            upstream.close()
        self.process.stop(30)


def seconds_of(log: list[dict[str, str]]) -> list[float]:
    """Return how long each request took by NGINX's own clock, the shortest first."""
    return sorted(float(line["seconds"]) for line in log)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path).start()
    gateway.answer_open()
    yield gateway
    gateway.close()


@pytest.fixture
def make_gateway(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Return a function that makes a gateway of its own, not started yet."""
    made: list[Gateway] = []

    def make(**settings: str) -> Gateway:
        run = tmp_path / str(len(made))
        run.mkdir()
        made.append(Gateway(run, **settings))
        made[-1].answer_open()
        return made[-1]

    yield make
    for gateway in made:
        gateway.close()


@pytest.fixture
def later() -> Iterator[Callable[[Callable[[], None], float], None]]:
    """Return a function that calls another one some seconds later, while the test goes on."""
    timers: list[threading.Timer] = []

    def do(what: Callable[[], None], after_seconds: float) -> None:
        timers.append(threading.Timer(after_seconds, what))
        timers[-1].start()

    yield do
    for timer in timers:
        timer.join()
