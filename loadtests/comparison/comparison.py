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
from loadtests.plans import PLANS, RAMP_SECONDS, Plan
from loadtests.sides import DURABLE, SIDES, UNOPTIMISED
from loadtests.stacks import NotStarted, Stack
from scripts.native.layout import ROOT
from scripts.processes.control_groups import Usage

DEFAULT_OUTPUT = ROOT / "load-report"
SAMPLE_SECONDS = 0.5
START_SECONDS = 5.5  # a stack and the generator; only for the estimate
FILL_SECONDS = 0.5  # 600 documents, on either side; only for the estimate
SWEEP_STEPS = 9  # until it breaks; only for the estimate
SWEEP_RAMP_SECONDS = 10.0  # at most: a sweep has many steps, and the last ones many requests
QUICK_RAMP_SECONDS = 1.5
QUICK = {
    "PERF-TP-1": "2100",
    "PERF-RT-2": "600,1800,3000",
    "SWEEP-INSERT": "",
    "SWEEP-EXTRACT": "",
}
# Forms of the old side that are run as well: the source's first query, and inserts that wait for
# the disk as the new side's do.
OTHERS = {"PERF-TP-1": DURABLE, "SWEEP-INSERT": DURABLE, "SWEEP-EXTRACT": UNOPTIMISED}
USAGE = ("seconds", "part", *Usage._fields)


class Run(NamedTuple):
    """One plan on one side."""

    repetition: int
    side: str
    plan: str

    @property
    def name(self) -> str:
        """Return the name of its files."""
        return "-".join(map(str, self))


class Playbook(NamedTuple):
    """What is run: which steps of which plans (all when empty), how long, how often."""

    plans: dict[str, str]
    ramp_seconds: float
    repetitions: int
    others: tuple[str, ...] = tuple(OTHERS)  # plans that are also run on another old side

    def runs(self) -> list[Run]:
        """Return everything in order: the sides take turns, and the one that begins changes."""
        found = []
        for repetition in range(1, self.repetitions + 1):
            for plan in self.plans:
                sides = ["old", "new", *([OTHERS[plan]] if plan in self.others else [])]
                turns = sides if repetition % 2 else sides[::-1]
                found += [Run(repetition, side, plan) for side in turns]
        return found

    def seconds(self, runs: list[Run]) -> float:
        """Estimate how long runs take."""
        return sum(START_SECONDS + self._seconds(PLANS[run.plan]) for run in runs)

    def _seconds(self, plan: Plan) -> float:
        fill = FILL_SECONDS * sum(n for step in plan.steps for _, n in step.fill) / 600
        if is_sweep(plan):
            return fill + SWEEP_STEPS * self.ramp(plan)
        steps = self.plans[plan.name].split(",") if self.plans[plan.name] else plan.steps
        return fill + len(steps) * self.ramp_seconds

    def ramp(self, plan: Plan) -> float:
        """Return how long each step of a plan is, in seconds."""
        return min(self.ramp_seconds, SWEEP_RAMP_SECONDS) if is_sweep(plan) else self.ramp_seconds


class OtherPlaybook(OSError):
    """The folder holds another comparison than the one that is to be resumed."""


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
    parser.add_argument("--resume", action="store_true", help="go on where it was interrupted")


def compare(options: argparse.Namespace) -> int:
    """Run the playbook and write the report; status 1 when answers of the new side were wrong."""
    every = {name: "" for name in PLANS if not name.startswith("CAP-")}
    book = Playbook(
        QUICK if options.quick else every,
        options.ramp or (QUICK_RAMP_SECONDS if options.quick else RAMP_SECONDS),
        options.repetitions or (2 if options.quick else 3),
        ("PERF-TP-1",) if options.quick else tuple(OTHERS),
    )
    wrong = run(book, options.output, resume=options.resume)
    print(f"\n{options.output / 'report.html'}\n{options.output / 'report.md'}")
    return wrong


def run(book: Playbook, folder: Path, *, resume: bool = False) -> int:
    """Run a playbook into a folder; return 1 when answers of the new side were wrong.

    Interrupted, it still writes the report of what was measured; `resume` goes on from there.
    """
    facts = _facts(book, folder, resume=resume)
    try:
        _all(book, folder, facts)
    except KeyboardInterrupt:
        if any(folder.glob("rows/*.csv")):
            report.write(folder)
            print(f"\nInterrupted: {folder / 'report.html'} has what was measured so far.")
            print("The same command with --resume goes on.", flush=True)
        raise
    return report.write(folder)


def _facts(book: Playbook, folder: Path, *, resume: bool) -> dict[str, Any]:
    """Make the folder, or look whether what it holds is a part of this playbook."""
    file = folder / "run.json"
    asked = json.loads(json.dumps(book))
    if resume and file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        if found.get("playbook") != asked:
            raise OtherPlaybook(f"{folder} holds another playbook: resume it with its own options")
        return found
    for kind in ("rows", "usage"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for old in (folder / kind).iterdir():
            old.unlink()
    return machine() | {
        "playbook": asked,
        "began": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "minutes": 0.0,
        "load_average": [round(os.getloadavg()[0], 1)],
        "failed": [],
        "ramp_seconds": book.ramp_seconds,
        "repetitions": book.repetitions,
    }


def _all(book: Playbook, folder: Path, facts: dict[str, Any]) -> None:
    """Run what is not there yet, and note after each run how far it is."""
    every = book.runs()
    left = [one for one in every if not (folder / "rows" / f"{one.name}.csv").exists()]
    before, began = facts["minutes"], time.monotonic()
    print(f"This takes about {book.seconds(left) / 60:.0f} minutes.", flush=True)
    while True:
        facts["minutes"] = round(before + (time.monotonic() - began) / 60, 1)
        facts["runs"] = [len(every) - len(left), len(every)]
        (folder / "run.json").write_text(json.dumps(facts, indent=1))
        if not left:
            return
        done, minutes = facts["runs"][0], book.seconds(left) / 60
        one = left.pop(0)
        print(f"[{done}/{len(every)}, {minutes:.0f} min left] {one.side}, {one.plan}", flush=True)
        if not _one(book, one, folder):
            facts["failed"].append(one.name)
            print(f"  {one.name} broke off: the report lacks it", flush=True)
        facts["load_average"].append(round(os.getloadavg()[0], 1))


def _one(book: Playbook, one: Run, folder: Path) -> bool:
    """Run a plan; its files get their names when it is through. False when it broke off."""
    plan = PLANS[one.plan]
    arguments = ["--ramp", str(book.ramp(plan)), "--only", book.plans[plan.name]]
    if is_sweep(plan):
        arguments.append("--until-it-breaks")
    rows = folder / "rows" / f"{one.name}.part"
    try:
        with SIDES[one.side]() as stack, sampled(stack) as samples:
            status = generate(stack.url, plan.name, arguments, rows=rows)
    except NotStarted as error:
        print(f"  {error}", flush=True)
        return False
    if status not in (0, 1):  # 1: some answers were wrong, which the report tells
        return False
    figures.write_csv(folder / "usage" / f"{one.name}.csv", samples, USAGE)
    rows.rename(rows.with_suffix(".csv"))
    return True


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
