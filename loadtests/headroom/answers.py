"""How requests were answered, by kind, and what a case wants of them."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from loadtests.engine.client import Response
from loadtests.figures import percentile

NONE, WRONG = "none", "wrong"  # no answer; a good status with content that is not right


class Rule(NamedTuple):
    """What every answer of a kind must be; by default right, and not late."""

    kind: str
    good: tuple[str, ...] = ("200",)
    seconds: float = 3.0  # the gateway's time limit
    share: float = 1.0  # of the answers that come in that time


class Answers:
    """Counts the answers of each kind by status, and how long they took."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, kind: str, response: Response, *, wrong: bool = False) -> None:
        """Count an answer."""
        self.note(kind, WRONG if wrong else label(response), response.ms / 1000)

    def note(self, kind: str, name: str, seconds: float = 0.0) -> None:
        """Count what has a name already."""
        self._counts[kind][name] += 1
        self._seconds[kind].append(seconds)

    def problems(self, rules: tuple[Rule, ...]) -> Iterator[str]:
        """Yield what was not as a rule wants it."""
        for rule in rules:
            counts, seconds = self._counts[rule.kind], self._seconds[rule.kind]
            bad = {name: count for name, count in counts.items() if name not in rule.good}
            if not seconds:
                yield f"{rule.kind}: nothing was asked"
            if bad:
                yield f"{rule.kind}: {_shown(bad)} of {counts.total():,}"
            elif (took := percentile(seconds, rule.share)) > rule.seconds:
                yield f"{rule.kind}: {took:.1f} s, not {rule.seconds:g}"

    def shown(self) -> str:
        """Return the counts, and the longest wait of each kind."""
        return "; ".join(
            f"{kind} {_shown(counts)} ({max(self._seconds[kind]):.1f} s)"
            for kind, counts in self._counts.items()
        )

    def figures(self) -> dict[str, Any]:
        """Return all of it, for a file."""
        return {
            kind: {"answers": dict(counts)}
            | {
                f"p{share * 100:.0f}_seconds": round(percentile(self._seconds[kind], share), 3)
                for share in (0.5, 0.99, 1)
            }
            for kind, counts in self._counts.items()
        }


def label(response: Response) -> str:
    """Return what an answer counts as: a 503 tells what the gateway says of its circuit."""
    state = response.headers.get("x-circuit-state")
    if not response.status:
        return NONE
    return (
        f"{response.status} {state}" if response.status == 503 and state else f"{response.status}"
    )


def _shown(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} x {name}" for name, count in sorted(counts.items()))
