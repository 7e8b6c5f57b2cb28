"""Change the pure modules and see whether their tests notice: ./scripts/mutate [MODULE...].

It ends with 1 where a change that nobody noticed is not in `survivors.tsv` with the reason why it
is harmless, and where one stands there that was noticed, or cannot be made any more.
"""

import argparse
import csv
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.tools.mutation.mutants import mutants
from tests.tools.mutation.targets import TARGETS, Target
from tests.tools.mutation.trial import trial

LIST = Path(__file__).with_name("survivors.tsv")
REPORT = Path(__file__).with_name("report.txt")  # of the last run of all modules
# What a change may take of the CPU before it counts as noticed: an endless loop is.
FACTOR, LEAST_SECONDS = 5, 5


class Survivor(NamedTuple):
    """A change that no test notices."""

    module: str
    before: str
    after: str


def known() -> dict[Survivor, str]:
    """Return the survivors of the list, each with why it is harmless."""
    with LIST.open(newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    reasons = {Survivor(*row[:3]): row[3] for row in rows}
    if len(reasons) != len(rows) or not all(reasons.values()):
        raise ValueError(f"{LIST.name} names one twice, or one without a reason")
    return reasons


def survivors(target: Target) -> tuple[set[Survivor], str]:
    """Try all mutants of a module; return those that its tests pass, and how it went."""
    began = time.monotonic()
    source = target.source
    clean = trial(target, source)
    if clean.noticed:
        trial(target, source, shown=True)
        raise SystemExit(f"{target.module}: its tests fail without any change")
    cpu_seconds = LEAST_SECONDS + FACTOR * clean.cpu_seconds
    alive, tried = set[Survivor](), 0
    for mutant in mutants(source):
        tried += 1
        if not trial(target, mutant.source, cpu_seconds).noticed:
            print(f"  - {mutant.before}\n  + {mutant.after}", flush=True)
            alive.add(Survivor(target.module, mutant.before, mutant.after))
    took = time.monotonic() - began
    how = f"{target.module}: {tried} mutants, {len(alive)} survived, {took:.0f} s"
    print(how, flush=True)
    return alive, how


def main() -> int:
    """Compare what survives with the list."""
    parser = argparse.ArgumentParser(prog="./scripts/mutate", description=__doc__)
    parser.add_argument("module", nargs="*", help="as it is imported; all without any")
    asked = parser.parse_args().module
    targets = [target for target in TARGETS if not asked or target.module in asked]
    if len(targets) < len(set(asked)):
        parser.error("known are " + ", ".join(target.module for target in TARGETS))
    listed = known()
    all_alive, lines = set[Survivor](), [f"{datetime.now(UTC).date()}, ./scripts/mutate"]
    for target in targets:
        group, how = survivors(target)
        all_alive |= group
        lines.append(how)
    names = {target.module for target in targets}
    wrong = 0
    for title, group in (
        ("not noticed by any test", all_alive - listed.keys()),
        (
            "listed, but noticed or gone",
            {survivor for survivor in listed if survivor.module in names} - all_alive,
        ),
    ):
        wrong += len(group)
        for survivor in sorted(group):
            print(f"{title}:\n    {survivor.module}\n  - {survivor.before}\n  + {survivor.after}")
    lines.append(f"{len(all_alive)} survived, {wrong} of them or of the list wrong")
    print(lines[-1])
    if not asked:
        REPORT.write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
