"""./scripts/load check: do the figures agree with those of a second tool?"""

import argparse
from urllib.parse import urlencode

from loadtests import plain
from loadtests.figures import Summary, read_rows, spread, summary
from loadtests.generator import generate
from loadtests.plans import ALL_TIME, BEACON, PLANS, requests
from loadtests.stacks import New, Stack

CASES = {
    ("PERF-RT-1", "3780"): "/newbeacondetect?" + urlencode(BEACON) + "&user_address={staff}",
    ("PERF-TP-2", "860"): "/extractbeacon?" + urlencode(ALL_TIME) + "&staff_id={staff}",
}
TURNS = 5
TOLERANCE = 0.15
CLOCK_MS = 1.0  # below this a difference says more about the tools than about the server
SHOWN_ONLY = ("mean",)  # one hiccup of the machine moves it by more than that
SHIFT = 100  # staff ids of one turn


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=check)
    parser.add_argument("--ramp", type=float, default=5.0, help="seconds of each run (5)")


def check(options: argparse.Namespace) -> int:
    """Let both tools measure the same in turn; status 0 when they agree within 15 %."""
    print(f"{'':>16}{'':>12}{'Locust':>10}{'plain':>10}{'ratio':>8}")
    right = True
    for plan, step in CASES:
        with New() as stack:
            ours, theirs = _both(stack, plan, step, options.ramp)
        for figure in ("rate", "p50", "mean"):
            one, other = (
                spread([float(getattr(s, figure)) for s in side]).median for side in (ours, theirs)
            )
            near = figure != "rate" and abs(one - other) <= CLOCK_MS
            agrees = near or abs(one / other - 1) <= TOLERANCE or figure in SHOWN_ONLY
            right = right and agrees
            name = f"{plan} {step}" if figure == "rate" else ""
            verdict = "" if agrees else "  differ"
            print(f"{name:>16}{figure:>12}{one:10.2f}{other:10.2f}{one / other:8.2f}{verdict}")
    print("both tools agree" if right else f"they differ by more than {TOLERANCE:.0%}")
    return int(not right)


def _both(stack: Stack, plan: str, step: str, ramp: float) -> tuple[list[Summary], list[Summary]]:
    """Return what each tool measured, turn by turn."""
    count = requests(next(one for one in PLANS[plan].steps if one.name == step), ramp)
    kind, rows = PLANS[plan].steps[0].kind, stack.folder / "rows.csv"
    ours, theirs = [], []
    for turn in range(TURNS):
        staff = turn * SHIFT
        arguments = ["--ramp", str(ramp), "--only", step, "--pages", "0", "--shift", str(staff)]
        generate(stack.url, plan, arguments, rows=rows, quiet=True)
        ours.append(summary([row for row in read_rows(rows) if row.name == kind]))
        path = CASES[plan, step].format(staff=staff)
        theirs.append(summary(plain.run(stack.url, path, count, ramp)))
    return ours, theirs
