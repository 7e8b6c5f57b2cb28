"""How busy the machine is, everything on it included."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import gevent

IDLE = (3, 4)  # which of the first line's numbers are idle, and idle for a disk
SAMPLE_SECONDS = 1.0


def watch(into: list[float]) -> None:
    """Add the busy share of each second to a list, until this is killed."""
    before = _times()
    while True:
        gevent.sleep(SAMPLE_SECONDS)
        now = _times()
        into.append(busy_share(before, now))
        before = now


def busy_share(before: Sequence[int], after: Sequence[int]) -> float:
    """Return which share of all cores was busy between two different readings of their times."""
    spent = [then - first for first, then in zip(before, after, strict=True)]
    return 1 - sum(spent[number] for number in IDLE) / sum(spent)


def told(shares: Sequence[float]) -> str:
    """Return it for people."""
    if not shares:
        return "CPU of the machine: nothing is known of less than a second"
    mean = statistics.fmean(shares)
    return (
        f"CPU of the machine, with this generator: {mean:.0%} on average, {max(shares):.0%} at most"
    )


def _times() -> list[int]:
    """Return what all cores have spent, by kind, but not guests' time, which is told twice."""
    return [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]
