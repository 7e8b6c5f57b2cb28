"""Workloads of four other measured systems, in the words of this one; each passes or fails.

They run in the generator's process. An item of a shop, a tag or a device's push is a detection; a
reader, a user or a device is a staff member.
"""

import contextlib
import json
import os
import random
import signal
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gevent
from geventhttpclient import HTTPClient

from loadtests.client import Api, WrongAnswer, query
from loadtests.figures import VERIFICATION, percentile
from loadtests.filling import body
from loadtests.histories import newest_first, verify_added, verify_batch
from loadtests.plans import ALL_TIME

MOST_IN_A_BATCH = 1000
RETRY_SECONDS = 1.0
TRIES = 30  # as good clients do: what was not confirmed is sent again, with the same event ids
DRAIN_SECONDS = 120.0
LEAST_FREEZE_SECONDS = 4.0  # a service waits 2 s before it gives the database up


class Setting(NamedTuple):
    """What a workload is run with."""

    seconds: float
    speed: float  # how many times faster than the source its clocks go
    size: int  # devices of the fleet
    mongod: int  # process to freeze; 0: none
    pending: tuple[str, ...]  # addresses that tell how many detections wait


class Senders:
    """Clients that send again until they are answered, and know what must be stored."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.acknowledged: dict[str, int] = defaultdict(int)
        self.retries = 0
        self.drops = 0

    def batch(self, staff: str, macs: list[str], due: float | None = None) -> None:
        """Send detections of now by one staff member, at most 1000 a request."""
        for at in range(0, len(macs), MOST_IN_A_BATCH):
            part = macs[at : at + MOST_IN_A_BATCH]
            items = [_item(staff, mac) for mac in part]

            def verify(answer: Any, size: int = len(part)) -> None:
                verify_batch(answer, size)

            self._send(staff, len(part), "/api/v1/detections", verify, body(items), due)

    def single(self, staff: str, due: float | None = None, *, keep: bool = False) -> None:
        """Send one detection as a phone does."""
        item = _item(staff, "C2A628384B08")
        named = {"user_address": staff, "beacon_address": item["mac"]}
        rest = {name: item[name] for name in ("rssi", "timestamp", "event_id")}
        path = query("/newbeacondetect", **named, **rest)
        self._send(staff, 1, path, verify_added, None, due, keep=keep)

    def read(self, path: str, verify: Callable[[Any], Any]) -> None:
        """Read, and wait as told when it is too much at once (429, 503)."""
        for _ in range(TRIES):
            answer = self._api.ask("read", path, _when_good(verify), good=(200, 429, 503))
            if answer.status not in (429, 503):
                return
            self.retries += 1
            gevent.sleep(RETRY_SECONDS)
        self.drops += 1

    def _send(
        self,
        staff: str,
        size: int,
        path: str,
        verify: Callable[[Any], None],
        text: bytes | None,
        due: float | None,
        *,
        keep: bool = False,
    ) -> None:
        for _ in range(TRIES):
            answer = self._api.ask("send", path, verify, text, due=due, good=(200, 202), keep=keep)
            if answer.status in (200, 202):
                self.acknowledged[staff] += size
                return
            self.retries += 1
            due = None
            gevent.sleep(RETRY_SECONDS)
        self.drops += size

    def stored(self) -> dict[str, tuple[int, int]]:
        """Return who has not exactly what was acknowledged: what is stored, and what should be."""
        wrong = {}
        for staff, count in self.acknowledged.items():
            found = -1
            with contextlib.suppress(WrongAnswer):
                answer = self._api.call(query("/extractbeacon", staff_id=staff, **ALL_TIME))
                found = len(newest_first(answer))
            if found != count:
                wrong[staff] = (found, count)
        return wrong


def retail(api: Api, setting: Setting) -> Iterator[str]:
    """50 readers of a shop: docks, shelves and tills, for 18 hours, here in a part of the time."""
    senders = Senders(api)
    readers: list[tuple[str, tuple[int, ...], int, int]]
    readers = [(f"dock-{n}", (1000,), 30, 180) for n in range(5)]
    readers += [(f"shelf-{n}", (50,), 15, 120) for n in range(35)]
    readers += [(f"till-{n}", (10, 25, 50), 30, 120) for n in range(10)]
    end = time.monotonic() + setting.seconds
    bursts: list[tuple[int, float]] = []

    def read(name: str, sizes: tuple[int, ...], shortest: float, longest: float) -> None:
        gevent.sleep(random.uniform(0, longest) / setting.speed)
        while (due := time.monotonic()) < end:
            size = random.choice(sizes)
            senders.batch(name, [_tag() for _ in range(size)], due)
            bursts.append((size, time.monotonic() - due))
            gevent.sleep(random.uniform(shortest, longest) / setting.speed)

    gevent.joinall([gevent.spawn(read, *reader) for reader in readers], raise_error=True)
    total = sum(senders.acknowledged.values())
    rate = total / setting.seconds
    longest = max((took for size, took in bursts if size >= 1000), default=float("nan"))
    yield f"{total} items in {len(bursts)} bursts, {rate:.0f}/s; 1000 took {longest:.2f} s at most"
    yield from _verdict(senders, _least("items/s", rate, 107))


def sync(api: Api, _setting: Setting) -> Iterator[str]:
    """100 users with a device each: begin, store 20 objects in four parts, read each part back."""
    senders = Senders(api)

    def user(number: int) -> None:
        name = f"user-{number}"
        for part in range(5):
            path = query("/extractbeacon", staff_id=name, **ALL_TIME)

            def verify(answer: Any, expected: int = 5 * part) -> None:
                if len(newest_first(answer)) != expected:
                    raise WrongAnswer(f"{name} has not {expected} objects")

            senders.read(path, verify)
            if part < 4:
                senders.batch(name, [_tag() for _ in range(5)])

    began = time.monotonic()
    gevent.joinall([gevent.spawn(user, number) for number in range(100)], raise_error=True)
    for _again in range(4):  # 904 requests, as in the source
        senders.read("/api/v1/staff", lambda answer: json.loads(answer.body)["data"])
    took = time.monotonic() - began
    wrong = [row.detail for row in api.rows if row.error == VERIFICATION]
    rate = len(api.rows) / took
    yield f"{len(api.rows)} requests, {senders.retries} of them retries, {rate:.0f}/s"
    yield from _verdict(senders, [f"wrong answer: {wrong[0]}"] if wrong else [])


def archive(api: Api, setting: Setting) -> Iterator[str]:
    """100 values a second, then 850, and the database frozen for 60 and 30 s: what has to wait?"""
    senders = Senders(api)
    problems: list[str] = []
    for rate, frozen in ((100, 60.0), (850, 30.0)):
        pending: list[tuple[float, int]] = []
        began = time.monotonic()
        phase = frozen / setting.speed
        sending = gevent.spawn(_archive, senders, rate, 3 * phase)
        watching = gevent.spawn(_watch, setting.pending, pending, began)
        gevent.sleep(phase / 2)
        if setting.mongod:
            os.kill(setting.mongod, signal.SIGSTOP)
            try:
                gevent.sleep(phase)
            finally:
                os.kill(setting.mongod, signal.SIGCONT)
        thawed = time.monotonic()
        drained = _drained(setting.pending, thawed)
        sending.get()
        watching.kill()
        most = max((count for _, count in pending), default=0)
        yield f"{rate}/s, frozen {phase:.0f} s: {most} waited at most, drained in {drained:.1f} s"
        steps = pending[:: max(1, len(pending) // 12)]
        yield "  waiting: " + "  ".join(f"{at:.0f} s {count}" for at, count in steps)
        if setting.mongod and not most and phase > LEAST_FREEZE_SECONDS:
            problems.append("nothing waited: was the database frozen?")
        if drained >= DRAIN_SECONDS:
            problems.append(f"not drained after {DRAIN_SECONDS:.0f} s")
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
        pushes.append(gevent.spawn(senders.single, f"device-{number % setting.size}", due))
    gevent.joinall(pushes, raise_error=True)
    times = [row.ms for row in api.rows]
    yield (
        f"{setting.size} devices: {len(pushes)} pushes, {setting.size / interval:.0f}/s, "
        f"p99 {percentile(times, 0.99):.0f} ms, {senders.retries} retries, {senders.drops} drops"
    )
    rates = [_closed_loop(senders, seconds=2.0) for _ in range(3)]
    safe = min(rates) * 200 * 0.8
    each = ", ".join(f"{one:.0f}" for one in rates)
    yield f"6 senders: {each} pushes/s; safe devices {safe:,.0f}"
    yield from _verdict(senders, [], only=50)


WORKLOADS = {run.__name__: run for run in (retail, sync, archive, fleet)}


def _closed_loop(senders: Senders, seconds: float) -> float:
    """Return the pushes a second of six senders that wait for each answer."""
    began, pushed = time.monotonic(), [0]

    def push(number: int) -> None:
        while time.monotonic() - began < seconds:
            senders.single(f"sender-{number}", keep=True)
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
        sent.append(gevent.spawn(senders.batch, f"archive-{number % 10}", macs, due))
    gevent.joinall(sent, raise_error=True)


def _watch(addresses: tuple[str, ...], into: list[tuple[float, int]], began: float) -> None:
    while True:
        into.append((time.monotonic() - began, _pending(addresses)))
        gevent.sleep(0.25)


def _pending(addresses: tuple[str, ...]) -> int:
    return sum(_queued(address) for address in addresses)


def _queued(address: str) -> int:
    answer = HTTPClient.from_url(address, network_timeout=5.0).get("/readyz")
    return int(json.loads(bytes(answer.read()))["queued"])


def _drained(addresses: tuple[str, ...], since: float) -> float:
    """Return after how many seconds nothing waits any more."""
    while time.monotonic() - since < DRAIN_SECONDS:
        if not _pending(addresses):
            break
        gevent.sleep(0.1)
    return time.monotonic() - since


def _verdict(senders: Senders, problems: list[str], only: int | None = None) -> Iterator[str]:
    """Yield PASS, or FAIL and why; `only` looks at so many staff members."""
    kept = dict(list(senders.acknowledged.items())[-only:]) if only else senders.acknowledged
    senders.acknowledged = defaultdict(int, kept)
    wrong = senders.stored()
    if senders.drops:
        problems = [*problems, f"{senders.drops} dropped"]
    if wrong:
        staff, (found, expected) = next(iter(wrong.items()))
        problems = [*problems, f"{len(wrong)} histories wrong: {staff} {found}, not {expected}"]
    yield f"FAIL: {'; '.join(problems)}" if problems else "PASS: stored is what was acknowledged"


def _when_good(verify: Callable[[Any], Any]) -> Callable[[Any], None]:
    def check(answer: Any) -> None:
        if answer.status == 200:
            verify(answer)

    return check


def _least(what: str, value: float, limit: float) -> list[str]:
    return [] if value >= limit else [f"{value:.0f} {what}, not {limit:.0f}"]


def _item(staff: str, mac: str) -> dict[str, Any]:
    now = int(time.time())
    named = {"staff_id": staff, "mac": mac, "rssi": -60}
    return named | {"timestamp": now, "event_id": uuid.uuid4().hex}


def _tag() -> str:
    return f"{random.getrandbits(48):012X}"
