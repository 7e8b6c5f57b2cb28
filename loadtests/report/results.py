"""The results of a comparison, read back from its CSV files."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadtests.architectures import ARCHITECTURES, NEW, is_sharded
from loadtests.comparison.playbook import Run, sides
from loadtests.figures import STORED, Row, Spread, Summary, ratios, read_csv, spread, summary
from loadtests.plans import PAGE, PLANS, RAMP_SECONDS
from loadtests.stack import Sample

FILE = re.compile(rf"(\d+)-({'|'.join(ARCHITECTURES)})-([A-Z].+)")  # as Run.name
MEASURED = ("insert", "extract", PAGE)  # rows by name; the others are of companions and counts


class Results:
    """All figures of one comparison."""

    def __init__(self, folder: Path) -> None:
        self.facts: dict[str, Any] = json.loads((folder / "run.json").read_text())
        # plan and step -> architecture -> repetition -> figures
        self.steps: dict[tuple[str, str], dict[str, dict[int, Summary]]] = {}
        self._others: dict[str, list[Row]] = defaultdict(list)
        for run, file in _files(folder / "rows"):
            self._add(run, read_csv(file, Row))
        self.usage: dict[Run, dict[str, list[Sample]]] = {}  # by part
        for run, file in _files(folder / "usage"):
            parts = self.usage[run] = defaultdict(list)
            for sample in read_csv(file, Sample):
                parts[sample.part].append(sample)

    def _add(self, run: Run, rows: list[Row]) -> None:
        steps: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            kind = (
                steps[row.plan, row.step]
                if row.name in MEASURED
                else self._others[run.architecture]
            )
            kind.append(row)
        for key, measured in steps.items():
            sides = self.steps.setdefault(key, {name: {} for name in ARCHITECTURES})
            sides[run.architecture][run.repetition] = summary(measured)

    def plans(self) -> list[str]:
        """Return the plans that were run, in their order."""
        return [name for name in PLANS if any(plan == name for plan, _ in self.steps)]

    def of(self, plan: str) -> list[str]:
        """Return a plan's steps, the smallest first."""
        return sorted((step for name, step in self.steps if name == plan), key=int)

    def architectures(self, plan: str) -> list[str]:
        """Return what a plan was run on; sides with shards compare among each other alone."""
        steps = [self.steps[plan, step] for step in self.of(plan)]
        names = (name for name in ARCHITECTURES if not is_sharded(name))
        return [name for name in names if any(step[name] for step in steps)]

    def lost(self, plan: str, architecture: str) -> bool:
        """Tell whether what was stored after a plan is not what was acknowledged."""
        rows = (row for row in self._others[architecture] if row.plan == plan)
        return any(row.error for row in rows if row.step == STORED)

    def exceptions(self, plan: str, architecture: str) -> list[str]:
        """Return what the logs of the runs of a plan tell of."""
        runs = ((_run(name), told) for name, told in self.facts.get("exceptions", {}).items())
        own = (told for run, told in runs if run and run[1:] == (architecture, plan))
        return [problem for problems in own for problem in problems]

    def mean(self, plan: str, step: str, architecture: str) -> Spread:
        """Return the median and range of the mean response time over the repetitions, ms.

        Without those of which the generator was late: it measured itself.
        """
        repetitions = self.steps[plan, step][architecture].values()
        return spread(repetition.mean for repetition in repetitions if not repetition.late)

    def ratio(self, plan: str, step: str, architecture: str, later: str = "") -> Spread:
        """Return an architecture's mean by the plan's later one's, over the repetitions with both.

        Without those of which the generator was late, too. `later` is by another one's.
        """
        by = later or sides(plan)[1]
        old, new = (self.steps[plan, step][side] for side in (architecture, by))
        both = [n for n in sorted(set(old) & set(new)) if not (old[n].late or new[n].late)]
        return ratios([old[n].mean for n in both], [new[n].mean for n in both])

    def rate(self, step: str, architecture: str) -> float:
        """Return how many requests of a step named by its threads an architecture got a second."""
        slower = self.facts.get("slower", 1.0) if is_sharded(architecture) else 1.0
        return float(int(step) / RAMP_SECONDS / slower)

    def highest_rate(self, plan: str, architecture: str) -> Spread:
        """Return the highest rate of a sweep, arrivals/s, before the first step that broke."""
        best: dict[int, float] = {}
        broken: set[int] = set()
        for step in self.of(plan):
            rate = self.rate(step, architecture)
            for repetition, figures in self.steps[plan, step][architecture].items():
                if (
                    figures.late
                    or figures.broke(PLANS[plan].mean_limit_ms)
                    or not figures.kept_up(rate)
                ):
                    broken.add(repetition)
                elif repetition not in broken:
                    best[repetition] = rate
        return spread(best.values())

    def ended_late(self, plan: str, architecture: str) -> bool:
        """Tell whether the generator ended a sweep: the architecture may take more than that."""
        steps = (self.steps[plan, step][architecture] for step in self.of(plan))
        return any(repetition.late for step in steps for repetition in step.values())

    def rates_ratio(self, plan: str, architecture: str) -> str:
        """Return the new one's highest rate by another's, as a cell; `-` where none was measured.

        A rate at which the generator was late is a lower bound: so is a ratio with it above, and
        with it below it is nothing.
        """
        times = self.highest_rate(plan, NEW).median / self.highest_rate(plan, architecture).median
        if math.isnan(times) or self.ended_late(plan, architecture):
            return "-"
        return ("at least " if self.ended_late(plan, NEW) else "") + f"{times:.1f}"

    def course(self, plan: str, scale: float = 1) -> dict[str, list[tuple[float, float]]]:
        """Return a plan's steps and their median mean times, ms, of each architecture."""
        return {
            name: [
                (int(step) * scale, mean)
                for step in self.of(plan)
                if not math.isnan(mean := self.mean(plan, step, name).median)
            ]
            for name in self.architectures(plan)
        }

    def wrong(self) -> bool:
        """Tell whether the new one's responses were wrong, or its logs tell of an exception.

        Sweeps are meant to break, but not by an exception.
        """
        steps = [step for (plan, _), step in self.steps.items() if not PLANS[plan].is_sweep]
        others = (row.error for row in self._others[NEW] if not PLANS[row.plan].is_sweep)
        answers = (repetition.wrong for step in steps for repetition in step[NEW].values())
        logs = (self.exceptions(plan, NEW) for plan in self.plans())
        return any(others) or any(answers) or any(logs)


def _files(folder: Path) -> Iterator[tuple[Run, Path]]:
    """Yield the files of whole runs."""
    for file in sorted(folder.glob("*.csv")):
        if run := _run(file.stem):
            yield run, file


def _run(name: str) -> Run | None:
    """Return the run that has a name; None where nothing has it."""
    parts = FILE.fullmatch(name)
    return Run(int(parts[1]), parts[2], parts[3]) if parts else None
