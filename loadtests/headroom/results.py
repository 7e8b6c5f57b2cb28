"""What a case showed, and whether that is what is wanted."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from loadtests.figures import spread
from loadtests.headroom.ledger import Stored
from loadtests.headroom.watch import Part

FREE_SHARE = 0.1  # of each limit, at the peak
GROWTH_MIB = 2.0  # after the warm-up; what is noise in a run of seconds
COLUMNS = ["case", "killed", "peak, MiB", "growth, MiB", "answers", "stored", "verdict"]


class Result(NamedTuple):
    """One run of a case."""

    parts: Mapping[str, Part]
    stored: Stored
    answers: str
    figures: Mapping[str, Any]  # of the answers, for a file
    per_second: float  # acknowledged detections, after the warm-up
    problems: tuple[str, ...]  # empty when all was as wanted

    def as_file(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {
            "verdict": verdict([self]),
            "problems": self.problems,
            "parts": {name: part._asdict() for name, part in self.parts.items()},
            "answers": self.figures,
            "stored": self.stored._asdict(),
            "acknowledged_per_second": round(self.per_second, 1),
        }


def part_problems(parts: Mapping[str, Part]) -> list[str]:
    """Return what is wrong with the parts' memory and processes."""
    problems = []
    for name, part in parts.items():
        if part.killed:
            problems.append(f"{name} killed {part.killed} times")
        elif part.ended:
            problems.append(f"{name}: {part.ended} processes ended")
        elif part.peak > (1 - FREE_SHARE) * part.limit:
            problems.append(f"{name} at {part.peak:.1f} of {part.limit:.0f} MiB")
        elif part.growth > GROWTH_MIB:
            problems.append(f"{name} grew by {part.growth:.1f} MiB")
    return problems


def stored_problems(stored: Stored) -> list[str]:
    """Return how what is stored is not what was acknowledged."""
    wrong = {"lost": stored.lost, "doubled": stored.doubled, "that nobody sent": stored.strangers}
    return [f"{count} {what}" for what, count in wrong.items() if count]


def verdict(runs: Sequence[Result]) -> str:
    """Return `good`, or everything that was not so in any run."""
    problems = dict.fromkeys(problem for run in runs for problem in run.problems)
    return "; ".join(problems) or "good"


def cells(name: str, runs: Sequence[Result]) -> list[str]:
    """Return the line of the table: of several runs the median and the range."""
    parts = runs[0].parts
    killed = sum(part.killed for run in runs for part in run.parts.values())
    peaks = [spread(run.parts[part].peak for run in runs).shown(1) for part in parts]
    grown = [spread(run.parts[part].growth for run in runs).shown(1) for part in parts]
    stored = sum(run.stored.acknowledged for run in runs)
    wrong = [problem for run in runs for problem in stored_problems(run.stored)]
    return [
        name,
        str(killed),
        ", ".join(peaks),
        ", ".join(grown),
        runs[-1].answers,
        ", ".join([f"{stored:,}", *wrong]),
        verdict(runs),
    ]
