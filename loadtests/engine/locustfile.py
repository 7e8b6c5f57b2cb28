"""The plans for Locust: `./scripts/load run PLAN` starts it, with `--ui` for its web page.

What people start themselves is loadtests/locustfile.py.

One Locust user is the whole load: Locust's own users wait for their responses and send less when
the server is slow (a closed loop), and these plans do not.
"""

import copy
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
from locust import User, events, task
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import Runner

from loadtests import refusals, targets
from loadtests.engine import generator
from loadtests.engine.attempts import Attempt
from loadtests.engine.client import Api, WrongResponse
from loadtests.engine.engine import Engine, NotEmpty
from loadtests.figures import STORED, Row, write_csv
from loadtests.plans import CAPACITY, PLANS
from loadtests.verdict import PASS
from loadtests.workloads import SPEEDS, WORKLOADS

LEAST_TIMEOUT_SECONDS = 10.0
FAILURES = (NotEmpty, WrongResponse, targets.ForeignTarget, targets.DeadTarget, refusals.Refused)


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _options(parser: LocustArgumentParser) -> None:
    searches = "--headless" in sys.argv  # which a form cannot begin
    plans = [name for name in PLANS if searches or not name.startswith(CAPACITY)]
    parser.add_argument("--plan", choices=plans, default="PERF-TP-1", help="what to run")
    parser.add_argument("--workload", choices=["", *WORKLOADS], default="", help="not a plan")
    generator.declare(parser, generator.PLAN | generator.WORKLOAD)
    generator.declare(parser, generator.TARGET | generator.PRIVATE, include_in_web_ui=False)


class LocustApi(Api):
    """Tells Locust of each request, for its page and its summary."""

    def __init__(self, url: str, environment: Environment, timeout_seconds: float) -> None:
        super().__init__(url, timeout_seconds)
        self._environment = environment

    def record(self, row: Row, method: str) -> None:
        """Keep a row, and have Locust count it."""
        super().record(row, method)
        self._environment.events.request.fire(  # type: ignore[no-untyped-call]
            request_type=method,
            name=row.name,
            response_time=row.ms,
            response_length=row.size,
            exception=WrongResponse(f"{row.error}: {row.detail}") if row.error else None,
            context={},
        )

    def checkpoint(self) -> Callable[[], None]:
        """Return what forgets all requests since: our rows and Locust's statistics."""
        forget_rows, stats = super().checkpoint(), self._environment.stats
        before = copy.deepcopy((stats.entries, stats.total, stats.errors), {id(stats): stats})

        def forget() -> None:
            forget_rows()
            stats.entries, stats.total, stats.errors = before

        return forget


class Load(User):
    """The plan's whole load."""

    fixed_count = 1

    @task
    def run_plan(self) -> None:
        """Run the plan once, then stop Locust (or, with its page, the test)."""
        options: Any = self.environment.parsed_options
        try:
            self.environment.process_exit_code = _run(self.environment, options)
        except FAILURES as error:
            print(error, file=sys.stderr)
            self.environment.process_exit_code = 2
        finally:  # Locust begins again any task that ends, also one that failed
            runner = self.environment.runner
            assert isinstance(runner, Runner)  # noqa: S101 - a user without a runner cannot run
            gevent.spawn(runner.quit if self.environment.web_ui is None else runner.stop)
            gevent.sleep(60)  # until it stops us


def _run(environment: Environment, options: Namespace) -> int:
    """Run a plan or a workload; return the exit status: 0 when all was right and passed."""
    host = targets.check(environment.host or "", i_own_this_host=options.i_own_this_host)
    # A p99 of 0: no search; the rest is the page's.
    refusals.check(Namespace(**vars(options) | {"p99": None}))
    if not options.workload:
        refusals.check_plan(PLANS[options.plan], options)
    targets.reach(host)
    api = LocustApi(host, environment, max(LEAST_TIMEOUT_SECONDS, options.ramp))
    engine: Engine | None = None
    try:
        if options.workload:
            return _workload(api, options)
        plan = PLANS[options.plan]
        print(f"{plan.name}: {plan.text}", flush=True)
        engine = Engine(api, plan, options)
        engine.run()
    finally:
        if options.rows:
            write_csv(Path(options.rows), api.rows, Row._fields)
        if options.attempts and engine:
            write_csv(Path(options.attempts), engine.attempts, Attempt._fields)
    searched = options.p99 > 0  # and so went beyond what is right, except in what was stored
    failed = engine.verdict is not None and engine.verdict.word != PASS
    return int(failed or any(row.error for row in api.rows if row.step == STORED or not searched))


def _workload(api: Api, options: Namespace) -> int:
    """Run a workload; its last line is its verdict."""
    verdict, run = "", WORKLOADS[options.workload]
    speed = options.speed or SPEEDS.get(options.workload, 1.0)
    print(f"{options.workload}: {(run.__doc__ or '').splitlines()[0]}")
    api.begin(options.workload, "")
    for verdict in run(api, Namespace(**vars(options) | {"speed": speed})):
        print(f"  {verdict}", flush=True)
    return int(not verdict.startswith("PASS"))
