"""./scripts/load capacity: the highest arrival rate that one and two services keep up with."""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from loadtests import refusals
from loadtests.architectures import ARCHITECTURES, NEW
from loadtests.comparison.compare import DEFAULT_OUTPUT
from loadtests.engine.attempts import STACK, Attempt, capacity_of
from loadtests.engine.generator import generate
from loadtests.figures import read_csv, write_csv
from loadtests.plans import PLANS
from loadtests.report.document import TEXTS, table

PROBLEMS = {0: "", 1: "LOST"}  # by the generator's status


class Result(NamedTuple):
    """One line of capacity.csv."""

    architecture: str
    services: int
    plan: str
    what: str
    rate: float  # arrivals/s
    per_request: int  # detections or documents of one
    p99_ms: float
    limit: str
    problem: str  # what makes the rate void

    def shown(self) -> str:
        """Return the rate as a cell of the table."""
        mark = "" if self.limit in (STACK, "") else f" ({self.limit[0]})"
        text = (">= " if mark else "") + f"{self.rate:,.0f}/s{mark}"
        return f"{text} {self.problem}".strip()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=capacity)
    parser.add_argument("--p99", type=float, default=500.0, help="limit in ms (500)")
    parser.add_argument("--ramp", type=float, default=2.0, help="seconds of each attempt (2)")
    parser.add_argument("--services", type=int, nargs="+", default=[1, 2], help="how many (1 2)")
    cores = "what each service may use, in cores (0.3)"
    parser.add_argument("--service-cores", type=float, help=cores)
    cores = "what each server of the database may use (all)"
    parser.add_argument("--database-cores", type=float, help=cores)
    parser.add_argument("--only", default="", help="such as INSERT,EXTRACT-3000")
    sides = "as new old (new)"
    parser.add_argument("--side", nargs="+", default=[NEW], choices=ARCHITECTURES, help=sides)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="folder (load-report)")


def capacity(options: argparse.Namespace) -> int:
    """Search and print a table; status 1 when something was lost or a log tells of an exception."""
    wanted = refusals.searches(options.only)
    options.output.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    try:
        for name in wanted:
            for side in options.side:
                if side == NEW or "BATCH" not in name:  # the old architecture took no batches
                    results += [_search(options, name, side, n) for n in options.services]
    finally:  # also of what was found before Ctrl-C
        write_csv(options.output / "capacity.csv", results, Result._fields)
        text = _table(results, options)
        (options.output / "capacity.md").write_text(text)
        print(f"\n{text}")
    return int(any(result.problem for result in results))


def _search(options: argparse.Namespace, name: str, architecture: str, services: int) -> Result:
    plan = PLANS[name]
    print(f"{architecture}, {services} services, {plan.text}", flush=True)
    file = options.output / f"capacity-{architecture}-{services}-{name}.csv"
    write_csv(file, [], Attempt._fields)
    cores = {name: getattr(options, name) for name in ("service_cores", "database_cores")}
    with ARCHITECTURES[architecture](services=services, **cores) as stack:
        how = {"ramp": options.ramp, "p99": options.p99, "gateway": stack.pid("gateway")}
        status = generate(stack.url, name, how | {"attempts": file})
        problems = [PROBLEMS.get(status, "FAILED"), *stack.exceptions()]
    step = plan.steps[0]
    per_request = (
        step.batch if step.kind == "batch" else sum(count for _, count in step.preload) or 1
    )
    rate, p99, limit = capacity_of(read_csv(file, Attempt), options.p99)
    problem = ", ".join(filter(None, problems))
    return Result(architecture, services, name, plan.text, rate, per_request, p99, limit, problem)


def _table(results: Sequence[Result], options: argparse.Namespace) -> str:
    columns = list(product(options.side, options.services))
    cells = {
        (result.what, result.architecture, result.services): result.shown() for result in results
    }
    heads = [f"{side}, {n} service{'s' * (n > 1)}" for side, n in columns]
    whats = dict.fromkeys(result.what for result in results)
    rows = [[what, *(cells.get((what, *column), "") for column in columns)] for what in whats]
    return f"{table([f'p99 <= {options.p99:.0f} ms', *heads], rows)}\n\n{TEXTS['capacity']}\n"
