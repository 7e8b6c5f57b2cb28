"""Which plans are run on which architectures, in which order, and how long that takes."""

from typing import NamedTuple

from loadtests.architectures import (
    COMBINED,
    DURABLE,
    INDENTED,
    INDEXED,
    NEW,
    OLD,
    REVERTED,
    SEPARATED,
    UNOPTIMISED,
    is_sharded,
    sharded,
)
from loadtests.plans import CAPACITY, PLANS, RAMP_SECONDS, Plan
from mongo.binaries import is_emulated

START_SECONDS = 5.5  # a stack and the generator; only for the estimate
PRELOAD_SECONDS = 0.5  # 600 documents, on either architecture; only for the estimate
SWEEP_STEPS = 9  # until it breaks; only for the estimate
SWEEP_RAMP_SECONDS = 10.0  # at most: a sweep has many steps, and the last ones many requests
QUICK_RAMP_SECONDS = 1.5
QUICK = {"PERF-TP-1": "2100", "PERF-RT-2": "600,1800,3000", "SWEEP-INSERT": "", "SWEEP-EXTRACT": ""}
WHOLE = {name: "" for name in PLANS if not name.startswith(CAPACITY)}
# Forms of the old architecture that are run as well: the source's first query, and inserts that
# wait for the disk as the new architecture's do. And one with the index alone of what is new, and
# the new one without its gateway or its services.
OTHERS: dict[str, tuple[str, ...]] = {
    "PERF-TP-1": (DURABLE,),
    "PERF-RT-2": (INDEXED, INDENTED),
    "PERF-RT-2-1": (INDEXED,),
    "SWEEP-INSERT": (DURABLE, *REVERTED),
    "SWEEP-EXTRACT": (UNOPTIMISED, *REVERTED),
}
# Whose plans get sides with shards. MongoDB has a sharded build for few machines; elsewhere it is
# emulated, about ten times as slow, and so are these loads by SLOWER: only their ratios count.
SHARDED = {
    "PERF-RT-1-1": (OLD, NEW),
    "PERF-RT-1-1b": (NEW,),
    "PERF-RT-2-1": (OLD, NEW),
    "PERF-RT-2-1b": (NEW,),
    "SWEEP-INSERT": (OLD, NEW),
    "SWEEP-EXTRACT": (NEW,),
}
SLOWER = 4.0
SHARDED_START_SECONDS = 25.0  # quiet, emulated; only for the estimate


def sides(plan: str) -> tuple[str, str]:
    """Return the two architectures that a plan compares, the earlier one first."""
    return (COMBINED, SEPARATED) if PLANS[plan].is_split else (OLD, NEW)


class Run(NamedTuple):
    """One plan on one architecture."""

    repetition: int
    architecture: str
    plan: str

    @property
    def name(self) -> str:
        """Return the name of its files."""
        return "-".join(map(str, self))


class Playbook(NamedTuple):
    """What is run: which steps of which plans (all when empty), how long, how often."""

    plans: dict[str, str]
    ramp_seconds: float
    repetitions: int
    others: tuple[str, ...] = tuple(OTHERS)  # plans that are also run on other forms
    shards: tuple[int, ...] = ()  # sides with so many, besides
    slower: float = 1.0  # divides the rates of these sides
    box_cores: float = 0.0  # of all of a side together, in place of the services' limits; 0: none

    @classmethod
    def chosen(
        cls,
        *,
        quick: bool,
        ramp: float | None,
        repetitions: int | None,
        shards: tuple[int, ...] = (),
    ) -> "Playbook":
        """Return the quick or the whole playbook, with another ramp or repetitions if given."""
        slower = SLOWER if shards and is_emulated() else 1.0
        if quick:
            others = ("PERF-TP-1",)
            return cls(QUICK, ramp or QUICK_RAMP_SECONDS, repetitions or 2, others, shards, slower)
        return cls(WHOLE, ramp or RAMP_SECONDS, repetitions or 3, shards=shards, slower=slower)

    def runs(self) -> list[Run]:
        """Return everything in order: they take turns, and the one that begins changes."""
        runs = []
        for repetition in range(1, self.repetitions + 1):
            for plan in self.plans:
                names = [*sides(plan), *(OTHERS[plan] if plan in self.others else ())]
                if self.shards:  # 0: what they are compared with
                    bases = SHARDED.get(plan, ())
                    names += [sharded(base, n) for base in bases for n in (0, *self.shards)]
                turns = names if repetition % 2 else names[::-1]
                runs += [Run(repetition, name, plan) for name in turns]
        return runs

    def slowed(self, architecture: str) -> float:
        """Return by what the rates of a side are divided."""
        return self.slower if is_sharded(architecture) else 1.0

    def ramp(self, plan: Plan) -> float:
        """Return how long each step of a plan is, in seconds."""
        return min(self.ramp_seconds, SWEEP_RAMP_SECONDS) if plan.is_sweep else self.ramp_seconds

    def seconds(self, runs: list[Run]) -> float:
        """Estimate how long runs take."""
        clusters = {sharded(base, n) for base in (OLD, NEW) for n in self.shards}
        starts = (
            SHARDED_START_SECONDS if run.architecture in clusters else START_SECONDS for run in runs
        )
        return sum(starts) + sum(self._seconds(PLANS[run.plan]) for run in runs)

    def _seconds(self, plan: Plan) -> float:
        preload = PRELOAD_SECONDS * sum(n for step in plan.steps for _, n in step.preload) / 600
        chosen = self.plans[plan.name]
        steps = len(chosen.split(",")) if chosen else len(plan.steps)
        return preload + self.ramp(plan) * (SWEEP_STEPS if plan.is_sweep else steps)
