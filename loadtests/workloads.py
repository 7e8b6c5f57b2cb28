"""Workloads of four other measured systems, in the words of this one; each passes or fails.

They run in the generator's process. An item of a shop, a tag or a device's push is a detection; a
reader, a user or a device is a staff member. Each yields lines of which the last is the verdict.
"""

import itertools
import json
import math
import os
import signal
import time
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import gevent

from loadtests.engine import endpoints, machine
from loadtests.engine.client import KEEP_ALIVE, Api, Response, WrongResponse
from loadtests.engine.pace import closed_loop, open_loop, wait_until
from loadtests.engine.resending import Clients, random_mac
from loadtests.figures import VERIFICATION, summary, write_csv

ITEMS_PER_SECOND = 107  # the source's average over 18 hours
BURST = 1000  # from here on the source's database was the bottleneck
READERS = (  # kind, how many, items of their bursts, shortest and longest interval in seconds
    ("dock", 5, (1000,), 30, 180),
    ("shelf", 35, (50,), 15, 120),
    ("till", 10, (10, 25, 50), 30, 120),
)
EDGE_READERS, POSTS = 4, 10  # and how many each of them sends over a second
USERS, PARTS, OBJECTS_A_PART = 100, 4, 5
MORE_READS = 4  # 904 requests in all, as in the source
PHASES = ((100, 60.0), (850, 30.0))  # values a second, and seconds for which it is frozen
BATCHES_PER_SECOND = 10
DRAIN_SECONDS = 120.0
LEAST_FREEZE_SECONDS = 4.0  # a service waits 2 s before it gives the database up
PUSH_SECONDS = 200.0
SENDERS = 6
SAFE_SHARE = 0.8  # of the lowest measured rate, as the source counted safe devices
SAMPLE = 500  # devices whose histories are read
TOLD_MIB = 2.0  # below it the services' memory moves by itself, as in ./scripts/load headroom


def retail(api: Api, options: Namespace) -> Iterator[str]:
    """50 readers of a shop: docks, shelves and tills, for 18 hours, here in a part of the time.

    Each reader has an interval of its own, those of a kind spread evenly over the stated range:
    together 110 items/s, where the source wrote 107.
    """
    clients = Clients(api)
    end, bursts = time.monotonic() + options.seconds, list[tuple[int, float]]()

    def read(name: str, sizes: tuple[int, ...], interval: float) -> None:
        due, size = time.monotonic() + interval / 2, itertools.cycle(sizes)
        while due < end:
            wait_until(due)
            count = next(size)
            clients.batch(name, [random_mac() for _ in range(count)], due)
            bursts.append((count, time.monotonic() - due))
            due += interval

    cpu, readers = list[float](), []
    watching = gevent.spawn(machine.watch, cpu)
    for kind, number, sizes, shortest, longest in READERS:
        for n in range(number):
            interval = (shortest + (longest - shortest) * n / (number - 1)) / options.speed
            readers.append(gevent.spawn(read, f"{kind}-{n}-{clients.run}", sizes, interval))
    gevent.joinall(readers, raise_error=True)
    watching.kill()
    rate = (total := sum(clients.acknowledged.values())) / options.seconds / options.speed
    took = [seconds for size, seconds in bursts if size >= BURST]
    yield (
        f"{options.seconds * options.speed / 3600:.1f} h of the shop in {options.seconds:.0f} s: "
        f"{total} items in {len(bursts)} bursts, {rate:.0f}/s by the shop's clock and "
        f"{rate * options.speed:.0f}/s by ours, {clients.retries} retries"
    )
    yield machine.told(cpu)
    yield f"{len(took)} bursts of {BURST}, stored after {max(took, default=math.nan):.2f} s at most"
    problems = [] if took else [f"no burst of {BURST}"]
    if rate < ITEMS_PER_SECOND:
        problems.append(f"{rate:.0f} items/s by the shop's clock, not {ITEMS_PER_SECOND}")
    yield from clients.verdict(problems)


def bursts(api: Api, options: Namespace) -> Iterator[str]:
    """4 readers of an edge server: 1000 tags over one second, one second of rest, and so on."""
    clients = Clients(api)
    count, began = math.ceil(options.seconds / 2), time.monotonic() + 1
    tags = BURST // EDGE_READERS // POSTS
    late: list[float] = []  # seconds of rest that were over when a reader's burst was stored

    def read(name: str) -> None:
        for burst in range(count):
            for post in range(POSTS):
                due = began + 2 * burst + post / POSTS
                wait_until(due)
                clients.batch(name, [random_mac() for _ in range(tags)], due)
            late.append(time.monotonic() - began - 2 * burst - 1)

    names = [f"edge-{n}-{clients.run}" for n in range(EDGE_READERS)]
    gevent.joinall([gevent.spawn(read, name) for name in names], raise_error=True)
    total, most = sum(clients.acknowledged.values()), max(late)
    yield f"{count} bursts, {total} tags, {clients.retries} retries"
    yield f"the slowest was stored {most:.2f} s after its second" if most > 0 else "none was late"
    yield from clients.verdict([f"{most:.2f} s: no rest was left"] if most > 1 else [])


def sync(api: Api, _options: Namespace) -> Iterator[str]:
    """100 users with a device each: begin, store 20 objects in four parts, read each part back."""
    clients = Clients(api)

    def user(number: int) -> None:
        name = f"user-{number}-{clients.run}"
        for part in range(PARTS + 1):

            def verify(response: Response, expected: int = OBJECTS_A_PART * part) -> None:
                if len(endpoints.newest_first(response)) != expected:
                    raise WrongResponse(f"{name} has not {expected} objects")

            clients.read(endpoints.extract(name), verify)
            if part < PARTS:
                clients.batch(name, [random_mac() for _ in range(OBJECTS_A_PART)])

    began = time.monotonic()
    gevent.joinall([gevent.spawn(user, number) for number in range(USERS)], raise_error=True)
    for _ in range(MORE_READS):
        clients.read("/api/v1/staff", lambda response: json.loads(response.body)["data"])
    took = time.monotonic() - began
    wrong = [row.detail for row in api.rows if row.error == VERIFICATION]
    sent = len(api.rows) - clients.retries
    rate = len(api.rows) / took
    yield f"{sent} requests and {clients.retries} retries, {rate:.0f}/s, {len(wrong)} wrong"
    for name, what in (("send", "five objects stored"), ("read", "read")):
        figures = summary([row for row in api.rows if row.name == name])
        times = figures.min / 1000, figures.max / 1000, figures.mean / 1000
        yield "{}: {:.3f} to {:.2f} s, {:.2f} on average".format(what, *times)
    yield from clients.verdict([f"wrong answer: {wrong[0]}"] if wrong else [])


def archive(api: Api, options: Namespace) -> Iterator[str]:
    """100 values a second, then 850, and the database frozen for 60 and 30 s: what has to wait?"""
    clients = Clients(api)
    problems: list[str] = []
    services = [Api(address, 5.0) for address in options.pending.split(",") if address]
    waiting: list[tuple[int, float, int]] = []  # values a second, seconds, how many waited
    for rate, frozen in PHASES:
        phase, first = frozen / options.speed, len(waiting)
        sending = gevent.spawn(_send, clients, rate, 3 * phase)
        watching = gevent.spawn(_watch, services, waiting, rate)
        gevent.sleep(phase / 2)
        sustained = max((count for *_, count in waiting[first:]), default=0)
        _freeze(options.mongod, phase)
        drained = _drained(services, time.monotonic())
        sending.get()
        watching.kill()
        waited = [(at, count) for _, at, count in waiting[first:]]
        most = max((count for _, count in waited), default=0)
        yield (
            f"{rate}/s for {3 * phase:.0f} s: {sustained} waited at most before the database was "
            f"frozen; frozen for {phase:.0f} s {most} at most; drained in {drained:.1f} s, "
            f"{most / drained:,.0f}/s beside the {rate}/s that came"
        )
        at_times = [waited[bisect_left(waited[:-1], (phase * n / 4,))] for n in range(12)]
        yield "  waiting: " + "  ".join(f"{at:.0f} s {count:,}" for at, count in at_times)
        if sustained > rate:
            problems.append(f"{sustained} waited at {rate}/s although nothing was frozen")
        if options.mongod and not most and phase > LEAST_FREEZE_SECONDS:
            problems.append("nothing waited: was the database frozen?")
        if drained >= DRAIN_SECONDS:
            problems.append(f"not drained after {DRAIN_SECONDS:.0f} s")
    if options.csv_waiting:
        write_csv(Path(options.csv_waiting), waiting, ("values_a_second", "seconds", "waiting"))
    yield f"{sum(clients.acknowledged.values())} values acknowledged, {clients.retries} retries"
    yield from clients.verdict(problems)


def _freeze(mongod: int, seconds: float) -> None:
    if mongod:
        os.kill(mongod, signal.SIGSTOP)
        try:
            gevent.sleep(seconds)
        finally:
            os.kill(mongod, signal.SIGCONT)


def _send(clients: Clients, rate: int, seconds: float) -> None:
    macs = [f"{0xA00000000000 + tag:012X}" for tag in range(rate // BATCHES_PER_SECOND)]

    def send(number: int, due: float) -> None:
        clients.batch(f"archive-{number % 10}-{clients.run}", macs, due)

    open_loop(round(seconds * BATCHES_PER_SECOND), seconds, send)


def _watch(services: list[Api], into: list[tuple[int, float, int]], rate: int) -> None:
    began = time.monotonic()
    while True:
        into.append((rate, round(time.monotonic() - began, 2), _pending(services)))
        gevent.sleep(0.25)


def _pending(services: list[Api]) -> int:
    return sum(json.loads(service.send("/api/v1/system").body)["queued"] for service in services)


def _drained(services: list[Api], since: float) -> float:
    """Return after how many seconds nothing waits any more."""
    while time.monotonic() - since < DRAIN_SECONDS and _pending(services):
        gevent.sleep(0.1)
    return time.monotonic() - since


def fleet(api: Api, options: Namespace) -> Iterator[str]:
    """Devices that push every 200 s: how many, how many retries, and how many would be safe."""
    clients = Clients(api)
    interval = PUSH_SECONDS / options.speed
    pushes = round(options.size * options.seconds / interval)

    def push(number: int, due: float) -> None:
        clients.single(f"device-{number % options.size}-{clients.run}", due)

    open_loop(pushes, pushes * interval / options.size, push)
    figures = summary([row for row in api.rows if row.name == "send"])
    yield (
        f"{options.size} devices, of which {len(clients.acknowledged)} pushed, every "
        f"{interval:.0f} s: {pushes} pushes, {options.size / interval:.0f}/s, "
        f"p50 {figures.p50:.0f}, p99 {figures.p99:.0f} ms, "
        f"{clients.retries} retries, {clients.drops} drops"
        + (f", GENERATOR {figures.late_p99_ms:.0f} ms LATE" if figures.late else "")
    )
    rates = [_rate(clients, min(2.0, options.seconds / 3)) for _ in range(3)]
    shown = ", ".join(f"{rate:.0f}" for rate in rates)
    safe = min(rates) * PUSH_SECONDS * SAFE_SHARE
    yield (
        f"{SENDERS} senders: {shown} pushes/s; safe devices "
        f"(lowest x {PUSH_SECONDS:.0f} s x {SAFE_SHARE}) {safe:,.0f}"
    )
    yield from clients.verdict([], only=SAMPLE)


def _rate(clients: Clients, seconds: float) -> float:
    """Return the pushes a second of six senders that wait for each response."""
    began = time.monotonic()

    def push(number: int) -> None:
        clients.single(f"sender-{number}-{clients.run}", headers=KEEP_ALIVE)

    return closed_loop(SENDERS, seconds, push) / (time.monotonic() - began)


def device_memory(before: int, after: int, devices: int) -> str:
    """Return what warm services (bytes of all) grew by for so many devices, where that is told."""
    grew = (after - before) / 2**20
    text = f"memory of the services: {before / 2**20:.1f} MiB, then {after / 2**20:.1f}"
    if grew < TOLD_MIB:
        return f"{text}: too little to tell a device's (below {TOLD_MIB:.0f} MiB)"
    return f"{text}: {grew * 1024 / devices:+.2f} KiB for each of {devices} devices that pushed"


WORKLOADS = {run.__name__: run for run in (retail, bursts, sync, archive, fleet)}
SPEEDS = {"retail": 20.0}  # times as fast as the source's clocks; the others 1
