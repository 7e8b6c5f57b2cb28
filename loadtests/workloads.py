"""Workloads of four other measured systems, in the words of this one; each passes or fails.

They run in the generator's process. An item of a shop, a tag or a device's push is a detection; a
reader, a user or a device is a staff member.
"""

import itertools
import json
import math
import os
import random
import signal
import time
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gevent
from geventhttpclient import HTTPClient

from loadtests.client import Api, WrongAnswer, query
from loadtests.figures import LATE_MS, VERIFICATION, percentile, write_csv
from loadtests.histories import newest_first
from loadtests.plans import ALL_TIME
from loadtests.senders import Senders, tag

DRAIN_SECONDS = 120.0
SAMPLE = 500  # devices of a fleet whose histories are read
LEAST_FREEZE_SECONDS = 4.0  # a service waits 2 s before it gives the database up


class Setting(NamedTuple):
    """What a workload is run with."""

    seconds: float
    speed: float  # how many times faster than the source its clocks go
    size: int  # devices of the fleet
    mongod: int  # process to freeze; 0: none
    pending: tuple[str, ...]  # addresses that tell how many detections wait
    csv: str = ""  # file for how many waited, over time; "" for none


def retail(api: Api, setting: Setting) -> Iterator[str]:
    """50 readers of a shop: docks, shelves and tills, for 18 hours, here in a part of the time.

    Each reader has an interval of its own, those of a kind spread evenly over the stated range:
    together 110 items/s, where the source wrote 107.
    """
    senders = Senders(api)
    kinds = (
        ("dock", 5, (1000,), 30, 180),
        ("shelf", 35, (50,), 15, 120),
        ("till", 10, (10, 25, 50), 30, 120),
    )
    end = time.monotonic() + setting.seconds
    bursts: list[tuple[int, float]] = []

    def read(name: str, sizes: tuple[int, ...], interval: float) -> None:
        due, size = time.monotonic() + interval / 2, itertools.cycle(sizes)
        while due < end:
            gevent.sleep(max(0.0, due - time.monotonic()))
            count = next(size)
            senders.batch(name, [tag() for _ in range(count)], due)
            bursts.append((count, time.monotonic() - due))
            due += interval

    readers = []
    for kind, number, sizes, shortest, longest in kinds:
        for n in range(number):
            interval = (shortest + (longest - shortest) * n / (number - 1)) / setting.speed
            readers.append(gevent.spawn(read, f"{kind}-{n}-{senders.run}", sizes, interval))
    gevent.joinall(readers, raise_error=True)
    total = sum(senders.acknowledged.values())
    rate = total / setting.seconds / setting.speed
    took = [seconds for size, seconds in bursts if size >= 1000]
    yield (
        f"{setting.seconds * setting.speed / 3600:.1f} h of the shop in {setting.seconds:.0f} s: "
        f"{total} items in {len(bursts)} bursts, {rate:.0f}/s by the shop's clock and "
        f"{rate * setting.speed:.0f}/s by ours, {senders.retries} retries"
    )
    yield f"{len(took)} bursts of 1000, stored after {max(took, default=math.nan):.2f} s at most"
    problems = _least("items/s by the shop's clock", rate, 107)
    yield from _verdict(senders, problems if took else [*problems, "no burst of 1000"])


def sync(api: Api, _setting: Setting) -> Iterator[str]:
    """100 users with a device each: begin, store 20 objects in four parts, read each part back."""
    senders = Senders(api)

    def user(number: int) -> None:
        name = f"user-{number}-{senders.run}"
        for part in range(5):
            path = query("/extractbeacon", staff_id=name, **ALL_TIME)

            def verify(answer: Any, expected: int = 5 * part) -> None:
                if len(newest_first(answer)) != expected:
                    raise WrongAnswer(f"{name} has not {expected} objects")

            senders.read(path, verify)
            if part < 4:
                senders.batch(name, [tag() for _ in range(5)])

    began = time.monotonic()
    gevent.joinall([gevent.spawn(user, number) for number in range(100)], raise_error=True)
    for _again in range(4):  # 904 requests, as in the source
        senders.read("/api/v1/staff", lambda answer: json.loads(answer.body)["data"])
    took = time.monotonic() - began
    wrong = [row.detail for row in api.rows if row.error == VERIFICATION]
    rate = len(api.rows) / took
    asked = len(api.rows) - senders.retries
    yield f"{asked} requests and {senders.retries} retries, {rate:.0f}/s, {len(wrong)} wrong"
    yield from _verdict(senders, [f"wrong answer: {wrong[0]}"] if wrong else [])


def archive(api: Api, setting: Setting) -> Iterator[str]:
    """100 values a second, then 850, and the database frozen for 60 and 30 s: what has to wait?"""
    senders = Senders(api)
    problems: list[str] = []
    pending: list[tuple[int, float, int]] = []
    for rate, frozen in ((100, 60.0), (850, 30.0)):
        phase, first = frozen / setting.speed, len(pending)
        sending = gevent.spawn(_archive, senders, rate, 3 * phase)
        watching = gevent.spawn(_watch, setting.pending, pending, rate)
        gevent.sleep(phase / 2)
        sustained = max((count for *_, count in pending[first:]), default=0)
        if setting.mongod:
            os.kill(setting.mongod, signal.SIGSTOP)
            try:
                gevent.sleep(phase)
            finally:
                os.kill(setting.mongod, signal.SIGCONT)
        drained = _drained(setting.pending, time.monotonic())
        sending.get()
        watching.kill()
        waited = [(at, count) for _, at, count in pending[first:]]
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
        if setting.mongod and not most and phase > LEAST_FREEZE_SECONDS:
            problems.append("nothing waited: was the database frozen?")
        if drained >= DRAIN_SECONDS:
            problems.append(f"not drained after {DRAIN_SECONDS:.0f} s")
    if setting.csv:
        write_csv(Path(setting.csv), pending, ("values_a_second", "seconds", "waiting"))
    yield f"{sum(senders.acknowledged.values())} values acknowledged, {senders.retries} retries"
    yield from _verdict(senders, problems)


def fleet(api: Api, setting: Setting) -> Iterator[str]:
    """Devices that push every 200 s: how many, how many retries, and how many would be safe."""
    senders = Senders(api)
    interval = 200.0 / setting.speed
    began = time.monotonic()
    pushes = []
    for number in range(round(setting.size * setting.seconds / interval)):
        due = began + number * interval / setting.size
        gevent.sleep(max(0.0, due - time.monotonic()))
        name = f"device-{number % setting.size}-{senders.run}"
        pushes.append(gevent.spawn(senders.single, name, due))
    gevent.joinall(pushes, raise_error=True)
    rows = [row for row in api.rows if row.name == "send"]
    late = percentile([(row.sent - row.due) * 1000 for row in rows], 0.99)
    yield (
        f"{setting.size} devices, of which {len(senders.acknowledged)} pushed, every "
        f"{interval:.0f} s: {len(pushes)} pushes, {setting.size / interval:.0f}/s, "
        f"p50 {percentile([row.ms for row in rows], 0.5):.0f}, "
        f"p99 {percentile([row.ms for row in rows], 0.99):.0f} ms, "
        f"{senders.retries} retries, {senders.drops} drops"
        + (f", GENERATOR {late:.0f} ms LATE" if late > LATE_MS else "")
    )
    rates = [_closed_loop(senders, min(2.0, setting.seconds / 3)) for _ in range(3)]
    each = ", ".join(f"{one:.0f}" for one in rates)
    safe = min(rates) * 200 * 0.8
    yield f"6 senders: {each} pushes/s; safe devices (lowest x 200 s x 0.8) {safe:,.0f}"
    yield from _verdict(senders, [], only=SAMPLE)


WORKLOADS = {run.__name__: run for run in (retail, sync, archive, fleet)}


def _closed_loop(senders: Senders, seconds: float) -> float:
    """Return the pushes a second of six senders that wait for each answer."""
    began, pushed = time.monotonic(), [0]

    def push(number: int) -> None:
        while time.monotonic() - began < seconds:
            senders.single(f"sender-{number}-{senders.run}", keep=True)
            pushed[0] += 1

    gevent.joinall([gevent.spawn(push, number) for number in range(6)], raise_error=True)
    return pushed[0] / (time.monotonic() - began)


def _archive(senders: Senders, rate: int, seconds: float) -> None:
    """Send ten batches a second, whether or not the earlier ones were answered."""
    began = time.monotonic()
    sent = []
    for number in range(round(seconds * 10)):
        due = began + number / 10
        gevent.sleep(max(0.0, due - time.monotonic()))
        macs = [f"{0xA00000000000 + tag:012X}" for tag in range(rate // 10)]
        sent.append(gevent.spawn(senders.batch, f"archive-{number % 10}-{senders.run}", macs, due))
    gevent.joinall(sent, raise_error=True)


def _watch(addresses: tuple[str, ...], into: list[tuple[int, float, int]], rate: int) -> None:
    began = time.monotonic()
    while True:
        into.append((rate, round(time.monotonic() - began, 2), _pending(addresses)))
        gevent.sleep(0.25)


def _pending(addresses: tuple[str, ...]) -> int:
    return sum(_queued(address) for address in addresses)


def _queued(address: str) -> int:
    answer = HTTPClient.from_url(address, network_timeout=5.0).get("/api/v1/system")
    return int(json.loads(bytes(answer.read()))["queued"])


def _drained(addresses: tuple[str, ...], since: float) -> float:
    """Return after how many seconds nothing waits any more."""
    while time.monotonic() - since < DRAIN_SECONDS:
        if not _pending(addresses):
            break
        gevent.sleep(0.1)
    return time.monotonic() - since


def _verdict(senders: Senders, problems: list[str], only: int = 0) -> Iterator[str]:
    """Yield PASS, or FAIL and why; `only` looks at so many staff members, by chance."""
    every = list(senders.acknowledged)
    wrong = senders.stored(random.sample(every, only) if 0 < only < len(every) else every)
    if senders.drops:
        problems = [*problems, f"{senders.drops} dropped"]
    if wrong:
        staff, (found, expected) = next(iter(wrong.items()))
        problems = [*problems, f"{len(wrong)} histories wrong: {staff} {found}, not {expected}"]
    looked = f"{only} of " if 0 < only < len(every) else ""
    right = f"PASS: stored is what was acknowledged ({looked}{len(every)} histories)"
    yield f"FAIL: {'; '.join(problems)}" if problems else right


def _least(what: str, value: float, limit: float) -> list[str]:
    return [] if value >= limit else [f"{value:.0f} {what}, not {limit:.0f}"]
