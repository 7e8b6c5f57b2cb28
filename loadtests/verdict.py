"""Does a plan's run meet the requirement?

99 % of the requests of each step are answered right, and the mean response is at most what the plan
says: 1 s of inserts, 6 s of extracts.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loadtests.figures import Summary
from loadtests.plans import Plan

LEAST_ANSWERED = 0.99
PASS, FAIL, VOID = "PASS", "FAIL", "VOID"


class Verdict(NamedTuple):
    """PASS, FAIL or VOID (the generator was late: nothing is known), and why."""

    word: str
    why: str = ""

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.word}: {self.why}" if self.why else self.word


def judge(
    plan: Plan,
    steps: Mapping[str, Sequence[Summary]],
    *,
    lost: bool = False,
    exceptions: Sequence[str] = (),
) -> Verdict:
    """Return the verdict on the repetitions of each step; `lost`: not all is stored.

    `exceptions` is what the logs of the stack tell of.
    """
    void = []
    for name, repetitions in steps.items():
        in_time = [repetition for repetition in repetitions if not repetition.late]
        if not in_time:
            void.append(name)
        elif why := _problem(in_time, plan.mean_limit_ms):
            return Verdict(FAIL, f"at {name} {why}")
    if lost:
        return Verdict(FAIL, "what is stored is not what was acknowledged")
    if exceptions:
        return Verdict(FAIL, exceptions[0])
    if void or not steps:
        return Verdict(VOID, f"the generator was late at {', '.join(void) or 'every step'}")
    alone = any(step.name not in steps for step in plan.steps)
    return Verdict(PASS, f"at {', '.join(steps)} alone" if alone else "")


def _problem(repetitions: Sequence[Summary], mean_limit_ms: float) -> str:
    answered = 1 - sum(repetition.wrong for repetition in repetitions) / sum(
        repetition.requests for repetition in repetitions
    )
    if answered < LEAST_ANSWERED:
        return f"{answered:.1%} answered right"
    mean = statistics.median(repetition.mean for repetition in repetitions)
    if mean > mean_limit_ms:
        return f"mean {mean / 1000:.1f} s of {mean_limit_ms / 1000:.0f} s"
    return ""
