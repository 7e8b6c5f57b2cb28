"""A whole stack, started as a person starts it. These tests know only URLs and processes."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from pymongo import MongoClient

from mongo import topology
from scripts.processes.cluster import DIRECTORY, Cluster
from scripts.processes.ports import free_block, free_port
from scripts.processes.waiting import eventually
from tests.client import Client
from tests.service import Service, running


class Stack(Client):
    """One native stack on its own ports with its own data; `prefix` is what its commands run in."""

    def __init__(self, root: Path, data: Path, prefix: Sequence[str] = ()) -> None:
        self.root = root
        self.data = data
        self.prefix = prefix
        self.port = free_port()
        super().__init__(f"http://127.0.0.1:{self.port}")
        self.environment = os.environ | {
            "WAYMARK_INGEST_PORTS": f"{free_port()} {free_port()}",
            "WAYMARK_MONITORING_PORT": str(free_port()),
            "WAYMARK_MONGOD_PORT": str(free_block()),
            "COMPOSE_ENV_FILES": os.devnull,  # whatever this checkout was configured for
        }

    def script(self, name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [*self.prefix, f"{self.root}/scripts/{name}", "--data", str(self.data)]
        return subprocess.run(
            [*command, *map(str, arguments)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,  # shards may be emulated: minutes, beside others
            stdin=subprocess.DEVNULL,
        )

    def up(self, *arguments: object) -> str:
        done = self.script("up", "--detach", "--port", self.port, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def down(self) -> str:
        done = self.script("down")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def pids(self) -> dict[str, int]:
        """Return the pid of each part that runs, as ./scripts/status shows it."""
        rows = re.findall(r"^(\S+)\s+\S+\s+(\d+)\s", self.script("status").stdout, re.MULTILINE)
        return {name: int(pid) for name, pid in rows}

    def wait_for_people(self, count: int) -> None:
        """Wait until the page shows so many staff members."""
        eventually(lambda: len(self.get("/monitoring/latest").json()["staff"]) >= count, 90)

    def supervisorctl(self, *command: str) -> None:
        """Stop or start parts without another being started in their place."""
        program = Path(sys.executable).with_name("supervisorctl")
        socket = f"unix://{self.data}/run/supervisor.sock"
        done = subprocess.run(
            [program, "-s", socket, *command], check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def supervisor_pid(self) -> int:
        file = self.data / "run" / "supervisord.pid"
        return int(eventually(file.read_text, 30))  # empty while it is being written


def kill_tree(pid: int) -> None:
    """Kill -9 a process and its children, as an out-of-memory killer or a power cut would."""
    parent = psutil.Process(pid)
    for process in [parent, *parent.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


def running_stack(root: Path, folder: Path, *options: str) -> AbstractContextManager[Stack]:
    """Run a stack with all its data in a folder."""
    return started(Stack(root, folder / "data"), *options)


@contextmanager
def started(stack: Stack, *options: str) -> Iterator[Stack]:
    """Run a stack."""
    try:
        stack.up(*options)
        yield stack
    finally:
        stack.down()


@pytest.fixture
def fresh(root: Path, tmp_path: Path) -> Iterator[Stack]:
    """Return a stack that is not started yet."""
    stack = Stack(root, tmp_path / "data")
    yield stack
    stack.down()


@pytest.fixture(scope="session")
def stack(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a running stack with the demo, shared by the tests that leave it as it was."""
    with running_stack(root, tmp_path_factory.mktemp("stack"), "--demo") as stack:
        stack.wait_for_people(14)
        yield stack


@pytest.fixture(scope="module")
def module_cluster(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a database with the directory of beacons, without a stack."""
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(topology.load(topology.EMBEDDED), folder).running(DIRECTORY) as cluster:
        yield cluster


@pytest.fixture
def cluster(module_cluster: Cluster) -> Cluster:
    """Return the database without any detection; the last test may have killed it."""
    module_cluster.start()
    with MongoClient[dict[str, Any]](module_cluster.uri()) as client:
        for collection in ("staff", "latest", "notes"):
            client["ICT3102"][collection].delete_many({})
    return module_cluster


@pytest.fixture
def services(cluster: Cluster, tmp_path: Path) -> Iterator[list[Service]]:
    """Return two running ingest services on that database, without a gateway."""
    with running(*(Service(cluster.uri(), tmp_path) for _ in range(2))) as services:
        yield services
