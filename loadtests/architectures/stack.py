"""An architecture's processes on this machine."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from scripts.processes.control_groups import SERVICE, UNLIMITED, Usage
from scripts.processes.health import Probe
from scripts.processes.ports import free_port
from scripts.processes.process import Process


class Stack:
    """Processes of which `with` starts all, and leaves nothing behind.

    The services are inside the source's limits, the others are only measured; with `limited` False
    all run without control groups, which need root.
    """

    def __init__(self, *, services: int = 2, limited: bool = True) -> None:
        self._limited = limited
        self._processes: dict[str, Process] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="waymark-load-"))
        self.mongod_port = free_port()
        self.gateway_port = free_port()
        self.ingest_ports = [free_port() for _ in range(services)]
        self.url = f"http://127.0.0.1:{self.gateway_port}"

    def __enter__(self) -> Self:
        """Start everything. Raises NotHealthyError, or LimitsUnavailableError when not allowed."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything and delete its data."""
        self.stop()

    def usage(self) -> dict[str, Usage]:
        """Return what each part used since it started; nothing when it runs without groups."""
        parts = self._processes.items()
        return {name: part.group.usage() for name, part in parts if part.group}

    def pid(self, name: str) -> int:
        """Return the process that a part was started as."""
        return self._processes[name].pid

    def stop(self) -> None:
        """End the parts, those that send before those that answer."""
        for process in reversed(self._processes.values()):
            process.stop()
        self._processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        raise NotImplementedError

    def _launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> Process:
        """Start a part, which may be healthy later."""
        limits = SERVICE if name.startswith("ingest-") else UNLIMITED
        process = self._processes[name] = Process(
            name,
            command,
            self.folder / f"{name}.log",
            folder=folder,
            environment=environment,
            limits=limits if self._limited else None,
        )
        process.start()
        return process

    def _wait(self, probes: Mapping[str, Probe]) -> None:
        """Wait until parts that were started side by side are healthy."""
        for name, probe in probes.items():
            self._processes[name].wait_until_healthy(probe)
