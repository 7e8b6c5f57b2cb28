"""Start the parts in order, and wait until each is healthy."""

import time
from pathlib import Path

from pymongo.errors import PyMongoError

from mongo import secrets, topology
from mongo.bootstrap import bootstrap
from mongo.progress import NotInTimeError
from scripts.native.layout import Layout, StackError
from scripts.native.parts import Part, parts
from scripts.native.supervisor import Supervisor
from scripts.processes.cluster import DIRECTORY
from scripts.processes.waiting import eventually

HEALTHY_SECONDS = 60.0
# supervisord tries a part again by itself; one that ended so often will not start.
MAX_DEATHS = 3


def start_all(supervisor: Supervisor, layout: Layout, *, demo: bool) -> None:
    """Start what does not run yet, the database first. Raises StackError."""
    wanted = [part for part in parts(layout) if part.name != "demo" or demo]
    _start_database(supervisor, layout, [part for part in wanted if part.database])
    for part in wanted:
        _start(supervisor, layout, part)


def _start_database(supervisor: Supervisor, layout: Layout, database: list[Part]) -> None:
    """Start all of it, then bring it to its topology: a router waits for the config servers."""
    secrets.ensure(layout.secrets)
    for part in database:
        supervisor.start(part.name)
    watches = [_Watch(supervisor, layout, part) for part in database]

    def alive() -> None:
        for watch in watches:
            watch.runs()

    try:
        bootstrap(
            topology.load(Path(layout.topology)).on_this_machine(layout.mongod_port),
            secrets.Secrets.read(layout.secrets),
            DIRECTORY,
            lambda step: print(f"  {'database':<12}{step}", flush=True),
            alive=alive,
        )
    except (NotInTimeError, PyMongoError) as error:
        ill = (part for part in database if part.probe())
        logs = "".join(f"; {part.name}: {_last_log_line(layout, part)}" for part in ill)
        raise StackError(f"{error}{logs}") from error


class _Watch:
    """A part that should start; supervisord tries it again by itself, after a second or more."""

    def __init__(self, supervisor: Supervisor, layout: Layout, part: Part) -> None:
        self._supervisor = supervisor
        self._layout = layout
        self._part = part
        self._starts: set[int] = set()

    def runs(self) -> bool:
        """Tell whether it runs now. Raises StackError once it has ended again and again."""
        info = self._supervisor.info(self._part.name)
        self._starts.add(info["start"])
        runs = bool(info["pid"])
        if len(self._starts) - runs >= MAX_DEATHS:
            why = _last_log_line(self._layout, self._part)
            raise StackError(f"{self._part.name} did not start: {why}")
        return runs


def _start(supervisor: Supervisor, layout: Layout, part: Part) -> None:
    began = time.monotonic()
    where = f" on 127.0.0.1:{part.port}" if part.port else ""
    if supervisor.info(part.name)["pid"] and part.probe() is None:
        print(f"  {part.name:<12}running{where}", flush=True)
        return
    print(f"  {part.name:<12}starting ... ", end="", flush=True)
    try:
        supervisor.start(part.name)
        _wait_until_healthy(supervisor, layout, part)
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"ready{where} ({time.monotonic() - began:.1f} s)", flush=True)


def _wait_until_healthy(supervisor: Supervisor, layout: Layout, part: Part) -> None:
    watch = _Watch(supervisor, layout, part)
    problem: str | None = None

    def healthy() -> bool:
        nonlocal problem
        problem = part.probe() if watch.runs() else "not running"
        return problem is None

    try:
        eventually(healthy, HEALTHY_SECONDS)
    except TimeoutError:
        log_end = _last_log_line(layout, part)
        raise StackError(f"{part.name} is not healthy ({problem}): {log_end}") from None


def _last_log_line(layout: Layout, part: Part) -> str:
    log = layout.log / f"{part.name}.log"
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote no log")
    return f"{last} [{log}]"
