"""./scripts/load compare: both architectures in turn under the same limits, again and again."""

import argparse
import json
import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from loadtests import figures, report
from loadtests.generator import generate
from loadtests.limits import Usage
from loadtests.plans import PLANS, RAMP_SECONDS, Plan
from loadtests.stacks import New, Old, Stack
from scripts.native.layout import ROOT

DEFAULT_OUTPUT = ROOT / "load-report"
SAMPLE_SECONDS = 0.5
START_SECONDS = 5.0  # a stack and the generator; only for the estimate
SWEEP_STEPS = 9  # until it breaks; only for the estimate
SWEEP_RAMP_SECONDS = 15.0  # at most: a sweep has many steps, and the last ones many requests
QUICK_RAMP_SECONDS = 1.5
QUICK = {
    "PERF-TP-1": "2100",
    "PERF-RT-2": "600,1800,3000",
    "SWEEP-INSERT": "",
    "SWEEP-EXTRACT": "",
}
USAGE = ("repetition", "side", "plan", "seconds", "part", *Usage._fields)


class Playbook(NamedTuple):
    """What is run: which steps of which plans (all when empty), how long, how often."""

    plans: dict[str, str]
    ramp_seconds: float
    repetitions: int

    def seconds(self) -> float:
        """Estimate how long it takes."""
        return 2 * self.repetitions * sum(START_SECONDS + self._seconds(n) for n in self.plans)

    def _seconds(self, name: str) -> float:
        if is_sweep(PLANS[name]):
            return SWEEP_STEPS * self.ramp(PLANS[name])
        steps = self.plans[name].split(",") if self.plans[name] else PLANS[name].steps
        return len(steps) * self.ramp_seconds

    def ramp(self, plan: Plan) -> float:
        """Return how long each step of a plan is, in seconds."""
        return min(self.ramp_seconds, SWEEP_RAMP_SECONDS) if is_sweep(plan) else self.ramp_seconds


def is_sweep(plan: Plan) -> bool:
    """Tell whether a plan is run until it breaks."""
    return plan.name.startswith("SWEEP")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=compare)
    parser.add_argument("--quick", action="store_true", help="under 5 minutes, the main steps only")
    parser.add_argument("--ramp", type=float, help="seconds of each step (60; quick: 1.5)")
    parser.add_argument("--repetitions", type=int, help="how often each side runs (3; quick: 2)")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="folder (load-report)")


def compare(options: argparse.Namespace) -> int:
    """Run the playbook and write the report; status 1 when answers of the new side were wrong."""
    every = {name: "" for name in PLANS if not name.startswith("CAP-")}
    book = Playbook(
        QUICK if options.quick else every,
        options.ramp or (QUICK_RAMP_SECONDS if options.quick else RAMP_SECONDS),
        options.repetitions or (2 if options.quick else 3),
    )
    print(f"This takes about {book.seconds() / 60:.0f} minutes.", flush=True)
    wrong = run(book, options.output)
    print(f"\n{options.output / 'report.html'}\n{options.output / 'report.md'}")
    return wrong


def run(book: Playbook, folder: Path) -> int:
    """Run a playbook into a folder; return 1 when answers of the new side were wrong."""
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    for old in folder.glob("rows/*.csv"):
        old.unlink()
    began, load_before = time.time(), os.getloadavg()
    usage = list(_all(book, folder))
    figures.write_csv(folder / "usage.csv", usage, USAGE)
    facts = machine() | {
        "began": datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "minutes": round((time.time() - began) / 60, 1),
        "load average before and after": [round(load_before[0], 1), round(os.getloadavg()[0], 1)],
        "ramp_seconds": book.ramp_seconds,
        "repetitions": book.repetitions,
    }
    (folder / "run.json").write_text(json.dumps(facts, indent=1))
    return report.write(folder)


def _all(book: Playbook, folder: Path) -> Iterator[tuple[object, ...]]:
    """Run everything; the sides take turns, and the one that begins changes."""
    began, done, runs = time.monotonic(), 0, 2 * book.repetitions * len(book.plans)
    for repetition in range(1, book.repetitions + 1):
        sides: list[type[Stack]] = [Old, New] if repetition % 2 else [New, Old]
        for name in book.plans:
            for side in sides:
                minutes = (time.monotonic() - began) / 60
                print(f"[{done}/{runs}, {minutes:.1f} min] {side.name}, {name}", flush=True)
                for row in _one(book, PLANS[name], side, folder / "rows", repetition):
                    yield (repetition, side.name, name, *row)
                done += 1


def _one(
    book: Playbook, plan: Plan, side: type[Stack], folder: Path, repetition: int
) -> list[tuple[object, ...]]:
    arguments = ["--ramp", str(book.ramp(plan)), "--only", book.plans[plan.name]]
    if is_sweep(plan):
        arguments.append("--until-it-breaks")
    with side() as stack, sampled(stack) as samples:
        rows = folder / f"{repetition}-{side.name}-{plan.name}.csv"
        generate(stack.url, plan.name, arguments, rows=rows)
    return samples


@contextmanager
def sampled(stack: Stack) -> Iterator[list[tuple[object, ...]]]:
    """Yield a list that grows by what each part uses, twice a second."""
    samples: list[tuple[object, ...]] = []
    ended = threading.Event()
    began = time.monotonic()

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            now = round(time.monotonic() - began, 2)
            samples.extend((now, name, *used) for name, used in stack.usage().items())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()


def machine() -> dict[str, Any]:
    """Return what was measured on."""
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    memory = Path("/proc/meminfo").read_text().split()[1]
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "processor": cpus[0].split(":")[1].strip() if cpus else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory) / 2**20, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip() or "unknown",
    }
