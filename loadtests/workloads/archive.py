"""A SCADA archive, whose database is frozen for a while."""

import json
import os
import signal
import time
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import gevent
from geventhttpclient import HTTPClient

from loadtests.engine.client import Api
from loadtests.engine.pace import open_loop
from loadtests.figures import write_csv
from loadtests.workloads.resending import Clients

SPEED = 1.0
PHASES = ((100, 60.0), (850, 30.0))  # values a second, and seconds for which it is frozen
BATCHES_PER_SECOND = 10
DRAIN_SECONDS = 120.0
LEAST_FREEZE_SECONDS = 4.0  # a service waits 2 s before it gives the database up


def run(api: Api, given: Namespace) -> Iterator[str]:
    """100 values a second, then 850, and the database frozen for 60 and 30 s: what has to wait?"""
    clients = Clients(api)
    problems: list[str] = []
    pending = [address for address in given.pending.split(",") if address]
    waiting: list[tuple[int, float, int]] = []  # values a second, seconds, how many waited
    for rate, frozen in PHASES:
        phase, first = frozen / given.speed, len(waiting)
        sending = gevent.spawn(_send, clients, rate, 3 * phase)
        watching = gevent.spawn(_watch, pending, waiting, rate)
        gevent.sleep(phase / 2)
        sustained = max((count for *_, count in waiting[first:]), default=0)
        _freeze(given.mongod, phase)
        drained = _drained(pending, time.monotonic())
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
        if given.mongod and not most and phase > LEAST_FREEZE_SECONDS:
            problems.append("nothing waited: was the database frozen?")
        if drained >= DRAIN_SECONDS:
            problems.append(f"not drained after {DRAIN_SECONDS:.0f} s")
    if given.csv_waiting:
        write_csv(Path(given.csv_waiting), waiting, ("values_a_second", "seconds", "waiting"))
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


def _watch(addresses: list[str], into: list[tuple[int, float, int]], rate: int) -> None:
    began = time.monotonic()
    while True:
        into.append((rate, round(time.monotonic() - began, 2), _pending(addresses)))
        gevent.sleep(0.25)


def _pending(addresses: list[str]) -> int:
    return sum(_queued(address) for address in addresses)


def _queued(address: str) -> int:
    response = HTTPClient.from_url(address, network_timeout=5.0).get("/api/v1/system")
    return int(json.loads(bytes(response.read()))["queued"])


def _drained(addresses: list[str], since: float) -> float:
    """Return after how many seconds nothing waits any more."""
    while time.monotonic() - since < DRAIN_SECONDS and _pending(addresses):
        gevent.sleep(0.1)
    return time.monotonic() - since
