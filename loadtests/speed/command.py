"""./scripts/load speed: every row of the table of speed, its sides in turns."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadtests import refusals
from loadtests.comparison.compare import DEFAULT_OUTPUT, machine
from loadtests.report.document import line, table
from loadtests.speed.cases import Case, Section, sections
from loadtests.speed.peers import NoPeerError
from loadtests.speed.sides import Side
from loadtests.speed.turns import Row, Turn, row, turn
from mongo.binaries import NoMongod

ROUNDS, SECONDS = 3, 4.0
WARM_UP_SECONDS = 1.0
STORED = 1_000_000
FILE = "speed.json"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=speed)
    words = "parts of the names of sections or cases; all without"
    parser.add_argument("cases", nargs="*", metavar="CASE", help=words)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of all turns ({ROUNDS})")
    text = f"of each measurement ({SECONDS:.0f})"
    parser.add_argument("--seconds", type=float, default=SECONDS, help=text)
    text = f"detections that fill the database of `Much stored` ({STORED:,})"
    parser.add_argument("--stored", type=int, default=STORED, help=text)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="folder (load-report)")


def speed(options: argparse.Namespace) -> int:
    """Run the cases, print a table for each section, keep a file; status 1 when a row is missed."""
    chosen = [
        section
        for section in map(_chosen(options.cases), sections(options.stored))
        if section.cases
    ]
    refusals.check_cases(chosen, options.cases)
    facts = machine() | {
        "began": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "load_average": [],
        "turns": [],
    }
    by_section = [run(section, options, facts) for section in chosen]
    missed = [row for rows in by_section for row in rows if row.reached is False]
    goals = sum(row.reached is not None for rows in by_section for row in rows)
    print(f"\n{goals - len(missed)} of {goals} goals are reached: {options.output / FILE}")
    return 1 if missed else 0


def run(section: Section, options: argparse.Namespace, facts: dict[str, Any]) -> list[Row]:
    """Start the sides of a section, run its cases in turns, and print the table."""
    rows: list[Row] = []
    print(f"\n## {section.title}\n", flush=True)
    with ExitStack() as started:
        sides = _start(section, started)
        columns = [side for side in section.sides if side in sides]
        heads = ["case", "figure", *columns, "ratio or difference", "goal", ""]
        print(table(heads, []), flush=True)
        for case in section.cases:
            turns = _turns(case, sides, options)
            facts["load_average"].append(round(os.getloadavg()[0], 1))
            facts["turns"].append([section.title, case.name, _plain(turns)])
            _keep(options.output / FILE, facts)
            lines = (row(case.name, figure, turns) for figure in case.figures)
            rows += (new_rows := [figure_row for figure_row in lines if figure_row])
            for figure_row in new_rows:
                print(line(figure_row.cells(columns)), flush=True)
    return rows


def _start(section: Section, started: ExitStack) -> dict[str, Side]:
    """Start the sides that the cases need; without peers or routers where there are none."""
    needed = {name for case in section.cases for name in case.sides}
    sides: dict[str, Side] = {}
    for name, start in section.sides.items():
        if name in needed and isinstance(start, str):
            sides[name] = sides[start]
        elif name in needed and not isinstance(start, str):
            _progress(f"starting: {name}")
            try:
                sides[name] = started.enter_context(start())
            except (NoPeerError, NoMongod) as error:
                print(f"WITHOUT {name}: {error}\n", flush=True)
    return sides


def _turns(
    case: Case, sides: dict[str, Side], options: argparse.Namespace
) -> dict[str, list[Turn]]:
    """Run a case on all its sides, the first of which is another in each round."""
    names = [name for name in case.sides if name in sides]
    turns: dict[str, list[Turn]] = {name: [] for name in names}
    for number in range(options.rounds):
        _progress(f"{case.name}, round {number + 1} of {options.rounds}")
        for name in names[:: -1 if number % 2 else 1]:
            side, load = sides[name], case.loads.get(name, case.load)
            side.limit(case.cores)
            if case.restarted:
                side.stack.restart_services()
            if case.warm_up:
                load(side, WARM_UP_SECONDS)
                side.rest()
            turns[name].append(turn(side, load, options.seconds))
    return turns


def _chosen(words: Sequence[str]) -> Any:
    def with_cases(section: Section) -> Section:
        if refusals.is_named(section.title, words):
            return section
        cases = (case for case in section.cases if refusals.is_named(case.name, words))
        return section._replace(cases=tuple(cases))

    return with_cases


def _progress(text: str) -> None:
    """Tell on the error output what runs, so that the table stays one."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def _plain(turns: dict[str, list[Turn]]) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [
            turn._asdict()
            | {"requests": {kind: of._asdict() for kind, of in turn.requests.items()}}
            for turn in side_turns
        ]
        for name, side_turns in turns.items()
    }


def _keep(file: Path, facts: dict[str, Any]) -> None:
    """Write what is known so far, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(facts, indent=1))
    new.replace(file)
