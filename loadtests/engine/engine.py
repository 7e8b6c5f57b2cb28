"""Runs a plan against a server: preloads, sends at the plan's times, verifies, counts."""

import time
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

import gevent

from loadtests import targets
from loadtests.engine import endpoints, pages
from loadtests.engine.attempts import Attempt, find_highest
from loadtests.engine.client import Api, WrongResponse
from loadtests.engine.endpoints import History
from loadtests.engine.pace import open_loop, periodic
from loadtests.engine.preload import PHONE_SECONDS, Preloader
from loadtests.figures import STORED, Summary, summary
from loadtests.plans import PAGE, Plan, Step, jmeter_delay, requests, until_it_breaks
from loadtests.verdict import Verdict, judge

HACS_SECONDS = 10.0  # between two polls
PAGES_SECONDS = 30.0  # until all are open
SETTLE_SECONDS = 30.0  # for a service's spool to drain after the last write


class NotEmpty(Exception):
    """The server already holds documents of the plan's staff."""


class Engine:
    """One run of one plan, as the generator's options say (generator.py)."""

    def __init__(self, api: Api, plan: Plan, options: Namespace) -> None:
        self._api = api
        self._plan = plan
        self._options = options
        self.attempts: list[Attempt] = []  # of a search
        self.verdict: Verdict | None = None  # of a plan of the source, at its end
        documents = Counter[int]()
        for step in plan.steps:
            for staff, count in step.preload:
                documents[staff] += count
        most = max(documents.values(), default=0)  # each history begins then
        oldest = int(time.time()) - PHONE_SECONDS * most
        self._preloader = Preloader(api, oldest, options.slower)
        self._histories: dict[int, History] = defaultdict(History)
        self._page_reads: Mapping[str, float] = {}  # what an open page of this server reads

    def run(self) -> None:
        """Run the steps in order; NotEmpty when the server is not as the plan wants it."""
        steps = [self._adjusted(step) for step in self._plan.steps]
        self._check_empty(steps)
        # Asked once, and not while a step has begun: its first requests would be late.
        self._page_reads = pages.reads_of(self._api)
        only = {name.strip() for name in self._options.only.split(",") if name}
        measured: dict[str, list[Summary]] = {}
        is_endless = self._options.until_it_breaks or self._plan.is_sweep
        for step in until_it_breaks(steps, self._plan.growth) if is_endless else steps:
            for staff, count in step.preload:
                self._preloader.preload(staff, self._histories[staff], count)
            if only and step.name not in only:
                continue
            if limit := self._options.p99:
                find_highest(step, self._send, limit, self._options.gateway, self.attempts)
                break
            figures = self._measured(step)
            measured[step.name] = [figures]
            print(figures.line(step.name), flush=True)
            broke = figures.broke(self._plan.mean_limit_ms) or figures.late
            if is_endless and broke:
                break
        lost = self._plan.writes and self._lost()
        if self._plan.is_the_sources:
            own = {step.name: measured[step.name] for step in steps if step.name in measured}
            self.verdict = judge(self._plan, own, lost=lost)
            print(f"  {self.verdict}", flush=True)

    def _adjusted(self, step: Step) -> Step:
        options, shift = self._options, self._options.shift
        hacs = map(int, options.hacs.split(",")) if options.hacs else step.hacs
        return step._replace(
            staff=tuple(staff + shift for staff in step.staff),
            preload=tuple((staff + shift, count) for staff, count in step.preload),
            hacs=tuple(staff + shift for staff in hacs),
            pages=step.pages if options.pages < 0 else options.pages,
        )

    def _check_empty(self, steps: list[Step]) -> None:
        owners = {owner for step in steps for owner, _ in step.preload}
        staff = owners.union(*(step.staff + step.hacs for step in steps))
        for owner in sorted(staff):
            if count := len(endpoints.newest_first(self._preloader.extract(owner))):
                raise NotEmpty(
                    f"staff {owner} has {count} documents there already, and the plan counts them: "
                    "run it on an empty stack (without --target it starts one)"
                )

    def _measured(self, step: Step) -> Summary:
        """Send a step, once again when the generator was late: others use this machine too."""
        forget = self._api.checkpoint()
        figures = self._send(step)
        if not figures.late:
            return figures
        forget()
        return self._send(step)

    def _send(self, step: Step) -> Summary:
        """Send at the step's times; return the figures of its requests without the companions'."""
        first, options = len(self._api.rows), self._options
        count, ramp = requests(step, options.ramp / options.slower), options.ramp
        if options.as_jmeter:
            ramp = count * jmeter_delay(step, options.slower)
        began = self._api.begin(self._plan.name, step.name)
        pollers = self._companions(step)
        open_loop(count, ramp, partial(self._send_one, step), began)
        gevent.killall(pollers)
        return summary([row for row in self._api.rows[first:] if row.name == step.kind])

    def _companions(self, step: Step) -> list[Any]:
        """Start what runs beside a step until it is killed: the mock HACS and open pages."""
        greenlets, began = [], self._api.began
        for staff in step.hacs:
            poll = partial(
                self._histories[staff].read_live, self._api, "hacs", staff, pages.HEADERS
            )
            greenlets.append(gevent.spawn(periodic, HACS_SECONDS, began, poll))
        opened_in = min(PAGES_SECONDS, self._options.ramp)  # one after the other, as people do
        reads = self._page_reads
        return greenlets + pages.open_pages(self._api, reads, step.pages, began, opened_in)

    def _send_one(self, step: Step, number: int, due: float) -> None:
        staff = step.staff[number % len(step.staff)]
        history, body, good = self._histories[staff], None, targets.STORED
        if step.kind == PAGE:
            people = next(iter(self._page_reads))
            pages.Source(self._api, people).read(step.kind, due)
            return
        if step.kind == "extract":
            self._api.measure("extract", endpoints.extract(staff), history.verify, due=due)
            return
        if step.kind == "batch":
            path, body = endpoints.BATCH, self._preloader.batch(staff, step.batch)
            verify = partial(endpoints.verify_batch, size=step.batch)
        else:
            path, verify = endpoints.insert_now(staff), partial(endpoints.verify_insert)
        history.sent += step.batch
        response = self._api.measure(step.kind, path, verify, body, due=due, good=good)
        history.count(response, step.batch)

    def _lost(self) -> bool:
        """Tell whether what is stored is not what was acknowledged, once the spools are empty."""
        self._api.begin(self._plan.name, STORED)
        deadline = time.monotonic() + SETTLE_SECONDS
        histories = self._histories
        for staff, history in sorted(histories.items()):
            while history.queued and self._count(staff) < history.acknowledged:
                if time.monotonic() > deadline:
                    break
                gevent.sleep(0.5)
            self._api.measure(STORED, endpoints.extract(staff), history.verify)
        stored = sum(history.acknowledged for history in histories.values())
        wrong = [row.detail for row in self._api.rows if row.step == STORED and row.error]
        right = f"exactly the {stored} acknowledged detections"
        print(f"  stored: {'; '.join(wrong) or right}", flush=True)
        return bool(wrong)

    def _count(self, staff: int) -> int:
        try:
            return len(endpoints.newest_first(self._preloader.extract(staff)))
        except WrongResponse:  # the last load may not be over for it yet
            return 0
