"""Those that take turns: each a stack that runs, how it is spoken to, and what it has used."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from loadtests import histories
from loadtests.engine import endpoints
from loadtests.engine.client import KEEP_ALIVE, Api, Verify
from loadtests.stack import Stack, in_box
from scripts.processes.control_groups import SERVICE, Limits
from scripts.processes.limited_group import LimitedGroup

SERVICES, GATEWAY, DATABASE, EVERYTHING = "services", "gateway", "mongod", "everything"
PAGE = "monitoring"
ANSWER_SECONDS = 60.0
REST_SECONDS = 120.0  # for what is left to do, at most


class Dialect(NamedTuple):
    """How one detection is sent, and a whole history asked for."""

    insert: Callable[[int], tuple[str, bytes | None]]  # of somebody, now: the path and the body
    is_stored: Verify
    history: Callable[[int], str]  # its path
    mark: bytes  # what a history has once for each detection
    reads_url: str = ""  # where histories are asked for, if not where detections are sent
    headers: Mapping[str, str] = KEEP_ALIVE  # that asking shows


SOURCES = Dialect(
    lambda staff: (endpoints.insert_now(staff), None),
    endpoints.verify_insert,
    endpoints.extract,
    b'"timestamp"',
)


class Side:
    """A running stack, and the client that loads it. With a box, all its processes share that."""

    def __init__(self, stack: Stack, dialect: Dialect, box: LimitedGroup | None = None) -> None:
        self.stack = stack
        self.dialect = dialect
        self.box = box
        self.limited = EVERYTHING if box else SERVICES  # what has a limit of CPU, and which:
        self.cores = (SERVICE.cpu or 0.0) * len(stack.ingest_ports) or math.inf  # without: no limit
        self.gateway = Api(stack.url, ANSWER_SECONDS)
        self.apis = [Api(f"http://127.0.0.1:{port}") for port in stack.ingest_ports[:1]]
        self.apis.append(self.gateway)
        self.reads = self.gateway
        if dialect.reads_url:
            self.apis.append(reads := Api(dialect.reads_url, ANSWER_SECONDS))
            self.reads = reads
        self.stored: Counter[int] = Counter()  # detections of somebody that were acknowledged
        self.sent: Counter[int] = Counter()

    def read(self, name: str, staff: int, verify: Verify, due: float | None = None) -> None:
        """Ask for somebody's whole history."""
        path = self.dialect.history(staff)
        self.reads.measure(name, path, verify, None, self.dialect.headers, due=due)

    def close(self) -> None:
        """Close the connections that are kept."""
        for api in self.apis:
            api.close()

    def limit(self, cores: float) -> None:
        """Let everything in the box use so much together."""
        if self.box:
            self.box.limit(Limits(cores, None))
            self.cores = cores

    def cpu_seconds(self) -> dict[str, float]:
        """Return what each kind of part, and everything, has used since it started."""
        if self.box:
            return {EVERYTHING: self.box.usage().cpu_seconds}
        seconds = defaultdict[str, float](float)
        for name, used in self.stack.usage().items():
            kind = SERVICES if name.startswith("ingest-") else name
            if kind not in (SERVICES, GATEWAY, PAGE):  # a server of the database
                kind = DATABASE
            seconds[kind] += used.cpu_seconds
            seconds[EVERYTHING] += used.cpu_seconds
        return dict(seconds)

    def rest(self) -> None:
        """Wait until nothing is left to do of what was sent: the next turn would pay for it."""
        if self.stack.works_later:
            histories.wait_until_noted(self.stack.mongodb_uri, REST_SECONDS)

    def killed(self) -> int:
        """Return how many processes the kernel has ended for want of memory."""
        used = [self.box.usage()] if self.box else list(self.stack.usage().values())
        return sum(usage.killed for usage in used)


@contextmanager
def side(stack: Stack, dialect: Dialect = SOURCES) -> Iterator[Side]:
    """Start a stack inside the limits of its parts."""
    with stack:
        started = Side(stack, dialect)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def boxed(stack: Stack, dialect: Dialect = SOURCES) -> Iterator[Side]:
    """Start a stack without limits of its parts, and put all of it into one box."""
    with in_box(stack) as box:
        started = Side(stack, dialect, box)
        try:
            yield started
        finally:
            started.close()
