"""The search for the highest rate that keeps a limit: what one try showed, and what it proves."""

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from loadtests.figures import KEPT_UP, LATE_MS, Summary, write_csv
from loadtests.plans import RAMP_SECONDS

BUSY = 0.85  # of one core: from here on the generator, which has no second one, is the limit
KEPT, STACK, GENERATOR, MACHINE = "kept", "stack", "generator", "machine"


class Try(NamedTuple):
    """One rate, tried once."""

    threads: int
    rate: float  # arrivals/s
    answered: float  # answers/s
    p50: float
    p99: float
    errors: int
    verification_errors: int
    late_p99_ms: float
    generator_cpu: float  # cores
    verdict: str  # kept, or what was the limit: stack, generator or machine


def judge(threads: int, figures: Summary, limit_ms: float, generator_cpu: float) -> Try:
    """Return what a try proves: it was kept when it was answered as fast as it came, too.

    A queue that grows all the time needs more than a short try to get past the limit.
    A generator that is late or busy sends in bursts and reads answers late: what then fails says
    nothing about the stack. It is late without being busy when the machine has no core left for it.
    """
    wrong = figures.errors + figures.verification_errors
    late = figures.late_p99_ms > LATE_MS
    rate = threads / RAMP_SECONDS
    kept_up = figures.rate >= KEPT_UP * rate
    if not wrong and not late and kept_up and figures.p99 <= limit_ms:
        verdict = KEPT
    elif generator_cpu >= BUSY:
        verdict = GENERATOR
    else:
        verdict = MACHINE if late else STACK
    shown = (figures.p50, figures.p99, figures.errors, figures.verification_errors)
    late_cpu = (figures.late_p99_ms, generator_cpu)
    return Try(threads, rate, figures.rate, *shown, *late_cpu, verdict)


def decide(attempt: Callable[[], Try], limit_ms: float) -> bool:
    """Tell whether a rate is kept: one try with half the limit to spare, else two of three."""
    kept = 0
    for number in range(1, 4):
        one = attempt()
        kept += one.verdict == KEPT
        if one.verdict == KEPT and one.p99 <= limit_ms / 2:
            return True
        if 2 in (kept, number - kept):
            break
    return kept == 2


class Found(NamedTuple):
    """The end of a search."""

    rate: float  # arrivals/s; 0 when none was kept
    p99: float  # median of the tries at that rate
    limit: str  # what was the limit beyond; "" when nothing was beyond


def found(tries: Sequence[Try], limit_ms: float) -> Found:
    """Return the highest rate that was kept, and what most tries of the next one met."""
    by_rate: dict[int, list[Try]] = {}
    for one in tries:
        by_rate.setdefault(one.threads, []).append(one)
    kept = [n for n, every in by_rate.items() if decide(iter(every).__next__, limit_ms)]
    best = max(kept, default=0)
    beyond = min((n for n in by_rate if n > best), default=0)
    met = Counter(one.verdict for one in by_rate.get(beyond, []) if one.verdict != KEPT)
    limit = met.most_common(1)[0][0] if met else ""
    p99 = sorted(one.p99 for one in by_rate.get(best, [])) or [0.0]
    return Found(best / RAMP_SECONDS, p99[len(p99) // 2], limit)


def write(file: Path, tries: Sequence[Try]) -> None:
    """Write the tries of a search."""
    write_csv(file, tries, Try._fields)


def read(file: Path) -> list[Try]:
    """Read what `write` wrote."""
    with file.open(newline="") as lines:
        return [_try(one) for one in csv.DictReader(lines)]


def _try(text: dict[str, str]) -> Try:
    kinds = Try.__annotations__
    return Try(**{name: kinds[name](value) for name, value in text.items()})
