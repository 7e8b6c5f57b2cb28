"""What the source published: all rows of its result tables, as they are in published.csv."""

from pathlib import Path
from typing import NamedTuple

from loadtests.figures import read_csv
from loadtests.plans import PLANS, RAMP_SECONDS

FIGURES = Path(__file__).with_name("published.csv")
BEFORE, AFTER = "before", "after"
WHENS = (BEFORE, AFTER)
QUERY = ("RANGE-IN-QUERY", "860")  # before and after: with its first and its later query
BELOW = 0.95  # of the arrivals: a rate that says that it did not keep up


class Published(NamedTuple):
    """One step of the source; what was not published is empty."""

    section: str  # of the source's chapter of results
    when: str  # before or after
    plan: str  # ours, where the source used one name for several
    step: str
    rate: str  # responses/s
    min_ms: str
    max_ms: str
    ms: float  # mean
    errors: str  # %

    def kept_up(self) -> bool:
        """Tell whether responses came as fast as requests."""
        steps = PLANS[self.plan].steps if self.plan in PLANS else ()
        threads = next((step.threads for step in steps if step.name == self.step), 0)
        return float(self.rate or "inf") >= BELOW * threads / RAMP_SECONDS

    def shown(self) -> str:
        """Return it as a cell of a table: the rate only where it did not keep up."""
        most = f" (max {milliseconds(float(self.max_ms))})" if self.max_ms else ""
        return milliseconds(self.ms) + most + ("" if self.kept_up() else f", {self.rate}/s")


def published(when: str) -> dict[tuple[str, str], Published]:
    """Return the figures of one architecture, by plan and step."""
    return {(row.plan, row.step): row for row in everything() if row.when == when}


def everything() -> list[Published]:
    """Return all rows, in the source's order."""
    return read_csv(FIGURES, Published)


def milliseconds(value: float) -> str:
    """Return a time as a cell of a table."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
