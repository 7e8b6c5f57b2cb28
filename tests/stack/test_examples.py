"""The phones of `examples/`, while parts of a stack and the phones are killed and frozen.

What a phone said is safe, the database holds, once.
"""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scripts.processes.waiting import eventually
from tests.phones import BEACON
from tests.stack.conftest import Stack, kill_tree, running_stack

pytestmark = pytest.mark.long

PHONES = {"python": [sys.executable, "phone.py"], "javascript": ["node", "phone.mjs"]}
MORE = 15  # detections between two faults


@pytest.fixture(scope="module")
def office(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack that these tests break."""
    with running_stack(root, tmp_path_factory.mktemp("examples")) as stack:
        yield stack


class Phone:
    """One of the examples, on its queue; `heard` are the event ids that it said are safe."""

    def __init__(self, stack: Stack, command: list[str], queue: Path) -> None:
        folder = stack.root / "examples"
        program, script = command
        self._command = [program, str(folder / script), stack.url, f"phone-{script}", str(queue)]
        self.heard: list[str] = []
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        streams = (self._process.stdout, self._keep), (self._process.stderr, lambda _: None)
        self._readers = [
            threading.Thread(target=lambda s=stream, f=to: [f(line) for line in s])
            for stream, to in streams
        ]
        for reader in self._readers:
            reader.start()

    def _keep(self, line: bytes) -> None:
        if line.endswith(b"\n"):
            self.heard.append(line.decode().strip())

    def hear(self, count: int) -> None:
        """Let it hear a beacon so many times, and wait until it has said that this is safe."""
        assert self._process.stdin
        wanted = len(self.heard) + count
        self._process.stdin.write(f"{BEACON} -67\n".encode() * count)
        self._process.stdin.flush()
        eventually(lambda: len(self.heard) >= wanted, 30)

    def kill(self) -> None:
        """Kill -9 it in the middle of its work."""
        self._process.kill()
        self._end()

    def finish(self) -> None:
        """Let it hear nothing more, and wait until it has sent all."""
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait(180) == 0
        self._end()

    def _end(self) -> None:
        for reader in self._readers:
            reader.join()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    parent = psutil.Process(pid)
    parts = [parent, *parent.children(recursive=True)]
    for part in parts:
        part.suspend()
    try:
        yield
    finally:
        for part in parts:
            with contextlib.suppress(psutil.NoSuchProcess):
                part.resume()


@pytest.mark.parametrize("language", PHONES)
def test_a_phone_loses_nothing_and_doubles_nothing(
    office: Stack, tmp_path: Path, language: str
) -> None:
    phone = Phone(office, PHONES[language], tmp_path / "queue")
    for part in ("ingest-1", "ingest-2", "gateway", "mongod"):
        phone.hear(MORE)
        kill_tree(office.pids()[part])
        phone.hear(MORE)
        eventually(lambda: office.script("status").returncode == 0, 120)
        with frozen(office.pids()[part]):
            phone.hear(MORE)
            phone.kill()
            phone.start()
            phone.hear(MORE)
        eventually(lambda: office.script("status").returncode == 0, 120)
    phone.finish()
    staff_id = f"phone-{PHONES[language][1]}"

    def stored() -> int:
        return len(office.history(staff_id))

    eventually(lambda: stored() == len(phone.heard), 120)  # what a spool took comes later
    assert len(set(phone.heard)) == len(phone.heard) == 16 * MORE
    assert (tmp_path / "queue").exists()
