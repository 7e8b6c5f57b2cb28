"""Processes that belong to a stack, found by a mark in their environment, never by name alone."""

import contextlib
import errno
import os
import signal
import socket
from collections.abc import Iterable
from pathlib import Path

import psutil

from scripts.native.layout import StackError


def leftovers(data: Path, run: Path, *, only_nginx: bool = False) -> list[psutil.Process]:
    """Return the processes of the stack in `data` that run now, whoever started them."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            # nginx overwrites its environment with its title; its folder and program tell as well.
            is_nginx = process.name() == "nginx" and process.cwd() == str(run)
            marked = not only_nginx and process.environ().get("WAYMARK_STACK") == str(data)
            if (is_nginx or marked) and process.pid != os.getpid():
                found.append(process)
    return found


def end(processes: Iterable[psutil.Process], *, timeout_seconds: float, how: int) -> None:
    """Send a signal, wait, and kill what does not end."""
    processes = list(processes)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(how)
    _, alive = psutil.wait_procs(processes, timeout=timeout_seconds)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    psutil.wait_procs(alive, timeout=5)


def port_is_free(port: int) -> bool:
    """Tell whether a server could listen on 127.0.0.1:port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            if error.errno == errno.EACCES:
                raise StackError(f"only root may listen on port {port}") from error
            raise
    return True


def listener(port: int) -> str:
    """Return who listens on a port, as far as this user may see."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN
            if listens and connection.pid and tuple(connection.laddr)[1:] == (port,):
                return f"{psutil.Process(connection.pid).name()}, pid {connection.pid}"
    return "another program"


def memory_bytes(pid: int) -> int:
    """Return the memory of a process and its children, shared pages counted once (PSS)."""
    total = 0
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        for process in [parent, *parent.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
    return total
