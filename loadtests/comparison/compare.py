"""Runs a playbook into a folder of CSV files, of which the report is made."""

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadtests.architectures import ARCHITECTURES, MOST_SHARDS
from loadtests.comparison.playbook import Playbook, Run
from loadtests.engine.generator import generate
from loadtests.figures import write_csv
from loadtests.plans import PLANS
from loadtests.report import report
from loadtests.report.first_page import verdict_table
from loadtests.report.results import Results
from loadtests.stack import Sample, Stack, in_box
from scripts.processes import ROOT
from scripts.processes.process import NotHealthyError

DEFAULT_OUTPUT = ROOT / "load-report"


class OtherPlaybook(OSError):
    """The folder holds another comparison than the one that is to be resumed."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=compare)
    parser.add_argument("--quick", action="store_true", help="under 5 minutes, the main steps only")
    parser.add_argument("--ramp", type=float, help="seconds of each step (60; quick: 1.5)")
    parser.add_argument("--repetitions", type=int, help="how often each runs (3; quick: 2)")
    many = f"numbers of shards, as 1,2,3,{MOST_SHARDS}: sides with so many, and with one mongod"
    parser.add_argument("--sharded", type=shards, default=(), metavar="N,N", help=many)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="folder (load-report)")
    parser.add_argument("--resume", action="store_true", help="go on where it was interrupted")


def shards(text: str) -> tuple[int, ...]:
    """Return numbers of shards, each once; ArgumentTypeError where one cannot be had."""
    numbers = [int(word) if word.strip().isdecimal() else 0 for word in text.split(",")]
    if not all(1 <= number <= MOST_SHARDS for number in numbers):
        raise argparse.ArgumentTypeError(f"{text}: give numbers from 1 to {MOST_SHARDS}, by commas")
    return tuple(sorted(set(numbers)))


def compare(options: argparse.Namespace) -> int:
    """Run the playbook and write the report; status 1 when the new one failed in a plan."""
    how = {"quick": options.quick, "ramp": options.ramp, "repetitions": options.repetitions}
    book = Playbook.chosen(**how, shards=options.sharded)
    wrong = run(book, options.output, resume=options.resume)
    print(f"\n{verdict_table(Results(options.output))}")
    print(f"\n{report.files(options.output)}")
    return wrong


def run(book: Playbook, folder: Path, *, resume: bool = False) -> int:
    """Run a playbook into a folder; return 1 when the new architecture failed in a plan.

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
    playbook = json.loads(json.dumps(book))
    if resume and file.exists():
        facts: dict[str, Any] = json.loads(file.read_text())
        if facts.get("playbook") != playbook:
            raise OtherPlaybook(f"{folder} holds another playbook: resume it with its own options")
        return facts
    for kind in ("rows", "usage"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for old in (folder / kind).iterdir():
            old.unlink()
    return machine() | {
        "playbook": playbook,
        "began": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "minutes": 0.0,
        "load_average": [round(os.getloadavg()[0], 1)],
        "failed": [],
        "ramp_seconds": book.ramp_seconds,
        "repetitions": book.repetitions,
        "slower": book.slower,
        "box_cores": book.box_cores,
    }


def _all(book: Playbook, folder: Path, facts: dict[str, Any]) -> None:
    """Run what is not there yet, and note after each run how far it is."""
    runs = book.runs()
    left = [run for run in runs if not (folder / "rows" / f"{run.name}.csv").exists()]
    before, began = facts["minutes"], time.monotonic()
    print(f"This takes about {book.seconds(left) / 60:.0f} minutes.", flush=True)
    while True:
        done = len(runs) - len(left)
        facts["minutes"] = round(before + (time.monotonic() - began) / 60, 1)
        facts["runs"] = [done, len(runs)]
        (folder / "run.json").write_text(json.dumps(facts, indent=1))
        if not left:
            return
        progress = f"{done}/{len(runs)}, {book.seconds(left) / 60:.0f} min left"
        run = left.pop(0)
        print(f"[{progress}] {run.architecture}, {run.plan}", flush=True)
        exceptions = _one(book, run, folder)
        if exceptions:
            facts.setdefault("exceptions", {})[run.name] = exceptions
        elif exceptions is None:
            facts["failed"].append(run.name)
            print(f"  {run.name} broke off: the report lacks it", flush=True)
        facts["load_average"].append(round(os.getloadavg()[0], 1))


def _one(book: Playbook, run: Run, folder: Path) -> list[str] | None:
    """Run a plan; its files get their names when it is through.

    Returns the exceptions of which the logs tell, None when it broke off.
    """
    plan = PLANS[run.plan]
    rows = folder / "rows" / f"{run.name}.part"
    options = {"ramp": book.ramp(plan), "only": book.plans[plan.name], "rows": rows}
    options |= {"slower": book.slowed(run.architecture)}
    try:
        with _standing(book, run.architecture) as stack, stack.sampled() as samples:
            status = generate(stack.url, plan.name, options)
            exceptions = stack.exceptions()
    except NotHealthyError as error:
        print(f"  {error}", flush=True)
        return None
    if status not in (0, 1):  # 1: some responses were wrong, which the report tells
        return None
    write_csv(folder / "usage" / f"{run.name}.csv", samples, Sample._fields)
    rows.rename(rows.with_suffix(".csv"))
    return exceptions


@contextmanager
def _standing(book: Playbook, architecture: str) -> Iterator[Stack]:
    stack = ARCHITECTURES[architecture](limited=not book.box_cores)
    with in_box(stack, book.box_cores) if book.box_cores else stack:
        yield stack


def machine() -> dict[str, Any]:
    """Return what was measured on."""
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    memory = Path("/proc/meminfo").read_text().split()[1]
    return {
        "processor": cpus[0].split(":")[1].strip() if cpus else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory) / 2**20, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit(ROOT),
    }


def commit(checkout: Path) -> str:
    """Return the commit of a checkout, with `-dirty` where files differ from it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
