"""./scripts/load collapse: both in a box so small that the old one bends where the source's did."""

import argparse
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

from loadtests.architectures import ARCHITECTURES, OLD
from loadtests.comparison import compare
from loadtests.comparison.playbook import Playbook
from loadtests.engine.generator import generate
from loadtests.figures import Row, read_csv, summary
from loadtests.plans import PLANS, RAMP_SECONDS
from loadtests.report.published import BEFORE, published
from loadtests.stack import in_box

PLAN, BEND = "PERF-RT-2", "1800"  # the first step at which the source's did not keep up
FIRST_CORES, MOST_ATTEMPTS = 0.4, 12
NEAR, KEPT_UP = 0.05, 0.95  # of the source's rate; of the arrivals
SEARCH_RAMP_SECONDS = 20.0  # at most


class NoLimit(OSError):
    """No limit was found at which the old one bends there."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=collapse)
    parser.add_argument("--cores", type=float, help="of the box; without it they are searched")
    parser.add_argument("--ramp", type=float, default=RAMP_SECONDS, help="seconds a step (60)")
    parser.add_argument("--repetitions", type=int, default=1, help="how often each runs (1)")
    output = compare.DEFAULT_OUTPUT.with_name("load-collapse")
    parser.add_argument("--output", type=Path, default=output, help=f"folder ({output.name})")


def collapse(options: argparse.Namespace) -> int:
    """Find the limit of CPU, then compare inside it; status 1 when the new one was wrong."""
    ramp = min(options.ramp, SEARCH_RAMP_SECONDS)
    cores = options.cores or search(lambda cores: _rate(cores, ramp))
    book = Playbook({PLAN: ""}, options.ramp, options.repetitions, (), box_cores=cores)
    wrong = compare.run(book, options.output)
    print(f"\n{options.output / 'plots' / f'{PLAN.lower()}.svg'}: theirs and ours, {cores:.2f} CPU")
    return wrong


def search(rate_at: Callable[[float], float]) -> float:
    """Return the cores at which what is asked answers at the source's rate. Raises NoLimit."""
    wanted = float(published(BEFORE)[PLAN, BEND].rate)
    arrivals = next(step for step in PLANS[PLAN].steps if step.name == BEND).threads / RAMP_SECONDS
    cores, low, high = FIRST_CORES, 0.0, math.inf
    for _ in range(MOST_ATTEMPTS):
        rate = rate_at(cores)
        print(f"  {cores:.3f} CPU: {rate:.1f}/s of {arrivals:.1f}/s, theirs {wanted}/s", flush=True)
        if abs(rate / wanted - 1) <= NEAR:
            return cores
        low, high = (cores, high) if rate < wanted else (low, cores)
        cores *= wanted / rate
        # What keeps up may be able to do more, which says nothing of where it bends.
        if rate >= KEPT_UP * arrivals or not low < cores < high:
            cores = (low + high) / 2
    raise NoLimit(f"after {MOST_ATTEMPTS} limits the old one does not bend at {wanted}/s: again?")


def _rate(cores: float, ramp: float) -> float:
    """Return how many extracts a second the old one answers inside so many cores."""
    stack = ARCHITECTURES[OLD](limited=False)
    with tempfile.TemporaryDirectory() as folder, in_box(stack, cores):
        file = Path(folder) / "rows.csv"
        how = {"ramp": ramp, "only": BEND, "rows": file}
        generate(stack.url, PLAN, how, quiet=True)
        return summary([row for row in read_csv(file, Row) if row.name == "extract"]).rate
