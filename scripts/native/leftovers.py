"""What a crash left of a stack: found by a mark in its environment, ended by pid."""

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil

MARK = "WAYMARK_STACK"  # the environment variable of every part; its value is the stack's folder


def find(data: Path, run: Path, *, only_nginx: bool = False) -> list[psutil.Process]:
    """Return the processes of the stack in `data` that run now, of any start."""
    processes = []
    ourselves = (os.getpid(), os.getppid())  # perhaps the guard's (configuration.py)
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            # nginx overwrites its environment with its title: its name and folder identify it.
            is_nginx = process.name() == "nginx" and process.cwd() == str(run)
            is_marked = not only_nginx and process.environ().get(MARK) == str(data)
            if (is_nginx or is_marked) and process.pid not in ourselves:
                processes.append(process)
    return processes


def end(processes: Iterable[psutil.Process], number: int, *, timeout_seconds: float) -> None:
    """Send a signal, wait, and kill what does not end; at once what is stopped and takes none."""
    processes = list(processes)
    _send(processes, number)
    _send(filter(_is_stopped, processes), signal.SIGKILL)
    _, alive = psutil.wait_procs(processes, timeout=timeout_seconds)
    _send(alive, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=5)


def _is_stopped(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_STOPPED)
    return False


def _send(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
