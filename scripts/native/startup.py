"""Start the parts in order, and wait until each is healthy."""

import time
from pathlib import Path

from pymongo.errors import PyMongoError

from mongo import secrets, topology
from mongo.bootstrap import KeyFileError, LostVolumeError, bootstrap
from mongo.data import NewerDataError
from mongo.progress import NotInTimeError
from scripts.native import reasons
from scripts.native.layout import Layout, StackError
from scripts.native.parts import Part, living, parts
from scripts.native.supervisor import Supervisor
from scripts.processes.cluster import DIRECTORY
from scripts.processes.waiting import eventually

DEADLINE_SECONDS = 600.0  # of the whole start; what cannot start is told much sooner
LAST_SECONDS = 10.0  # for what comes when the deadline is over
ONCE_MORE = "./scripts/up once more goes on where this ended, with a longer --deadline if it must"
# supervisord tries a part again by itself; one that ended so often will not start.
MAX_DEATHS = 3


def start_all(supervisor: Supervisor, layout: Layout, *, demo: bool, deadline: float) -> None:
    """Start what does not run yet, the database first, until `deadline`. Raises StackError."""
    wanted = [part for part in parts(layout) if part.name != "demo" or demo]
    database = [part for part in wanted if part.database]
    may_be_used = _start_database(supervisor, layout, database, deadline)
    for part in wanted:
        _start(supervisor, layout, part if may_be_used else living(part), deadline)


def _start_database(
    supervisor: Supervisor, layout: Layout, database: list[Part], deadline: float
) -> bool:
    """Start all of it, then bring it to its topology: a router waits for the config servers.

    Return whether the services may use it.
    """
    secrets.ensure(layout.secrets)
    watches = [_Watch(supervisor, layout, part) for part in database]
    for part in database:
        supervisor.start(part.name)

    def alive() -> None:
        for watch in watches:
            watch.runs()

    try:
        return bootstrap(
            topology.load(Path(layout.topology)).on_this_machine(layout.mongod_port),
            secrets.Secrets.read(layout.secrets),
            DIRECTORY,
            lambda step: print(f"  {'database':<12}{step}", flush=True),
            alive=alive,
            deadline_seconds=max(0, deadline - time.monotonic()),
        )
    except NotInTimeError as error:
        raise StackError(f"{error}: {ONCE_MORE}{_logs(watches, layout)}") from error
    except (KeyFileError, LostVolumeError, NewerDataError) as error:
        raise StackError(str(error)) from error
    except PyMongoError as error:
        raise StackError(f"{error}{_logs(watches, layout)}") from error


def _logs(watches: list["_Watch"], layout: Layout) -> str:
    """Return what those say that are not well, else where all say something."""
    ill = [watch for watch in watches if watch.part.probe()]
    said = "".join(f"; {watch.part.name}: {watch.last_words()}" for watch in ill)
    return said or f" [{layout.log}]"


class _Watch:
    """A part that should start; supervisord tries it again by itself, after a second or more."""

    def __init__(self, supervisor: Supervisor, layout: Layout, part: Part) -> None:
        self._supervisor = supervisor
        self.part = part
        self._log = layout.log / f"{part.name}.log"
        self._old_bytes = self._log.stat().st_size if self._log.exists() else 0
        self._starts: set[int] = set()

    def runs(self) -> bool:
        """Tell whether it runs now. Raises StackError once it has ended again and again."""
        info = self._supervisor.info(self.part.name)
        self._starts.add(info["start"])
        runs = bool(info["pid"])
        if len(self._starts) - runs >= MAX_DEATHS:
            raise StackError(f"{self.part.name} did not start: {self.last_words()}")
        return runs

    def last_words(self) -> str:
        """Return what its log says since then, and what to do."""
        return reasons.last_words(self._log, self._old_bytes)


def _start(supervisor: Supervisor, layout: Layout, part: Part, deadline: float) -> None:
    began = time.monotonic()
    where = f" on 127.0.0.1:{part.port}" if part.port else ""
    if supervisor.info(part.name)["pid"] and part.probe() is None:
        print(f"  {part.name:<12}running{where}", flush=True)
        return
    print(f"  {part.name:<12}starting ... ", end="", flush=True)
    try:
        watch = _Watch(supervisor, layout, part)
        supervisor.start(part.name)
        _wait_until_healthy(watch, max(LAST_SECONDS, deadline - time.monotonic()))
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"ready{where} ({time.monotonic() - began:.1f} s)", flush=True)


def _wait_until_healthy(watch: _Watch, seconds: float) -> None:
    problem: str | None = None

    def healthy() -> bool:
        nonlocal problem
        problem = watch.part.probe() if watch.runs() else "not running"
        return problem is None

    try:
        eventually(healthy, seconds)
    except TimeoutError:
        raise StackError(
            f"{watch.part.name} is not healthy ({problem}): {ONCE_MORE}; {watch.last_words()}"
        ) from None
