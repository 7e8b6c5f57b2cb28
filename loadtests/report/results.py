"""The results of a comparison, read back from its CSV files."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadtests.architectures import ARCHITECTURES, NEW
from loadtests.comparison.machine import Sample
from loadtests.figures import Row, Spread, Summary, ratios, read_csv, spread, summary
from loadtests.plans import PLANS, RAMP_SECONDS

FILE = re.compile(rf"(\d+)-({'|'.join(ARCHITECTURES)})-([A-Z].+)")  # repetition and plan around it
MEASURED = ("insert", "extract")  # rows by name; the others are of companions and counts

Figure = Callable[[Summary], float]


class Results:
    """All figures of one comparison."""

    def __init__(self, folder: Path) -> None:
        self.facts: dict[str, Any] = json.loads((folder / "run.json").read_text())
        # plan and step -> architecture -> repetition -> figures
        self.steps: dict[tuple[str, str], dict[str, dict[int, Summary]]] = {}
        self.others: dict[str, list[Row]] = {name: [] for name in ARCHITECTURES}
        for repetition, architecture, _, file in _files(folder / "rows"):
            self._read(read_csv(file, Row), repetition, architecture)
        # repetition, architecture and plan -> part -> samples
        self.usage: dict[tuple[int, str, str], dict[str, list[Sample]]] = {}
        for repetition, architecture, plan, file in _files(folder / "usage"):
            parts = self.usage[repetition, architecture, plan] = defaultdict(list)
            for sample in read_csv(file, Sample):
                parts[sample.part].append(sample)

    def _read(self, rows: list[Row], repetition: int, architecture: str) -> None:
        steps: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            if row.name in MEASURED:
                steps[row.plan, row.step].append(row)
            else:
                self.others[architecture].append(row)
        for key, found in steps.items():
            every = self.steps.setdefault(key, {name: {} for name in ARCHITECTURES})
            every[architecture][repetition] = summary(found)

    def plans(self) -> list[str]:
        """Return the plans that were run, in their order."""
        return [name for name in PLANS if any(plan == name for plan, _ in self.steps)]

    def of(self, plan: str) -> list[str]:
        """Return a plan's steps, the smallest first."""
        return sorted((step for name, step in self.steps if name == plan), key=int)

    def architectures(self, plan: str) -> list[str]:
        """Return what a plan was run on."""
        every = [self.steps[plan, step] for step in self.of(plan)]
        return [name for name in ARCHITECTURES if any(step[name] for step in every)]

    def spread(self, plan: str, step: str, architecture: str, figure: Figure) -> Spread:
        """Return the median and range of a figure over the repetitions."""
        return spread(figure(one) for one in self.steps[plan, step][architecture].values())

    def ratio(self, plan: str, step: str, architecture: str, figure: Figure) -> Spread:
        """Return an architecture's figure by the new one's, over the repetitions with both."""
        old, new = (self.steps[plan, step][one] for one in (architecture, NEW))
        both = sorted(set(old) & set(new))
        return ratios([figure(old[n]) for n in both], [figure(new[n]) for n in both])

    def highest_rate(self, plan: str, architecture: str) -> Spread:
        """Return the highest rate of a sweep, arrivals/s, before the first step that broke."""
        best: dict[int, float] = {}
        broken: set[int] = set()
        for step in self.of(plan):
            rate = int(step) / RAMP_SECONDS
            for repetition, one in self.steps[plan, step][architecture].items():
                if one.broke(PLANS[plan].mean_limit_ms) or not one.kept_up(rate):
                    broken.add(repetition)
                elif repetition not in broken:
                    best[repetition] = rate
        return spread(best.values())

    def points(self, plan: str, architecture: str, scale: float = 1) -> list[tuple[float, float]]:
        """Return a plan's steps and their median of the mean response times, ms."""
        every = ((int(step), self.spread(plan, step, architecture, mean)) for step in self.of(plan))
        return [(step * scale, one.median) for step, one in every if not math.isnan(one.median)]

    def wrong(self) -> bool:
        """Tell whether the new one's responses were wrong; sweeps are meant to break."""
        steps = [one for (plan, _), one in self.steps.items() if not PLANS[plan].is_sweep]
        others = (row.error for row in self.others[NEW] if not PLANS[row.plan].is_sweep)
        return any(others) or any(one.wrong for step in steps for one in step[NEW].values())


def mean(one: Summary) -> float:
    """Return the mean response time, ms."""
    return one.mean


def _files(folder: Path) -> list[tuple[int, str, str, Path]]:
    """Return the files of whole runs with repetition, architecture and plan."""
    named = ((FILE.fullmatch(file.stem), file) for file in sorted(folder.glob("*.csv")))
    return [(int(name[1]), name[2], name[3], file) for name, file in named if name]
