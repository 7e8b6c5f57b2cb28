"""./scripts/status: each part of the stack with its port, memory and health."""

import argparse
import contextlib
import sys
import time
import xmlrpc.client
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil

from gateway.acme import Held
from gateway.render import TLS_FILE
from scripts.native.layout import DEFAULT_DATA, Layout
from scripts.native.parts import FAILURES, Part, parts
from scripts.native.reasons import RUNBOOK, last_words
from scripts.native.supervisor import Supervisor
from scripts.processes.health import remarks

ROW = "{:<12}{:<10}{:>8}{:>7}{:>12}{:>10}  {}\n"
NOT_WANTED = "STOPPED"


def main() -> None:
    """Print a table; the exit status is 0 only when every part is healthy."""
    parser = argparse.ArgumentParser(prog="./scripts/status", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the stack")
    data = parser.parse_args().data.resolve()
    try:
        show(data)
    # supervisord hangs, belongs to another user, or ends right now; what up needs is not there.
    except FAILURES as error:
        sys.exit(f"status: {error}")


def show(data: Path) -> None:
    """Print the table of the stack in `data`, and exit."""
    layout = Layout.saved(data)
    if layout is None:
        sys.exit("the stack is not running: ./scripts/up starts it")
    supervisor = Supervisor(layout)
    if supervisor.lost():
        raise supervisor.gone()
    if not supervisor.running():
        sys.exit("the stack is not running: ./scripts/up starts it")
    print(ROW.format("part", "state", "pid", "port", "memory", "up for", "health"), end="")
    everything = parts(layout)
    # All are asked at once: what hangs costs its time-out, and not one for each.
    with ThreadPoolExecutor(2 * len(everything)) as threads:
        ask = partial(_row, supervisor, layout, threads)
        are_healthy = []
        for row, is_healthy in threads.map(ask, everything):
            print(row, end="")
            are_healthy.append(is_healthy)
    sys.exit(0 if all(are_healthy) else 1)


def _row(supervisor: Supervisor, layout: Layout, threads: Executor, part: Part) -> tuple[str, bool]:
    """Return a part's line, "" if it is not wanted, and whether it is healthy."""
    try:
        info = supervisor.info(part.name)
    except xmlrpc.client.Fault:  # BAD_NAME
        old = "an older checkout started this stack: ./scripts/up adds it"
        return ROW.format(part.name, "unknown", *"----", old), False
    if part.name == "demo" and info["statename"] == NOT_WANTED:
        return "", True
    remarked = None
    if part.port and part.name.startswith("ingest-"):
        remarked = threads.submit(remarks, part.port)
    problem: str | None = "not running"
    memory = age = "-"
    if info["pid"]:
        began = time.monotonic()
        problem = part.probe()
        took_ms = (time.monotonic() - began) * 1000
        memory = f"{_memory_bytes(info['pid']) / 2**20:.1f} MiB"
        age = f"{max(0, info['now'] - info['start'])} s"
    health = f"ok, {took_ms:.0f} ms" if problem is None else problem
    if not info["pid"]:
        health += f": {last_words(layout.log / f'{part.name}.log')}"
    if remarked:
        health = "; ".join([health, *remarked.result()])
    if part.name == "gateway":
        health += _certificate(layout)
    state = info["statename"].lower()
    row = ROW.format(part.name, state, info["pid"] or "-", part.port or "-", memory, age, health)
    return row, problem is None


def _certificate(layout: Layout) -> str:
    """Return until when the gateway's certificate is good; "" without TLS."""
    if held := Held.read(layout.run / TLS_FILE):
        if held.end < time.time():
            section = f"{RUNBOOK}, “WaymarkCertificateExpires”"
            return f"; certificate EXPIRED at {held.until()} ({section})"
        return f"; certificate good until {held.until()}"
    return f"; no certificate yet [{layout.log / 'acme.log'}]" if layout.acme else ""


def _memory_bytes(pid: int) -> int:
    """Return the memory of a process and its children, shared pages counted once (PSS)."""
    total = 0
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        for process in [parent, *parent.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
    return total


if __name__ == "__main__":
    main()
