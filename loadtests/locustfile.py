"""The plans for Locust: `./scripts/load run PLAN` starts it, with `--ui` for its web page.

One Locust user is the whole load: Locust's own users wait for their answers and send less when the
server is slow (a closed loop), and these plans do not.
"""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import gevent
from locust import User, events, task
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import Runner

from loadtests import targets, tries
from loadtests.client import Api, WrongAnswer
from loadtests.engine import Engine, NotEmpty, Options
from loadtests.figures import Row, write_csv
from loadtests.plans import PLANS, RAMP_SECONDS
from loadtests.workloads import WORKLOADS, Setting

LEAST_TIMEOUT_SECONDS = 10.0


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _options(parser: LocustArgumentParser) -> None:
    parser.add_argument("--plan", choices=sorted(PLANS), default="PERF-TP-1", help="what to run")
    parser.add_argument("--ramp", type=float, default=RAMP_SECONDS, help="seconds (60)")
    parser.add_argument("--pages", type=int, default=-1, help="open pages (-1: as the plan says)")
    parser.add_argument("--hacs", default="", help="staff ids that HACS polls, by commas")
    parser.add_argument("--until-it-breaks", action="store_true", help="20 %% more each time")
    parser.add_argument("--shift", type=int, default=0, help="added to every staff id")
    parser.add_argument("--only", default="", help="measure only these steps, by commas")
    parser.add_argument("--p99", type=float, default=0, help="search the rate that keeps it, ms")
    parser.add_argument("--workload", choices=["", *WORKLOADS], default="", help="not a plan")
    parser.add_argument("--seconds", type=float, default=60, help="of a workload")
    parser.add_argument("--speed", type=float, default=1, help="of a workload's clocks")
    parser.add_argument("--size", type=int, default=1000, help="devices of the fleet")
    parser.add_argument("--mongod", type=int, default=0, include_in_web_ui=False)
    parser.add_argument("--gateway", type=int, default=0, include_in_web_ui=False)
    parser.add_argument("--pending", default="", include_in_web_ui=False)
    parser.add_argument("--rows", default="", help="CSV file for every request")
    parser.add_argument("--csv-waiting", default="", help="CSV file of the archive")
    parser.add_argument("--tries", default="", help="CSV file for every try of a search")
    parser.add_argument("--i-own-this-host", action="store_true", include_in_web_ui=False)


class Load(User):
    """The plan's whole load."""

    fixed_count = 1

    @task
    def run_plan(self) -> None:
        """Run the plan once, then stop Locust (or, with its page, the test)."""
        given: Any = self.environment.parsed_options
        try:
            self.environment.process_exit_code = _run(self.environment, given)
        except (NotEmpty, WrongAnswer, targets.ForeignTarget) as error:
            print(error, file=sys.stderr)
            self.environment.process_exit_code = 2
        finally:  # Locust begins again any task that ends, also one that failed
            runner = self.environment.runner
            assert isinstance(runner, Runner)  # noqa: S101 - a user without a runner cannot run
            gevent.spawn(runner.quit if self.environment.web_ui is None else runner.stop)
            gevent.sleep(60)  # until it stops us


def _run(environment: Environment, given: Namespace) -> int:
    """Run what was asked for; return the exit status: 0 only when every answer was right."""
    host = targets.check(environment.host or "", i_own_this_host=given.i_own_this_host)
    api = Api(host, environment, max(LEAST_TIMEOUT_SECONDS, given.ramp))
    options = Options(
        ramp_seconds=given.ramp,
        hacs=tuple(map(int, given.hacs.split(","))) if given.hacs else None,
        pages=given.pages if given.pages >= 0 else None,
        until_it_breaks=given.until_it_breaks,
        p99_limit_ms=given.p99,
        gateway=given.gateway,
        shift=given.shift,
        steps=tuple(filter(None, given.only.split(","))),
    )
    if given.workload:
        return _work(api, given)
    plan = PLANS[given.plan]
    print(f"{plan.name}: {plan.text}", flush=True)
    engine = Engine(api, plan, options, lambda text: print(text, flush=True))
    try:
        engine.run()
    finally:
        if given.rows:
            write_csv(Path(given.rows), api.rows, Row._fields)
        if given.tries:
            tries.write(Path(given.tries), engine.tries)
    searched = given.p99 > 0  # and so went beyond what is right, except in what was stored
    return int(any(row.error for row in api.rows if row.step == "stored" or not searched))


def _work(api: Api, given: Namespace) -> int:
    """Run a workload; its last line is its verdict."""
    pending = tuple(filter(None, given.pending.split(",")))
    setting = Setting(
        given.seconds, given.speed, given.size, given.mongod, pending, given.csv_waiting
    )
    said = ""
    print(f"{given.workload}: {(WORKLOADS[given.workload].__doc__ or '').splitlines()[0]}")
    api.begin(given.workload, "")
    for said in WORKLOADS[given.workload](api, setting):
        print(f"  {said}", flush=True)
    if given.rows:
        write_csv(Path(given.rows), api.rows, Row._fields)
    return int(not said.startswith("PASS"))
