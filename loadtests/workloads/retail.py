"""An RFID edge server's shop."""

import itertools
import math
import time
from argparse import Namespace
from collections.abc import Iterator

import gevent

from loadtests.engine.client import Api
from loadtests.engine.pace import wait_until
from loadtests.workloads.resending import Clients, random_mac

SPEED = 20.0
ITEMS_PER_SECOND = 107  # the source's average over 18 hours
BURST = 1000  # from here on the source's database was the bottleneck
READERS = (  # kind, how many, items of their bursts, shortest and longest interval in seconds
    ("dock", 5, (1000,), 30, 180),
    ("shelf", 35, (50,), 15, 120),
    ("till", 10, (10, 25, 50), 30, 120),
)


def run(api: Api, given: Namespace) -> Iterator[str]:
    """50 readers of a shop: docks, shelves and tills, for 18 hours, here in a part of the time.

    Each reader has an interval of its own, those of a kind spread evenly over the stated range:
    together 110 items/s, where the source wrote 107.
    """
    clients = Clients(api)
    end = time.monotonic() + given.seconds
    bursts: list[tuple[int, float]] = []

    def read(name: str, sizes: tuple[int, ...], interval: float) -> None:
        due, size = time.monotonic() + interval / 2, itertools.cycle(sizes)
        while due < end:
            wait_until(due)
            count = next(size)
            clients.batch(name, [random_mac() for _ in range(count)], due)
            bursts.append((count, time.monotonic() - due))
            due += interval

    readers = []
    for kind, number, sizes, shortest, longest in READERS:
        for n in range(number):
            interval = (shortest + (longest - shortest) * n / (number - 1)) / given.speed
            readers.append(gevent.spawn(read, f"{kind}-{n}-{clients.run}", sizes, interval))
    gevent.joinall(readers, raise_error=True)
    total = sum(clients.acknowledged.values())
    rate = total / given.seconds / given.speed
    took = [seconds for size, seconds in bursts if size >= BURST]
    yield (
        f"{given.seconds * given.speed / 3600:.1f} h of the shop in {given.seconds:.0f} s: "
        f"{total} items in {len(bursts)} bursts, {rate:.0f}/s by the shop's clock and "
        f"{rate * given.speed:.0f}/s by ours, {clients.retries} retries"
    )
    yield f"{len(took)} bursts of {BURST}, stored after {max(took, default=math.nan):.2f} s at most"
    problems = [] if took else [f"no burst of {BURST}"]
    if rate < ITEMS_PER_SECOND:
        problems.append(f"{rate:.0f} items/s by the shop's clock, not {ITEMS_PER_SECOND}")
    yield from clients.verdict(problems)
