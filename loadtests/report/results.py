"""What a comparison measured, read back from its CSV files."""

import csv
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from loadtests.figures import KEPT_UP, Row, Spread, Summary, ratios, read_rows, spread, summary
from loadtests.plans import PLANS, RAMP_SECONDS
from loadtests.sides import SIDES

FILE = re.compile(rf"(\d+)-({'|'.join(SIDES)})-([A-Z].+)")
PUBLISHED = Path(__file__).with_name("published.csv")

Figure = Callable[[Summary], float]


class Sample(NamedTuple):
    """What one part had used at one moment."""

    seconds: float
    cpu_seconds: float
    throttled_seconds: float
    memory_mib: float
    peak_mib: float
    killed: int


def behind(step: str, one: Summary) -> bool:
    """Tell whether answers came so much slower than requests that a longer run would break."""
    return one.rate < KEPT_UP * int(step) / RAMP_SECONDS


class Measured:
    """All figures of one comparison."""

    def __init__(self, folder: Path) -> None:
        self.facts: dict[str, Any] = json.loads((folder / "run.json").read_text())
        # plan and step -> side -> repetition -> figures
        self.steps: dict[tuple[str, str], dict[str, dict[int, Summary]]] = {}
        self.beside: dict[str, list[Row]] = {side: [] for side in SIDES}  # pollers and counts
        for file in sorted((folder / "rows").glob("*.csv")):
            if named := FILE.fullmatch(file.stem):
                self._read(read_rows(file), int(named[1]), named[2])
        self.usage = {  # by repetition, side and plan, then by part
            (int(named[1]), named[2], named[3]): _usage(file)
            for file in sorted((folder / "usage").glob("*.csv"))
            if (named := FILE.fullmatch(file.stem))
        }

    def _read(self, rows: list[Row], repetition: int, side: str) -> None:
        steps: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            if row.name in ("insert", "extract"):
                steps[row.plan, row.step].append(row)
            else:
                self.beside[side].append(row)
        for key, found in steps.items():
            sides = self.steps.setdefault(key, {side: {} for side in SIDES})
            sides[side][repetition] = summary(found)

    def plans(self) -> list[str]:
        """Return the plans that were run, in their order."""
        return [name for name in PLANS if any(plan == name for plan, _ in self.steps)]

    def sides(self, plan: str) -> list[str]:
        """Return the sides that a plan was run on."""
        return [side for side in SIDES if any(self.steps[plan, one][side] for one in self.of(plan))]

    def of(self, plan: str) -> list[str]:
        """Return a plan's steps, the smallest first."""
        return sorted((step for name, step in self.steps if name == plan), key=int)

    def spread(self, plan: str, step: str, side: str, figure: Figure) -> Spread:
        """Return the median and range of a figure over the repetitions."""
        return spread([figure(one) for one in self.steps[plan, step][side].values()])

    def ratio(self, plan: str, step: str, side: str, figure: Figure) -> Spread:
        """Return a side's figure by the new one's, over the repetitions that have both."""
        old, new = (self.steps[plan, step][one] for one in (side, "new"))
        both = sorted(set(old) & set(new))
        return ratios([figure(old[n]) for n in both], [figure(new[n]) for n in both])

    def capacity(self, plan: str, side: str) -> Spread:
        """Return the highest rate of a sweep, arrivals/s, before the first step that broke."""
        best: dict[int, float] = {}
        broken: set[int] = set()
        for step in self.of(plan):
            for repetition, one in self.steps[plan, step][side].items():
                if one.broke(PLANS[plan].mean_limit_ms) or behind(step, one):
                    broken.add(repetition)
                elif repetition not in broken:
                    best[repetition] = int(step) / RAMP_SECONDS
        return spread(list(best.values()))

    def points(self, plan: str, side: str, scale: float = 1.0) -> list[tuple[float, float]]:
        """Return a plan's steps and their median of the mean response times, ms."""
        found = [
            (int(step) * scale, self.spread(plan, step, side, lambda one: one.mean).median)
            for step in self.of(plan)
            if self.steps[plan, step][side]
        ]
        return [(x, y) for x, y in found if not math.isnan(y)]


def _usage(file: Path) -> dict[str, list[Sample]]:
    """Return the samples of one run by part."""
    found: dict[str, list[Sample]] = defaultdict(list)
    with file.open(newline="") as lines:
        for one in csv.DictReader(lines):
            sample = Sample(
                float(one["seconds"]),
                float(one["cpu_seconds"]),
                float(one["throttled_seconds"]),
                int(one["memory_bytes"]) / 2**20,
                int(one["peak_bytes"]) / 2**20,
                int(one["killed"]),
            )
            found[one["part"]].append(sample)
    return found


def published() -> dict[tuple[str, str], dict[str, str]]:
    """Return what the source published, by plan and step."""
    with PUBLISHED.open(newline="") as lines:
        return {(one["plan"], one["step"]): one for one in csv.DictReader(lines)}
