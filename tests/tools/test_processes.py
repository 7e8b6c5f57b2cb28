"""Processes are started, waited for and ended with all that they started."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scripts.processes import ports
from scripts.processes.health import remarks
from scripts.processes.process import NotHealthyError, Process
from scripts.processes.waiting import eventually
from tests.upstream import Upstream

FAMILY = """
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "60"])
print("child", child.pid, flush=True)
child.wait()
"""


def made(program: str, folder: Path) -> Process:
    return Process("test", [sys.executable, "-c", program], folder / "log")


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Process]:
    """Return a process that ignores SIGTERM and has a child."""
    process = made(FAMILY, tmp_path)
    process.start()
    process.wait_until_healthy(lambda: None if process.log.endswith("\n") else "silent")
    yield process
    process.kill()


def child_of(process: Process) -> psutil.Process:
    return psutil.Process(int(process.log.split()[-1]))


def test_stop_ends_what_does_not_end_by_itself(family: Process) -> None:
    child = child_of(family)
    family.stop(seconds=0.2)
    assert not family.running()
    eventually(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_killed_process_starts_again_and_keeps_its_log(family: Process) -> None:
    family.kill()
    family.start()
    eventually(lambda: family.log.count("child") == 2)
    assert family.running()


def test_a_signal_reaches_the_program_alone(family: Process) -> None:
    child = child_of(family)
    family.send_signal(signal.SIGKILL)
    assert family.wait(10) == -signal.SIGKILL
    assert child.is_running()
    family.start()  # ends what the killed program left
    eventually(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_program_that_ends_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    with (
        made("raise SystemExit('no disk')", tmp_path) as process,
        pytest.raises(NotHealthyError, match=r"test \(does not listen\):\nno disk"),
    ):
        process.wait_until_healthy(lambda: "does not listen")


def test_two_processes_get_different_ports() -> None:
    program = "from scripts.processes import ports; print(ports.free_port(), ports.free_block())"
    command = [sys.executable, "-c", program + "; input()"]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other,
    ):
        assert other.stdout
        theirs = {int(port) // ports.BLOCK for port in other.stdout.readline().split()}
        ours = {port // ports.BLOCK for port in (ports.free_port(), ports.free_block())}
        other.communicate("\n")
    assert len(theirs | ours) == 4


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b'{"status": "ok", "set_aside": 3}', ["damaged in its spool and set aside: 3"]),
        (503, b'{"set_aside": 0, "warnings": ["The spool is full."]}', ["The spool is full."]),
        (200, b'{"status": "ok"}', []),
        (200, b"[]", []),
        (502, b"<html>", []),
    ],
)
def test_what_somebody_has_to_see_to_at_a_service_is_told(
    upstream: Upstream, status: int, body: bytes, said: list[str]
) -> None:
    upstream.answer(status, body)
    assert remarks(upstream.port) == said
    upstream.close()
    assert remarks(upstream.port) == []
