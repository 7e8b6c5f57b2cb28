"""Runs a plan against a server: fills, sends at the plan's times, verifies, counts."""

import contextlib
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import gevent

from loadtests import beside, histories
from loadtests.client import Api, WrongAnswer, query
from loadtests.figures import LATE_MS, Summary, summary
from loadtests.filling import DIRECTORY, PHONE_SECONDS, Filler
from loadtests.histories import History, newest_first
from loadtests.plans import (
    ALL_TIME,
    BEACON,
    RAMP_SECONDS,
    Plan,
    Step,
    requests,
    search,
    until_it_breaks,
)
from loadtests.tries import KEPT, Try, decide, judge
from mongo.directory import parse

TRIES = 2
RELOAD_SECONDS = 0.5
SETTLE_SECONDS = 30.0  # for a service's spool to drain after the last write


class Options(NamedTuple):
    """How a plan is run."""

    ramp_seconds: float = RAMP_SECONDS
    hacs: tuple[int, ...] | None = None  # instead of the plan's
    pages: int | None = None  # instead of the plan's
    until_it_breaks: bool = False
    steps: tuple[str, ...] = ()  # measure only these; all when empty
    p99_limit_ms: float = 0.0  # search the rate that just keeps it, beginning with the first step
    gateway: int = 0  # its process, which forgets its circuits between a search's tries; 0: none
    shift: int = 0  # added to every staff id, for a stack that has seen the plan's own


class NotEmpty(Exception):
    """The server already holds documents of the plan's staff."""


class Engine:
    """One run of one plan."""

    def __init__(self, api: Api, plan: Plan, options: Options, say: Callable[[str], None]) -> None:
        self._api = api
        self._plan = plan
        self._options = options
        self._say = say
        self.tries: list[Try] = []  # of a search
        self._histories: dict[int, History] = defaultdict(History)
        beacons = parse(DIRECTORY.read_text("utf-8").splitlines())
        most = sum(count for step in plan.steps for _, count in step.fill)
        self._filler = Filler(api, beacons, int(time.time()) - PHONE_SECONDS * most)

    def run(self) -> None:
        """Run the steps in order; NotEmpty when the server is not as the plan wants it."""
        steps = [self._adjusted(step) for step in self._plan.steps]
        self._check_empty({one for step in steps for one in _owners(step)})
        endless = until_it_breaks(steps, self._plan.growth)
        for step in endless if self._options.until_it_breaks else steps:
            for staff, count in step.fill:
                self._filler.fill(staff, self._histories[staff], count)
            if self._options.steps and step.name not in self._options.steps:
                continue
            if self._options.p99_limit_ms:
                self._search(step)
                break
            figures = self._measured(step)
            self._say(line(step.name, figures))
            if self._options.until_it_breaks and self._broke(figures):
                break
        if self._plan.writes:
            self._check_stored()

    def _adjusted(self, step: Step) -> Step:
        hacs, pages, shift = self._options.hacs, self._options.pages, self._options.shift
        return step._replace(
            staff=tuple(one + shift for one in step.staff),
            fill=tuple((one + shift, count) for one, count in step.fill),
            hacs=tuple(one + shift for one in (step.hacs if hacs is None else hacs)),
            pages=step.pages if pages is None else pages,
        )

    def _check_empty(self, staff: set[int]) -> None:
        for one in sorted(staff):
            if found := len(newest_first(self._filler.extract(one))):
                raise NotEmpty(
                    f"staff {one} has {found} documents there already, and the plan counts them: "
                    "run it on an empty stack (without --target it starts one)"
                )

    def _search(self, step: Step) -> None:
        """Find the highest arrival rate that keeps the limit without an error."""
        searching = search(step.threads)
        threads = next(searching)
        with contextlib.suppress(StopIteration):
            while True:
                rate = step._replace(name=str(threads), threads=threads)
                limit = self._options.p99_limit_ms
                threads = searching.send(decide(partial(self._try, rate), limit))

    def _try(self, step: Step) -> Try:
        if self._options.gateway and self.tries and self.tries[-1].verdict != KEPT:
            # Its circuit may be open for 20 s, and would be what the next try measures.
            os.kill(self._options.gateway, signal.SIGHUP)
            gevent.sleep(RELOAD_SECONDS)
        cpu, began = time.process_time(), time.monotonic()
        figures = self._step(step)
        cpu = (time.process_time() - cpu) / (time.monotonic() - began)
        one = judge(step.threads, figures, self._options.p99_limit_ms, cpu)
        self.tries.append(one)
        said = "" if one.verdict == KEPT else f"  too much for the {one.verdict}"
        self._say(line(step.name, figures) + f"  generator {cpu:.2f} cores{said}")
        return one

    def _measured(self, step: Step) -> Summary:
        """Run a step, again when the generator was late: others use this machine too."""
        for _ in range(TRIES - 1):
            first = len(self._api.rows)
            figures = self._step(step)
            if figures.late_p99_ms <= LATE_MS:
                return figures
            del self._api.rows[first:]
        return self._step(step)

    def _step(self, step: Step) -> Summary:
        """Send at the step's times; return the figures of its requests, not of those beside."""
        ramp = self._options.ramp_seconds
        count = requests(step, ramp)
        began = self._api.begin(self._plan.name, step.name)
        first = len(self._api.rows)
        pollers = beside.start(self._api, self._histories, step.hacs, step.pages)
        sent = []
        for number in range(count):
            due = began + number * ramp / count
            gevent.sleep(max(0.0, due - time.monotonic()))
            sent.append(gevent.spawn(self._send, step, number, due))
        gevent.joinall(sent, raise_error=True)
        gevent.killall(pollers)
        return summary([row for row in self._api.rows[first:] if row.name == step.kind])

    def _send(self, step: Step, number: int, due: float) -> None:
        staff = step.staff[number % len(step.staff)]
        if step.kind == "insert":
            self._insert(staff, due)
        elif step.kind == "batch":
            self._batch(staff, due, step.batch)
        else:
            path = query("/extractbeacon", staff_id=staff, **ALL_TIME)
            self._api.ask("extract", path, self._histories[staff].verify, due=due)

    def _insert(self, staff: int, due: float) -> None:
        history = self._histories[staff]
        path = query("/newbeacondetect", user_address=staff, **BEACON)
        history.sent += 1
        verify = histories.verify_added
        answer = self._api.ask("insert", path, verify, due=due, good=(200, 202))
        history.count(answer, 1)

    def _batch(self, staff: int, due: float, size: int) -> None:
        history = self._histories[staff]
        body = self._filler.batch(staff, size)
        history.sent += size
        verify = partial(histories.verify_batch, size=size)
        answer = self._api.ask(
            "batch", "/api/v1/detections", verify, body, due=due, good=(200, 202)
        )
        history.count(answer, size)

    def _broke(self, figures: Summary) -> bool:
        return figures.broke(self._plan.mean_limit_ms) or figures.late_p99_ms > LATE_MS

    def _check_stored(self) -> None:
        """Compare what is stored with what was acknowledged, once the spools are empty."""
        self._api.begin(self._plan.name, "stored")
        deadline = time.monotonic() + SETTLE_SECONDS
        for staff, history in sorted(self._histories.items()):
            path = query("/extractbeacon", staff_id=staff, **ALL_TIME)
            while history.queued and self._count(staff) < history.acknowledged:
                if time.monotonic() > deadline:
                    break
                gevent.sleep(0.5)
            self._api.ask("stored", path, history.verify)
        stored = sum(history.acknowledged for history in self._histories.values())
        wrong = [row.detail for row in self._api.rows if row.step == "stored" and row.error]
        right = f"exactly the {stored} acknowledged detections"
        self._say(f"  stored: {'; '.join(wrong) or right}")

    def _count(self, staff: int) -> int:
        try:
            return len(newest_first(self._filler.extract(staff)))
        except WrongAnswer:  # the last load may not be over for it yet
            return 0


def _owners(step: Step) -> Iterable[int]:
    return (*step.staff, *(owner for owner, _ in step.fill), *step.hacs)


def line(name: str, figures: Summary) -> str:
    """Return a step's figures for people."""
    return (
        f"  {name:>6}: {figures.rate:7.1f}/s  mean {figures.mean:.1f}  p50 {figures.p50:.1f}  "
        f"p99 {figures.p99:.0f}  min {figures.min:.1f}  max {figures.max:.0f} ms  "
        f"errors {figures.errors}, verification {figures.verification_errors}"
        + (
            f"  GENERATOR {figures.late_p99_ms:.0f} ms LATE"
            if figures.late_p99_ms > LATE_MS
            else ""
        )
    )
