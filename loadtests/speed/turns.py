"""What one side did in one turn, and how the sides compare over all turns."""

import math
import time
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

from loadtests.figures import Spread, Summary, ratios, spread, summary
from loadtests.held_back import Meter, Shares
from loadtests.speed.sides import EVERYTHING, Side


class Turn(NamedTuple):
    """One side in one turn: requests by name, and what each kind of part took."""

    requests: Mapping[str, Summary]
    cpu_seconds: Mapping[str, float]
    seconds: float
    limited: str  # what has a limit of CPU: the services, or everything in a box
    shares: Shares  # of that limit, and of the machine
    killed: int
    afterwards: Mapping[str, float] = {}  # CPU seconds until nothing was left to do
    exceptions: Sequence[str] = ()  # of which its logs tell

    def of(self, name: str = "") -> Summary:
        """Return the figures of the requests of one name; nan where there are none."""
        return self.requests.get(name) or summary([])

    def wrong(self) -> int:
        """Return how many requests of any name had a bad or a wrong answer."""
        return sum(summed.wrong for summed in self.requests.values())

    def cores(self, part: str = EVERYTHING) -> float:
        """Return how many cores a kind of part kept busy."""
        return self.cpu_seconds[part] / self.seconds

    def cpu_us(self, part: str = EVERYTHING, per_request: int = 1) -> float:
        """Return the µs of CPU for each request that was answered, or each detection of it."""
        done = (
            sum(summed.requests - summed.wrong for summed in self.requests.values()) * per_request
        )
        return self.cpu_seconds.get(part, math.nan) * 1e6 / done if done else math.nan


def turn(side: Side, load: Callable[[Side, float], object], seconds: float) -> Turn:
    """Put a load on a side."""
    for api in side.apis:
        api.rows.clear()
        api.began = time.monotonic()
    before, meter = side.cpu_seconds(), Meter()
    with meter.running():
        load(side, seconds)
    at_end = side.cpu_seconds()
    used = {part: now - before.get(part, 0.0) for part, now in at_end.items()}
    side.rest()
    rest = {part: now - at_end.get(part, 0.0) for part, now in side.cpu_seconds().items()}
    rows = [row for api in side.apis for row in api.rows]
    names = dict.fromkeys(row.name for row in rows)
    return Turn(
        {name: summary([row for row in rows if row.name == name]) for name in names},
        used,
        meter.seconds,
        side.limited,
        meter.shares(used.get(side.limited, 0.0), side.cores),
        side.killed(),
        rest,
        side.stack.exceptions(),
    )


def with_what_is_left(turn: Turn) -> float:
    """Return the µs of CPU for each request, with what the side did for it when it had answered.

    What the side takes when idle is in it, for as long as that lasted.
    """
    whole = {part: used + turn.afterwards.get(part, 0.0) for part, used in turn.cpu_seconds.items()}
    return turn._replace(cpu_seconds=whole).cpu_us()


class Figure(NamedTuple):
    """One figure of a case, and what it is to reach.

    With a `base` that is a ratio, of the subject's to the base's; without, the subject's own.
    """

    name: str
    of: Callable[[Turn], float]
    at_least: float = -math.inf
    at_most: float = math.inf
    base: str = ""
    subject: str = "new"
    digits: int = 0
    is_rate: bool = False  # where the machine is full, the CPU counts of what has a limit
    is_difference: bool = False  # the subject's less the base's, not their ratio

    def goal(self) -> str:
        """Return what is to be reached, for people."""
        least, most = math.isfinite(self.at_least), math.isfinite(self.at_most)
        if not least and not most:
            return ""
        bound = f">= {self.at_least:g}" if least else f"<= {self.at_most:g}"
        return f"{bound}, to {self.base}" if self.base and not self.is_difference else bound


class Row(NamedTuple):
    """A line of the table: a figure of each side, what it comes to, and whether that is enough."""

    case: str
    figure: Figure
    sides: Mapping[str, Spread]
    result: Spread
    by_cpu: bool  # the machine was full: the ratio is that of the CPU for each request
    problems: tuple[str, ...]  # of the subject, and of the base: without it there is no ratio
    beside: tuple[str, ...]  # of the other sides, whose figures they explain

    @property
    def reached(self) -> bool | None:
        """Tell whether the goal is reached; None without a goal."""
        if not self.figure.goal():
            return None
        inside = self.figure.at_least <= self.result.median <= self.figure.at_most
        return inside and not self.problems

    def cells(self, columns: Sequence[str]) -> list[str]:
        """Return the cells of the line, with one for each of the section's sides."""
        shown = (
            self.sides[side].shown(self.figure.digits) if side in self.sides else ""
            for side in columns
        )
        digits = 2 if self.figure.base else self.figure.digits
        result = self.result.shown(digits) if self.figure.base else ""
        verdict = {None: "", True: "reached", False: "MISSED"}[self.reached]
        words = [
            verdict,
            *(["by CPU: the machine was full"] if self.by_cpu else []),
            *self.problems,
            *self.beside,
        ]
        remarks = ", ".join(filter(None, words))
        return [self.case, self.figure.name, *shown, result, self.figure.goal(), remarks]


def row(case: str, figure: Figure, turns: Mapping[str, Sequence[Turn]]) -> Row | None:
    """Return a figure's line, of turns that are neighbours by their number; None without any."""
    if figure.subject not in turns or (figure.base and figure.base not in turns):
        return None
    own_turns = turns[figure.subject]
    values = {name: [figure.of(turn) for turn in side_turns] for name, side_turns in turns.items()}
    own, by_cpu = values[figure.subject], False
    if not figure.base:
        result = spread(own)
    elif figure.is_difference:
        result = spread(a - b for a, b in zip(own, values[figure.base], strict=True))
    elif by_cpu := figure.is_rate and all(turn.shares.machine_was_full for turn in own_turns):
        others = [turn.cpu_us(turn.limited) for turn in turns[figure.base]]
        result = ratios(others, [turn.cpu_us(turn.limited) for turn in own_turns])
    else:
        result = ratios(own, values[figure.base])
    return Row(
        case,
        figure,
        {name: spread(figures) for name, figures in values.items()},
        result,
        by_cpu,
        (*_problems(own_turns), *_problems_of((figure.base,), turns)),
        _problems_of(turns.keys() - {figure.subject, figure.base}, turns),
    )


def _problems_of(names: Container[str], turns: Mapping[str, Sequence[Turn]]) -> tuple[str, ...]:
    """Return what befell other sides, in the order of the table."""
    sides = (name for name in turns if name in names)
    return tuple(f"{side}: {problem}" for side in sides for problem in _problems(turns[side]))


def _problems(turns: Sequence[Turn]) -> tuple[str, ...]:
    wrong, killed = sum(turn.wrong() for turn in turns), sum(turn.killed for turn in turns)
    late = any(names.late for turn in turns for names in turn.requests.values())
    problems = (f"{wrong} wrong answers" * bool(wrong), f"{killed} killed" * bool(killed))
    exceptions = (problem for turn in turns for problem in turn.exceptions)
    return tuple(filter(None, (*problems, "the generator was late" * late, *exceptions)))
