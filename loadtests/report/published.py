"""What the source published of its two architectures, before and after."""

from pathlib import Path
from typing import NamedTuple

from loadtests.figures import read_csv

FILE = Path(__file__).with_name("published.csv")
QUERY = ("RANGE-IN-QUERY", "860")  # before and after: with its first and its later query


class Published(NamedTuple):
    """One step; what was not published is empty."""

    when: str  # before or after
    plan: str
    step: str
    ms: float  # mean
    max_ms: str
    rate: str  # responses/s, where it fell below the arrivals
    errors: str  # %

    def shown(self) -> str:
        """Return it as a cell of a table."""
        most = f" (max {milliseconds(float(self.max_ms))})" if self.max_ms else ""
        return milliseconds(self.ms) + most + (f", {self.rate}/s" if self.rate else "")


def published(when: str) -> dict[tuple[str, str], Published]:
    """Return the figures of one architecture, by plan and step."""
    return {(one.plan, one.step): one for one in read_csv(FILE, Published) if one.when == when}


def milliseconds(value: float) -> str:
    """Return a time as a cell of a table."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
