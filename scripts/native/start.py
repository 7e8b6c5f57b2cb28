"""Start the parts in order, and wait until each is well."""

import time
from collections.abc import Callable
from pathlib import Path

from mongo import secrets, topology
from mongo.bootstrap import bootstrap
from scripts.native.layout import ROOT, Layout, StackError
from scripts.native.parts import Part, parts
from scripts.native.supervisor import Supervisor

READY_SECONDS = 60.0
# supervisord tries a part again by itself; one that still fails after this long will not start.
RESTARTING_SECONDS = 8.0


def start_all(supervisor: Supervisor, layout: Layout, *, demo: bool) -> None:
    """Start what does not run yet, the database first. Raises StackError."""
    wanted = [part for part in parts(layout) if part.name != "demo" or demo]
    database = [part for part in wanted if part.database]
    _start_database(supervisor, layout, database)
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
        ROOT / "mongo" / "directory.csv",
        lambda done: print(f"  {'database':<12}{done}", flush=True),
        alive=_alive(supervisor, layout, database),
    )


def _alive(supervisor: Supervisor, layout: Layout, database: list[Part]) -> Callable[[], None]:
    began = time.monotonic()

    def check() -> None:
        for part in database:
            state = supervisor.info(part.name)["statename"]
            _give_up_on_broken(layout, part, state, time.monotonic() - began)

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
        _wait(supervisor, layout, part)
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"ready{where} ({time.monotonic() - began:.1f} s)", flush=True)


def _wait(supervisor: Supervisor, layout: Layout, part: Part) -> None:
    began = time.monotonic()
    while True:
        state = supervisor.info(part.name)["statename"]
        wrong = part.probe() if state in ("STARTING", "RUNNING") else state.lower()
        if wrong is None:
            return
        waited = time.monotonic() - began
        _give_up_on_broken(layout, part, state, waited)
        if waited > READY_SECONDS:
            raise StackError(f"{part.name} is not well ({wrong}): {_last_words(layout, part)}")
        time.sleep(0.1)


def _give_up_on_broken(layout: Layout, part: Part, state: str, waited: float) -> None:
    if state == "FATAL" or (state == "BACKOFF" and waited > RESTARTING_SECONDS):
        raise StackError(f"{part.name} did not start: {_last_words(layout, part)}")


def _last_words(layout: Layout, part: Part) -> str:
    log = layout.log / f"{part.name}.log"
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote no log")
    return f"{last} [{log}]"
