"""What both architectures have in common: processes on this machine, inside limits, sampled."""

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from common.log_lines import FRAME
from scripts.processes.control_groups import SERVICE, UNLIMITED, Limits, Usage
from scripts.processes.health import Probe, http_problem
from scripts.processes.limited_group import LimitedGroup
from scripts.processes.ports import free_port
from scripts.processes.process import Process

SAMPLE_SECONDS = 0.5
ENOUGH_CORES = 8.0


class Sample(NamedTuple):
    """What one part had used at one moment, in seconds since the run began; then as Usage."""

    seconds: float
    part: str
    cpu_seconds: float
    throttled_seconds: float
    memory_bytes: int
    anonymous_bytes: int
    peak_bytes: int
    killed: int


class Stack:
    """Processes of which `with` starts all, and leaves nothing behind.

    The services are inside the source's limits, the others are only measured; with `limited` False
    all run without control groups, which need root. `port` is the gateway's, else any free one.
    `service_cores` and `database_cores` are what each service, and each server that holds data,
    may use instead.
    """

    works_later = False  # whether something is left to do of what it has answered

    def __init__(
        self,
        *,
        services: int = 2,
        limited: bool = True,
        port: int = 0,
        service_cores: float | None = None,
        database_cores: float | None = None,
    ) -> None:
        self._limited = limited
        self._service = SERVICE._replace(cpu=service_cores) if service_cores else SERVICE
        self._database = UNLIMITED._replace(cpu=database_cores)
        self._processes: dict[str, Process] = {}
        self._logs_read: dict[Path, int] = {}  # up to which byte
        self.folder = Path(tempfile.mkdtemp(prefix="waymark-load-"))
        self.mongod_port = free_port()
        self.gateway_port = port or free_port()
        self.ingest_ports = [free_port() for _ in range(services)]
        self.url = f"http://127.0.0.1:{self.gateway_port}"

    def __enter__(self) -> Self:
        """Start everything. Raises NotHealthyError, or LimitsUnavailableError when not allowed."""
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the parts, those that send before those that answer, and delete their data."""
        for process in reversed(self._processes.values()):
            process.stop()
        self._processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def usage(self) -> dict[str, Usage]:
        """Return what each part used since it started; nothing when it runs without groups."""
        parts = self._processes.items()
        return {name: part.group.usage() for name, part in parts if part.group}

    @contextmanager
    def sampled(self) -> Iterator[list[Sample]]:
        """Yield a list that grows by what each part uses, twice a second."""
        samples: list[Sample] = []
        ended, began = threading.Event(), time.monotonic()

        def sample() -> None:
            while not ended.wait(SAMPLE_SECONDS):
                now = round(time.monotonic() - began, 2)
                samples.extend(Sample(now, part, *used) for part, used in self.usage().items())

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield samples
        finally:
            ended.set()
            thread.join()

    def exceptions(self) -> list[str]:
        """Return of which parts the logs tell of exceptions since this was asked, and the first."""
        told = []
        for file in sorted(self.folder.glob("*.log")):
            with file.open("rb") as log:
                log.seek(self._logs_read.get(file, 0))
                text = log.read().decode(errors="replace")
                self._logs_read[file] = log.tell()
            lines = text[text.find(FRAME) :].splitlines() if FRAME in text else []
            kinds = [line for line in lines if not line.startswith(" ")]
            told += [f"the log of {file.stem} tells of {kind}" for kind in kinds[:1]]
        return told

    def pid(self, name: str) -> int:
        """Return the process that a part was started as."""
        return self._processes[name].pid

    @property
    def mongodb_uri(self) -> str:
        """How to reach the database beside the services."""
        raise NotImplementedError

    def into(self, group: LimitedGroup) -> None:
        """Move all processes into one group, which limits and counts them together."""
        for process in self._processes.values():
            group.adopt(process.pid)

    def restart_services(self) -> None:
        """Stop the ingest services and start them again, with nothing in their memory."""
        for number in range(1, len(self.ingest_ports) + 1):
            self._processes[f"ingest-{number}"].stop()
            self._processes[f"ingest-{number}"].start()
        for number, port in enumerate(self.ingest_ports, start=1):
            self._processes[f"ingest-{number}"].wait_until_healthy(health_of(port))
        # NGINX passes over what has failed for 10 s, also when it is back.
        self._processes["gateway"].wait_until_healthy(health_of(self.gateway_port))

    def _start(self) -> None:
        raise NotImplementedError

    def _limits(self, name: str) -> Limits:
        """Return what a part may use."""
        if name.startswith("ingest-"):
            return self._service
        return self._database if name == "mongod" or name.startswith("shard") else UNLIMITED

    def _launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> Process:
        """Start a part, which is healthy later."""
        self._processes[name] = Process(
            name,
            command,
            self.folder / f"{name}.log",
            folder=folder,
            environment=environment,
            limits=self._limits(name) if self._limited else None,
        )
        self._processes[name].start()
        return self._processes[name]


def health_of(port: int) -> Probe:
    """Return how to ask what answers at a port for its health, in either architecture."""
    return partial(http_problem, f"http://127.0.0.1:{port}/healthz")


@contextmanager
def in_box(stack: Stack, cores: float | None = None) -> Iterator[LimitedGroup]:
    """Start a stack that has no limits of its own; yield the one group that all of it is in.

    That may use so many cores, from when all is healthy on until it is ended.
    """
    with LimitedGroup("box", UNLIMITED) as box, stack:
        stack.into(box)
        box.limit(Limits(cores, None))
        try:
            yield box
        finally:
            box.limit(Limits(ENOUGH_CORES, None))  # it is not to be slow to end
