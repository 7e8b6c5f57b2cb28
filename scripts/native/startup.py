"""Start the parts in order, and wait until each is healthy."""

import time
from collections.abc import Callable
from pathlib import Path

from mongo import secrets, topology
from mongo.bootstrap import bootstrap
from scripts.native.layout import Layout, StackError
from scripts.native.parts import Part, parts
from scripts.native.supervisor import Supervisor
from scripts.processes.cluster import DIRECTORY
from scripts.processes.waiting import eventually

HEALTHY_SECONDS = 60.0
# supervisord tries a part again by itself; one that still fails after this long will not start.
RESTARTING_SECONDS = 8.0


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
    bootstrap(
        topology.load(Path(layout.topology)).on_this_machine(layout.mongod_port),
        secrets.Secrets.read(layout.secrets),
        DIRECTORY,
        lambda step: print(f"  {'database':<12}{step}", flush=True),
        alive=_check_of(supervisor, layout, database),
    )


def _check_of(supervisor: Supervisor, layout: Layout, database: list[Part]) -> Callable[[], None]:
    """Return a check that raises StackError once a server of the database will not start."""
    began = time.monotonic()

    def check() -> None:
        for part in database:
            _raise_if_broken(supervisor, layout, part, time.monotonic() - began)

    return check


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
    began = time.monotonic()
    problem: str | None = None

    def healthy() -> bool:
        nonlocal problem
        state = supervisor.info(part.name)["statename"]
        problem = part.probe() if state in ("STARTING", "RUNNING") else state.lower()
        if problem:
            _raise_if_broken(supervisor, layout, part, time.monotonic() - began)
        return problem is None

    try:
        eventually(healthy, HEALTHY_SECONDS)
    except TimeoutError:
        log_end = _last_log_line(layout, part)
        raise StackError(f"{part.name} is not healthy ({problem}): {log_end}") from None


def _raise_if_broken(
    supervisor: Supervisor, layout: Layout, part: Part, waited_seconds: float
) -> None:
    state = supervisor.info(part.name)["statename"]
    if state == "FATAL" or (state == "BACKOFF" and waited_seconds > RESTARTING_SECONDS):
        raise StackError(f"{part.name} did not start: {_last_log_line(layout, part)}")


def _last_log_line(layout: Layout, part: Part) -> str:
    log = layout.log / f"{part.name}.log"
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote no log")
    return f"{last} [{log}]"
