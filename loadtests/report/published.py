"""What the source published: mean and highest response time in ms, responses/s, errors in %.

Before and after are its two architectures; of RANGE-IN-QUERY, its first and its later query.
"""

import csv
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("published.csv")
BEFORE, AFTER = "before", "after"
QUERY = ("RANGE-IN-QUERY", "860")


class Published(NamedTuple):
    """Figures of one step; what was not published is empty."""

    ms: float
    max_ms: str
    rate: str
    errors: str

    def shown(self) -> str:
        """Return them as a cell of a table."""
        most = f" (max {milliseconds(float(self.max_ms))})" if self.max_ms else ""
        return milliseconds(self.ms) + most + (f", {self.rate}/s" if self.rate else "")


def published(when: str) -> dict[tuple[str, str], Published]:
    """Return the figures of one architecture, by plan and step."""
    with FILE.open(newline="") as lines:
        return {
            (one["plan"], one["step"]): Published(
                float(one[f"{when}_ms"]),
                *(one[f"{when}_{x}"] for x in ("max_ms", "rate", "errors")),
            )
            for one in csv.DictReader(lines)
        }


def queries() -> str:
    """Return what the source published of its first and its later query."""
    first, later = (published(when)[QUERY] for when in (BEFORE, AFTER))
    return (
        f"published for {QUERY[1]} extracts in 60 s: {first.errors} % errors and "
        f"{first.ms / 1000:.1f} s; with the later query {later.errors} % and "
        f"{later.ms / 1000:.1f} s"
    )


def milliseconds(value: float) -> str:
    """Return a time as a cell of a table."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
