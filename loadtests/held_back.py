"""What held back a side that could have been faster: its own limit of CPU, or the whole machine."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

FULL_SHARE = 0.9  # of all CPU: from here on the machine, and not a limit, holds back
BUSY_SHARE = 0.9  # of a limit: from here on it holds back


class Shares(NamedTuple):
    """How much of the machine's CPU was used, by everything, and how much of a side's limit."""

    machine: float
    limit: float

    @property
    def machine_was_full(self) -> bool:
        """Tell whether a rate says less than the CPU for each request does."""
        return self.machine >= FULL_SHARE and self.limit < BUSY_SHARE


class Meter:
    """What the machine did while a context lasted."""

    def __init__(self) -> None:
        self.seconds = self.machine_share = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure meanwhile."""
        idle, began = _idle_seconds(), time.monotonic()
        yield
        self.seconds = time.monotonic() - began
        cores = self.seconds * (os.cpu_count() or 1)
        self.machine_share = 1 - (_idle_seconds() - idle) / cores

    def shares(self, cpu_seconds: float, cores: float) -> Shares:
        """Return them, of a side that used so much and may use so many cores."""
        return Shares(self.machine_share, cpu_seconds / (cores * self.seconds))


def _idle_seconds() -> float:
    """Return how long all cores together have been idle."""
    return float(Path("/proc/uptime").read_text().split()[1])
