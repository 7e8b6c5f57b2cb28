"""What a crash left of a stack: found by a mark in its environment, ended by pid."""

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil

MARK = "WAYMARK_STACK"  # the environment variable of every part; its value is the stack's folder


def find(data: Path, run: Path, *, only_nginx: bool = False) -> list[psutil.Process]:
    """Return the processes of the stack in `data` that run now, whoever started them."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            # nginx overwrites its environment with its title: its name and folder identify it.
            is_nginx = process.name() == "nginx" and process.cwd() == str(run)
            is_marked = not only_nginx and process.environ().get(MARK) == str(data)
            if (is_nginx or is_marked) and process.pid != os.getpid():
                found.append(process)
    return found


def end(processes: Iterable[psutil.Process], number: int, *, timeout_seconds: float) -> None:
    """Send a signal, wait, and kill what does not end."""
    processes = list(processes)
    _send(processes, number)
    _, alive = psutil.wait_procs(processes, timeout=timeout_seconds)
    _send(alive, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=5)


def _send(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
