"""The stack as a user starts it: `docker compose up -d`, in a project of its own."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from scripts.processes import ROOT
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.client import Client
from tests.docker.engine import HERE, KINDS, Docker, engine, versions
from tests.docker.images import Images, images

PROJECT = "waymark-tests"
# One stack serves all files, and each leaves it to the next one: it is new for the contract, then
# under load, killed and updated; from "access" on it wants tokens; in the end it idles.
ORDER = (
    *("file", "mirror", "pin", "contract", "isolation", "load", "restarts", "updates", "backup"),
    *("access", "tls", "exposed", "budget"),
)
ONE_SHOT = {"secrets", "mongo-init"}
OURS = {"gateway", "ingest-1", "ingest-2", "monitoring"}
MONGO = {"mongos-1", "mongos-2", "configsvr", "shard1", "shard2"}
EARLY, EARLY_SECONDS = "early", 240.0  # who was heard before the database was there
BEGAN = time.time()
TOLD = pytest.StashKey[str]()  # the versions


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=KINDS, default=KINDS[0], help="which Docker Engine")
    parser.addoption("--report", type=Path, help="a file for what ran, on what, and how it went")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep to the order; what is none of ours stays where it is."""
    places = {HERE / f"test_{name}.py": place for place, name in enumerate(ORDER)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    file: Path | None = config.getoption("--report")
    if file is None:
        return
    stats = terminalreporter.stats
    counts = [
        f"{len(stats.get(outcome, []))} {outcome}"
        for outcome in ("passed", "failed", "error", "skipped")
    ]
    failed = [
        f"{report.nodeid}\n" for kind in ("failed", "error") for report in stats.get(kind, [])
    ]
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(BEGAN))
    took = f"{(time.time() - BEGAN) / 60:.0f} minutes"
    version = config.stash.get(TOLD, "no engine")
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(
        describe, cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    load = f"load average {os.getloadavg()[2]:.0f} over the last 15"
    ran = f"{commit}, {when}, {took}, {load}"
    with file.open("a") as report:  # after those of earlier runs
        report.write(f"{version}\n{ran}\n{', '.join(counts)}\n{''.join(failed)}\n")


class Stack(Client):
    """The compose project of the tests."""

    def __init__(self, docker: Docker, made: Images) -> None:
        port = free_port()
        super().__init__(f"http://127.0.0.1:{port}")
        # A reload of NGINX closes the connections that idle: what reads asks again, as browsers do.
        again = HTTPAdapter(max_retries=Retry(total=1, connect=0, read=1))
        self.session.mount(self.url, again)
        self.images = made
        self.docker = Docker(
            docker.environment
            | {
                "BASE_IMAGE": made.base,
                "MONGO_IMAGE": made.mongo,
                "WAYMARK_PORT": str(port),
                "WAYMARK_TLS_PORT": str(free_port()),  # published, though nothing listens there
                "BUILDX_NO_DEFAULT_ATTESTATIONS": "1",  # as the README says
                "WAYMARK_HEALTH_INTERVAL": "10s",  # what hangs is restarted after three of them
            }
        )
        emulated = ["--file", str(HERE / "emulated.yml")] if made.emulated else []
        self._compose = ["compose", "--project-name", PROJECT, "--file", "docker-compose.yml"]
        self._compose += emulated

    @contextmanager
    def also(self, file: Path) -> Iterator[None]:
        """Have another compose file count."""
        self._compose += ["--file", str(file)]
        try:
            yield
        finally:
            del self._compose[-2:]

    def compose(self, *arguments: str) -> str:
        return self.docker(*self._compose, *arguments)

    def try_compose(
        self, *arguments: str, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run compose with a few other settings, whatever comes of it."""
        docker = Docker(self.docker.environment | environment)
        return docker.run(*self._compose, *arguments)

    def interrupt_up(self) -> None:
        """Kill `up` as soon as it has made a container."""
        command = ["docker", *self._compose, "up", "--detach"]
        environment, quiet = self.docker.environment, subprocess.DEVNULL
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet, start_new_session=True
        ) as up:
            ps = (*self._compose, "ps", "--all", "--quiet")  # fails while a container is renamed
            eventually(lambda: self.docker.run(*ps).stdout.strip(), 120)
            os.killpg(up.pid, signal.SIGKILL)

    def containers(self) -> dict[str, dict[str, Any]]:
        """Return what `docker inspect` tells of each container, by its service."""
        names = self.compose("ps", "--all", "--quiet").split()
        documents = self.docker.inspect("container", *names)
        return {row["Config"]["Labels"]["com.docker.compose.service"]: row for row in documents}

    def pids(self) -> dict[str, int]:
        """Return the first process of each running container."""
        states = {name: container["State"] for name, container in self.containers().items()}
        return {name: state["Pid"] for name, state in states.items() if state["Running"]}

    def program(self, name: str) -> int:
        """Return the process of a container that `init` started."""
        first = self.pids()[name]
        (program,) = psutil.Process(first).children()
        return program.pid

    def unhealthy(self) -> dict[str, str]:
        """Return the services that are not as they should be."""
        states = {name: container["State"] for name, container in self.containers().items()}
        now = {name: state.get("Health", state)["Status"] for name, state in states.items()}
        assert set(now) == OURS | MONGO | ONE_SHOT
        good = {name: "exited" if name in ONE_SHOT else "healthy" for name in now}
        return {name: status for name, status in now.items() if status != good[name]}


def identities(stack: Stack) -> dict[str, tuple[str, str]]:
    """Return which container each service has, and since when it runs."""
    return {
        name: (container["Id"], container["State"]["StartedAt"])
        for name, container in stack.containers().items()
    }


def budget(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ./scripts/budget on the stack, whatever comes of it."""
    return subprocess.run(
        ["./scripts/budget", "--project", PROJECT, *arguments],
        cwd=ROOT,
        env=stack.docker.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def budget_rows(printed: str) -> dict[str, list[str]]:
    """Return the cells of each row that ./scripts/budget printed."""
    lines = [line.strip("| ").split("|") for line in printed.splitlines() if line[:1] == "|"]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in lines[2:]}


def taken(stack: Stack, staff_id: object, **more: object) -> bool:
    """Tell whether a detection is stored or queued."""
    try:
        return stack.detect(staff_id, **more).status_code in (200, 202)
    except requests.ConnectionError:  # the gateway itself starts
        return False


@pytest.fixture(scope="session")
def docker(pytestconfig: pytest.Config) -> Iterator[Docker]:
    """Return docker with a running engine."""
    with engine(kind=pytestconfig.getoption("--engine", KINDS[0])) as docker:
        pytestconfig.stash[TOLD] = versions(docker)
        yield docker


@pytest.fixture(scope="session")
def stack(docker: Docker) -> Iterator[Stack]:
    """Return the running stack: new volumes, images built from this checkout."""
    stack = Stack(docker, images(docker))
    stack.compose("down", "--volumes", "--remove-orphans")  # of a run that was killed
    stack.compose("build")
    try:
        stack.compose("up", "--detach")
        eventually(lambda: taken(stack, EARLY), EARLY_SECONDS)  # the database is not there yet
        stack.compose("up", "--detach", "--wait")
    except (AssertionError, TimeoutError, subprocess.TimeoutExpired):
        print(stack.compose("ps", "--all"), stack.compose("logs", "--tail", "20"))
        raise
    yield stack
    stack.compose("down", "--volumes", "--remove-orphans")
