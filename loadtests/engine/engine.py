"""Runs a plan against a server: preloads, sends at the plan's times, verifies, counts."""

import contextlib
import os
import signal
import time
from argparse import Namespace
from functools import partial

import gevent

from loadtests.engine import endpoints
from loadtests.engine.attempts import KEPT, Attempt, decide, judge, search
from loadtests.engine.client import Api, WrongResponse
from loadtests.engine.preload import PHONE_SECONDS, Preloader
from loadtests.engine.traffic import Traffic
from loadtests.figures import Summary
from loadtests.plans import Plan, Step, until_it_breaks
from mongo.directory import parse
from scripts.processes.cluster import DIRECTORY

SENDS = 2  # of a step, when the generator was late
RELOAD_SECONDS = 0.5
SETTLE_SECONDS = 30.0  # for a service's spool to drain after the last write


class NotEmpty(Exception):
    """The server already holds documents of the plan's staff."""


class Engine:
    """One run of one plan, as the generator's options say (options.py)."""

    def __init__(self, api: Api, plan: Plan, options: Namespace) -> None:
        self._api = api
        self._plan = plan
        self._options = options
        self.attempts: list[Attempt] = []  # of a search
        beacons = parse(DIRECTORY.read_text("utf-8").splitlines())
        most = sum(count for step in plan.steps for _, count in step.preload)
        self._preloader = Preloader(api, beacons, int(time.time()) - PHONE_SECONDS * most)
        self._traffic = Traffic(api, self._preloader)

    def run(self) -> None:
        """Run the steps in order; NotEmpty when the server is not as the plan wants it."""
        steps = [self._adjusted(step) for step in self._plan.steps]
        self._check_empty(steps)
        endless = until_it_breaks(steps, self._plan.growth)
        for step in endless if self._options.until_it_breaks else steps:
            for staff, count in step.preload:
                self._preloader.preload(staff, self._traffic.histories[staff], count)
            if self._options.only and step.name not in self._options.only.split(","):
                continue
            if self._options.p99:
                self._search(step)
                break
            figures = self._measured(step)
            print(line(step.name, figures), flush=True)
            broke = figures.broke(self._plan.mean_limit_ms) or figures.late
            if self._options.until_it_breaks and broke:
                break
        if self._plan.writes:
            self._check_stored()

    def _adjusted(self, step: Step) -> Step:
        options, shift = self._options, self._options.shift
        hacs = map(int, options.hacs.split(",")) if options.hacs else step.hacs
        return step._replace(
            staff=tuple(one + shift for one in step.staff),
            preload=tuple((one + shift, count) for one, count in step.preload),
            hacs=tuple(one + shift for one in hacs),
            pages=step.pages if options.pages < 0 else options.pages,
        )

    def _check_empty(self, steps: list[Step]) -> None:
        owners = {one for step in steps for one, _ in step.preload}
        staff = owners.union(*(step.staff + step.hacs for step in steps))
        for one in sorted(staff):
            if found := len(endpoints.newest_first(self._preloader.extract(one))):
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
                kept = decide(partial(self._attempt, rate), self._options.p99)
                threads = searching.send(kept)

    def _attempt(self, step: Step) -> Attempt:
        if self._options.gateway and self.attempts and self.attempts[-1].verdict != KEPT:
            # Its circuit may be open for 20 s, and would be what the next attempt measures.
            os.kill(self._options.gateway, signal.SIGHUP)
            gevent.sleep(RELOAD_SECONDS)
        cpu, began = time.process_time(), time.monotonic()
        figures = self._send(step)
        cpu = (time.process_time() - cpu) / (time.monotonic() - began)
        one = judge(step.threads, figures, self._options.p99, cpu)
        self.attempts.append(one)
        reason = "" if one.verdict == KEPT else f"  too much for the {one.verdict}"
        print(f"{line(step.name, figures)}  generator {cpu:.2f} cores{reason}", flush=True)
        return one

    def _measured(self, step: Step) -> Summary:
        """Send a step, again when the generator was late: others use this machine too."""
        for _ in range(SENDS - 1):
            forget = self._api.checkpoint()
            figures = self._send(step)
            if not figures.late:
                return figures
            forget()
        return self._send(step)

    def _send(self, step: Step) -> Summary:
        return self._traffic.send(self._plan.name, step, self._options.ramp)

    def _check_stored(self) -> None:
        """Compare what is stored with what was acknowledged, once the spools are empty."""
        self._api.begin(self._plan.name, "stored")
        deadline = time.monotonic() + SETTLE_SECONDS
        histories = self._traffic.histories
        for staff, history in sorted(histories.items()):
            while history.queued and self._count(staff) < history.acknowledged:
                if time.monotonic() > deadline:
                    break
                gevent.sleep(0.5)
            self._api.measure("stored", endpoints.extract(staff), history.verify)
        stored = sum(history.acknowledged for history in histories.values())
        wrong = [row.detail for row in self._api.rows if row.step == "stored" and row.error]
        right = f"exactly the {stored} acknowledged detections"
        print(f"  stored: {'; '.join(wrong) or right}", flush=True)

    def _count(self, staff: int) -> int:
        try:
            return len(endpoints.newest_first(self._preloader.extract(staff)))
        except WrongResponse:  # the last load may not be over for it yet
            return 0


def line(name: str, figures: Summary) -> str:
    """Return a step's figures for people."""
    late = f"  GENERATOR {figures.late_p99_ms:.0f} ms LATE" if figures.late else ""
    return (
        f"  {name:>6}: {figures.rate:7.1f}/s  mean {figures.mean:.1f}  p50 {figures.p50:.1f}  "
        f"p99 {figures.p99:.0f}  min {figures.min:.1f}  max {figures.max:.0f} ms  "
        f"errors {figures.errors}, verification {figures.verification_errors}{late}"
    )
