"""A whole stack, started as a person starts it. These tests know only URLs and processes."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scripts.processes.ports import free_block, free_port
from scripts.processes.waiting import eventually
from tests.client import Client


class Stack(Client):
    """One native stack on its own ports with its own data."""

    def __init__(self, root: Path, data: Path) -> None:
        self.root = root
        self.data = data
        self.port = free_port()
        super().__init__(f"http://127.0.0.1:{self.port}")
        self.environment = os.environ | {
            "WAYMARK_INGEST_PORTS": f"{free_port()} {free_port()}",
            "WAYMARK_MONITORING_PORT": str(free_port()),
            "WAYMARK_MONGOD_PORT": str(free_block()),
        }

    def script(self, name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [f"{self.root}/scripts/{name}", "--data", str(self.data), *map(str, arguments)]
        return subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
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
        """Return the pid of each part that runs, as ./scripts/status tells it."""
        rows = re.findall(r"^(\S+)\s+\S+\s+(\d+)\s", self.script("status").stdout, re.MULTILINE)
        return {name: int(pid) for name, pid in rows}

    def supervisor_pid(self) -> int:
        return int((self.data / "run" / "supervisord.pid").read_text())


def kill_tree(pid: int) -> None:
    """Kill -9 a process and its children, as an out-of-memory killer or a power cut would."""
    parent = psutil.Process(pid)
    for process in [parent, *parent.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


@pytest.fixture
def fresh(root: Path, tmp_path: Path) -> Iterator[Stack]:
    """Return a stack that nobody has started yet."""
    stack = Stack(root, tmp_path / "data")
    yield stack
    stack.down()


@pytest.fixture(scope="session")
def stack(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a running stack with the demo, shared by the tests that leave it as it was."""
    stack = Stack(root, tmp_path_factory.mktemp("stack") / "data")
    stack.up("--demo")
    try:
        eventually(lambda: len(stack.get("/monitoring/latest").json()["staff"]) >= 14, 90)
        yield stack
    finally:
        stack.down()
