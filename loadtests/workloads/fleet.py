"""A router fleet manager's devices."""

import time
from argparse import Namespace
from collections.abc import Iterator

from loadtests.engine.client import KEEP_ALIVE, Api
from loadtests.engine.pace import closed_loop, open_loop
from loadtests.figures import summary
from loadtests.workloads.resending import Clients

SPEED = 1.0
PUSH_SECONDS = 200.0
SENDERS = 6
SAFE_SHARE = 0.8  # of the lowest measured rate, as the source counted safe devices
SAMPLE = 500  # devices whose histories are read


def run(api: Api, given: Namespace) -> Iterator[str]:
    """Devices that push every 200 s: how many, how many retries, and how many would be safe."""
    clients = Clients(api)
    interval = PUSH_SECONDS / given.speed
    pushes = round(given.size * given.seconds / interval)

    def push(number: int, due: float) -> None:
        clients.single(f"device-{number % given.size}-{clients.run}", due)

    open_loop(pushes, pushes * interval / given.size, push)
    figures = summary([row for row in api.rows if row.name == "send"])
    yield (
        f"{given.size} devices, of which {len(clients.acknowledged)} pushed, every "
        f"{interval:.0f} s: {pushes} pushes, {given.size / interval:.0f}/s, "
        f"p50 {figures.p50:.0f}, p99 {figures.p99:.0f} ms, "
        f"{clients.retries} retries, {clients.drops} drops"
        + (f", GENERATOR {figures.late_p99_ms:.0f} ms LATE" if figures.late else "")
    )
    rates = [_rate(clients, min(2.0, given.seconds / 3)) for _ in range(3)]
    each = ", ".join(f"{one:.0f}" for one in rates)
    safe = min(rates) * PUSH_SECONDS * SAFE_SHARE
    yield (
        f"{SENDERS} senders: {each} pushes/s; safe devices "
        f"(lowest x {PUSH_SECONDS:.0f} s x {SAFE_SHARE}) {safe:,.0f}"
    )
    yield from clients.verdict([], only=SAMPLE)


def _rate(clients: Clients, seconds: float) -> float:
    """Return the pushes a second of six senders that wait for each response."""
    began = time.monotonic()

    def push(number: int) -> None:
        clients.single(f"sender-{number}-{clients.run}", headers=KEEP_ALIVE)

    return closed_loop(SENDERS, seconds, push) / (time.monotonic() - began)
