"""./scripts/load headroom: every case in turn on one stack, which is not restarted between them."""

import argparse
import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadtests import refusals
from loadtests.comparison.compare import DEFAULT_OUTPUT, machine
from loadtests.headroom.cases import AS_FAST, CASES, Case
from loadtests.headroom.results import COLUMNS, Result, cells, part_problems, stored_problems
from loadtests.headroom.site import Site
from loadtests.headroom.stack import LIMITS, LimitedStack
from loadtests.headroom.watch import Watch
from loadtests.report.document import line, table

SECONDS, QUICK_SECONDS = 20.0, 6.0
WARM_UP_SHARE = 0.5  # as long again, before; at most until the window of the last minutes is full:
WARM_UP_SECONDS = 900.0
FILE = "headroom.json"

Runs = dict[str, list[Result]]  # by case


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=headroom)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help="parts of their names; all without"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SECONDS:.0f} s each")
    parser.add_argument("--minutes", type=float, help=f"of each case ({SECONDS:.0f} seconds)")
    parser.add_argument("--rounds", type=int, default=1, help="how often each case runs (1)")
    parser.add_argument("--tokens", action="store_true", help="the stack requires them")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="folder (load-report)")


def headroom(options: argparse.Namespace) -> int:
    """Run the cases, print a line of each, keep a file; status 1 when one is not good."""
    chosen = [case for case in CASES if refusals.is_named(case.name, options.cases)]
    refusals.check_cases(chosen, options.cases)
    seconds = 60 * options.minutes if options.minutes else SECONDS
    if options.quick:
        seconds = QUICK_SECONDS
    if options.tokens:
        _require_tokens()
    runs: Runs = {}
    facts = machine() | {
        "began": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": seconds,
        "tokens": bool(options.tokens),
        "limits_mib": {name: (limit.memory_bytes or 0) >> 20 for name, limit in LIMITS.items()},
        "load_average": [],
    }
    print(f"MiB of {', '.join(f'{n} {mib}' for n, mib in facts['limits_mib'].items())}, in turn.")
    print(table(COLUMNS, []), flush=True)
    with LimitedStack() as stack:
        for number, case in enumerate(chosen, start=1):
            for again in range(options.rounds):
                _progress(number, len(chosen), again, case, (1.5 * seconds + 8) * options.rounds)
                runs.setdefault(case.name, []).append(run(stack, case, seconds, runs))
                facts["load_average"].append(round(os.getloadavg()[0], 1))
                _keep(options.output / FILE, facts, runs)
            print(line(cells(case.name, runs[case.name])), flush=True)
    bad = [name for name, results in runs.items() if any(result.problems for result in results)]
    print(f"\n{len(runs) - len(bad)} of {len(runs)} cases are good: {options.output / FILE}")
    return 1 if bad else 0


def run(
    stack: LimitedStack, case: Case, seconds: float, earlier: Mapping[str, Sequence[Result]]
) -> Result:
    """Run a case on a stack as the last one left it, with a warm-up."""
    stack.mend()
    stack.close_circuits()
    site = Site(stack, stack.mongodb_uri)
    try:
        with case.seed(site) if case.seed else nullcontext():
            with Watch(stack.groups(), stack.limits) as watch:
                case.load(site, min(WARM_UP_SHARE * seconds, WARM_UP_SECONDS))
                before, began = site.ledger.acknowledged, time.monotonic()
                watch.warm()
                case.load(site, seconds)
                rate = (site.ledger.acknowledged - before) / (time.monotonic() - began)
            parts = watch.parts()
        stored = site.ledger.compare(stack.mongodb_uri)
    finally:
        site.ledger.forget(stack.mongodb_uri)
        site.close()
    problems = [*part_problems(parts), *stored_problems(stored), *site.answers.problems(case.rules)]
    problems += stack.exceptions()
    other = earlier.get(case.as_fast_as)
    if other and rate < (least := AS_FAST * other[-1].per_second):
        problems.append(f"{rate:,.0f}/s stored, not {least:,.0f}")
    return Result(
        parts, stored, site.answers.shown(), site.answers.figures(), rate, tuple(problems)
    )


def _require_tokens() -> None:
    """Have the stack require tokens, and what is sent show one that may do everything."""
    secret = secrets.token_urlsafe(32)
    os.environ["WAYMARK_TOKEN"] = secret
    os.environ["WAYMARK_ACCESS"] = "required"
    os.environ["WAYMARK_ADMIN_TOKEN_SHA256"] = hashlib.sha256(secret.encode()).hexdigest()


def _progress(number: int, count: int, again: int, case: Case, seconds_each: float) -> None:
    """Tell on the error output what runs, so that the table stays one."""
    left = (count - number + 1) * seconds_each / 60
    text = f"[{number}/{count}, about {left:.0f} min left] {case.name}"
    print(text + f", round {again + 1}" * bool(again), file=sys.stderr, flush=True)


def _keep(file: Path, facts: Mapping[str, Any], runs: Runs) -> None:
    """Write what is known so far, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    cases = {name: [result.as_file() for result in results] for name, results in runs.items()}
    new = file.with_suffix(".new")
    new.write_text(json.dumps({**facts, "cases": cases}, indent=1))
    new.replace(file)
