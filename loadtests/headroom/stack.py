"""The stack inside the limits of docker-compose.yml; mongod and the load are outside of them."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pymongo import MongoClient

from loadtests.architectures import New
from scripts.native.parts import parts
from scripts.processes.control_groups import SERVICE, UNLIMITED, Limits
from scripts.processes.limited_group import LimitedGroup
from scripts.processes.waiting import eventually

MIB = 2**20
LIMITS = {
    "gateway": Limits(None, 32 * MIB),
    "ingest-1": SERVICE,
    "ingest-2": SERVICE,
    "monitoring": Limits(None, 48 * MIB),
}
RELOAD_SECONDS = 30.0  # nginx gives an old worker 20


class LimitedStack(New):
    """This architecture with a limit on each part but the database."""

    def __init__(self, limits: Mapping[str, Limits] = LIMITS) -> None:
        super().__init__()
        self.limits = limits

    @property
    def monitoring_port(self) -> int:
        """Where the monitoring service itself listens."""
        return self._layout.monitoring_port

    def groups(self) -> dict[str, LimitedGroup]:
        """Return the group of each part that has a limit."""
        groups = {name: self._processes[name].group for name in self.limits}
        return {name: group for name, group in groups.items() if group}

    def mend(self) -> list[str]:
        """Start what has ended, as a supervisor would, and wait until all answer; return names.

        Nothing that runs is started anew.
        """
        probes = {part.name: part.probe for part in parts(self._layout) if part.name in self.limits}
        ended = [name for name in probes if not self._processes[name].running()]
        for name in ended:
            self._processes[name].start()
        for name, probe in probes.items():
            self._processes[name].wait_until_healthy(probe)
        return ended

    def close_circuits(self) -> None:
        """Have nginx forget the failures that it counted, which a reload does."""
        group, before = self.groups()["gateway"], _workers(self.groups()["gateway"])
        self._processes["gateway"].send_signal(signal.SIGHUP)
        eventually(lambda: (now := _workers(group)) and not now & before, RELOAD_SECONDS)

    @contextmanager
    def frozen_database(self) -> Iterator[None]:
        """Have the database stand still, as on a machine that swaps."""
        mongod = self._processes["mongod"]
        mongod.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            mongod.send_signal(signal.SIGCONT)

    def _start(self) -> None:
        super()._start()
        with MongoClient[Any](self.mongodb_uri) as client:
            # What one case deleted must not slow down the next: it is kept for 5 min otherwise, for
            # reads of the past, which nobody makes.
            client.admin.command("setParameter", 1, minSnapshotHistoryWindowInSeconds=0)

    def _limits(self, name: str) -> Limits:
        return self.limits.get(name, UNLIMITED)


def _workers(group: LimitedGroup) -> set[int]:
    """Return nginx's workers, those that are still shutting down too."""
    processes = set()
    for pid in group.pids():
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"worker process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                processes.add(pid)
    return processes
