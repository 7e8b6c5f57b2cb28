"""The search for the highest rate that keeps a limit: which to try, and what an attempt proves."""

import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from loadtests.figures import Summary
from loadtests.plans import RAMP_SECONDS, Step

RELOAD_SECONDS = 0.5
BUSY = 0.85  # of one core: from here on the generator, which has no second one, is the limit
CLOSE = 1.1  # as near to each other as two rates are told apart
KEPT, STACK, GENERATOR, MACHINE = "kept", "stack", "generator", "machine"


class Attempt(NamedTuple):
    """One rate, attempted once."""

    threads: int
    rate: float  # arrivals/s
    answered: float  # responses/s
    p50: float
    p99: float
    errors: int
    verification_errors: int
    late_p99_ms: float
    generator_cpu: float  # cores
    verdict: str  # kept, or what was the limit: stack, generator or machine


def search(start: int, is_kept: Callable[[int], bool]) -> int:
    """Return the highest number of threads that is kept, as far as CLOSE tells them apart.

    Doubles or halves until the limit lies between two, then halves their distance.
    """
    good, bad, threads = 0, 0, start
    while threads != good:
        if is_kept(threads):
            good = threads
        else:
            bad = threads
        if good and bad:
            threads = good if bad <= good * CLOSE else (good + bad) // 2
        else:
            threads = good * 2 or bad // 2
    return good


def judge(threads: int, figures: Summary, limit_ms: float, generator_cpu: float) -> Attempt:
    """Return what an attempt proves: it was kept when it was answered as fast as it came, too.

    A queue that grows all the time needs more than a short attempt to get past the limit.
    A generator that is late or busy sends in bursts and reads responses late: what then fails says
    nothing about the stack. It is late without being busy when the machine has no core left for it.
    """
    rate = threads / RAMP_SECONDS
    well = not figures.wrong and not figures.late and figures.kept_up(rate)
    limit = GENERATOR if generator_cpu >= BUSY else MACHINE if figures.late else STACK
    verdict = KEPT if well and figures.p99 <= limit_ms else limit
    others = figures[5:]  # as an attempt has them, from p50 to how late
    return Attempt(threads, rate, figures.rate, *others, generator_cpu, verdict)


def decide(attempt: Callable[[], Attempt], limit_ms: float) -> bool:
    """Tell whether a rate is kept: one attempt with half the limit to spare, else two of three."""
    kept = 0
    for number in range(1, 4):
        tried = attempt()
        kept += tried.verdict == KEPT
        if tried.verdict == KEPT and tried.p99 <= limit_ms / 2:
            return True
        if 2 in (kept, number - kept):
            break
    return kept == 2


def find_highest(
    step: Step, send: Callable[[Step], Summary], limit_ms: float, gateway: int, into: list[Attempt]
) -> None:
    """Find the highest arrival rate that keeps a limit of the p99 without an error.

    Begins with a step's rate. `gateway` is its process, which is reloaded after an attempt that was
    not kept (0: none): its circuit may be open for 20 s, and would be what the next one measures.
    """

    def attempt(threads: int) -> Attempt:
        if gateway and into and into[-1].verdict != KEPT:
            os.kill(gateway, signal.SIGHUP)
            time.sleep(RELOAD_SECONDS)
        used, began = time.process_time(), time.monotonic()
        figures = send(step._replace(name=str(threads), threads=threads))
        cpu = (time.process_time() - used) / (time.monotonic() - began)
        attempted = judge(threads, figures, limit_ms, cpu)
        into.append(attempted)
        reason = "" if attempted.verdict == KEPT else f"  too much for the {attempted.verdict}"
        print(f"{figures.line(str(threads))}  generator {cpu:.2f} cores{reason}", flush=True)
        return attempted

    search(step.threads, lambda threads: decide(partial(attempt, threads), limit_ms))


class Capacity(NamedTuple):
    """The end of a search."""

    rate: float  # arrivals/s; 0 when none was kept
    p99: float  # median of the attempts at that rate
    limit: str  # what was the limit beyond; "" when nothing was beyond


def capacity_of(attempts: Sequence[Attempt], limit_ms: float) -> Capacity:
    """Return the highest rate that was kept, and what most attempts of the next one met."""
    threads = sorted({attempt.threads for attempt in attempts})
    by_rate = {n: [attempt for attempt in attempts if attempt.threads == n] for n in threads}
    kept = [n for n, tried in by_rate.items() if decide(iter(tried).__next__, limit_ms)]
    best = max(kept, default=0)
    beyond = min((n for n in by_rate if n > best), default=0)
    met = Counter(attempt.verdict for attempt in by_rate.get(beyond, []) if attempt.verdict != KEPT)
    limit = met.most_common(1)[0][0] if met else ""
    p99 = statistics.median_high([attempt.p99 for attempt in by_rate.get(best, [])] or [0.0])
    return Capacity(best / RAMP_SECONDS, p99, limit)
