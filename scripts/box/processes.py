"""The machine's processes as /proc tells of them, and which of them are the Docker Engine."""

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
DAEMON = "dockerd"
BESIDE = {"containerd", "docker-proxy"}  # the daemon's children; containerd may be systemd's


class Process(NamedTuple):
    """One process: what it was called, its parent, and the CPU time that it took."""

    name: str
    parent: int
    seconds: float
    ended_seconds: float  # of its children that have ended


class Memory(NamedTuple):
    """MiB of a process: what cannot be given back, and its share of the files that are mapped."""

    anonymous: float
    text: float | None  # None: only root may know


def parse_stat(text: str) -> Process:
    """Read a line of /proc/PID/stat; a name may hold blanks and brackets."""
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    own, ended = (sum(map(int, fields[at : at + 2])) / TICKS for at in (11, 13))
    return Process(name, int(fields[1]), own, ended)


def processes() -> dict[int, Process]:
    """Return every process of the machine by its pid."""
    return by_pid(int(folder.name) for folder in PROC.glob("[0-9]*"))


def by_pid(pids: Iterable[int]) -> dict[int, Process]:
    """Return these processes by their pids, without those that have just ended."""
    running = {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            running[pid] = parse_stat((PROC / f"{pid}/stat").read_text())
    return running


def engine(running: Mapping[int, Process], first: Collection[int], daemon: int | None) -> set[int]:
    """Return the pids of the engine that runs the containers with these first processes.

    Its shims are their parents. `daemon` is the process that listens on its socket: where
    that is not a dockerd (systemd may), it is the machine's only one.
    """
    daemons = {pid for pid, process in running.items() if process.name == DAEMON}
    daemons &= {daemon} if daemon in daemons else daemons
    shims = {running[pid].parent for pid in first if pid in running}
    beside = {pid: process for pid, process in running.items() if process.name in BESIDE}
    own = {pid for pid, process in beside.items() if process.parent in daemons}
    if not any(running[pid].name == "containerd" for pid in own):
        own |= {
            pid
            for pid, process in beside.items()
            if process.name == "containerd" and process.parent == 1
        }
    return daemons | shims | own


def memory(pid: int) -> Memory:
    """Return a process's memory; nothing of one that has ended."""
    anonymous = _kib(PROC / f"{pid}/status", "RssAnon") or 0.0
    return Memory(anonymous, _kib(PROC / f"{pid}/smaps_rollup", "Pss_File"))


def machine() -> tuple[float, dict[str, float]]:
    """Return the CPU seconds that the whole machine has worked, and its MiB of memory by name."""
    words = (PROC / "stat").read_text().split()
    user, nice, system, _idle, _wait, interrupts, soft = map(int, words[1:8])
    names = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
    sizes = {name: _kib(PROC / "meminfo", name) or 0.0 for name in names}
    return (user + nice + system + interrupts + soft) / TICKS, sizes


def _kib(file: Path, name: str) -> float | None:
    """Return in MiB what a line `name: N kB` says; None where there is none, or for root alone."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    sizes = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(sizes[0]) / 1024 if sizes else None
