"""What a turn measured, and how two services compare over all turns."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from loadtests.benchmark.cases import SLOWER, Case
from loadtests.figures import Row, Spread, ratios, summary
from scripts.processes.control_groups import Usage

MIB = 2**20


class Result(NamedTuple):
    """One service (or two together) in one turn."""

    per_second: float  # requests, or detections of batches
    cpu_ms: float  # of the service, for each of them
    p50_ms: float
    p99_ms: float
    errors: int
    peak_mib: float
    killed: int


def result(case: Case, rows: Sequence[Row], before: list[Usage], after: list[Usage]) -> Result:
    """Return what requests took, and what they cost by the kernel's counters."""
    figures = summary(rows)
    right = figures.requests - figures.wrong
    cpu = sum(now.cpu_seconds for now in after) - sum(then.cpu_seconds for then in before)
    return Result(
        figures.rate * case.each * right / figures.requests,
        cpu * 1000 / max(1, right * case.each),
        figures.p50,
        figures.p99,
        figures.wrong,
        max(usage.peak_bytes for usage in after) / MIB,
        sum(usage.killed for usage in after),
    )


class Comparison(NamedTuple):
    """The results of a case, or of a part of it, on both services: neighbours have one number."""

    case: Case
    part: str
    other: list[Result]
    new: list[Result]

    @property
    def rates(self) -> Spread:
        """How many times as fast the new one was."""
        return ratios([one.per_second for one in self.new], [one.per_second for one in self.other])

    @property
    def cpu(self) -> Spread:
        """How many times the CPU the other took for each request.

        It is the ratio of the rates where the limit of 0.3 CPU is all that holds both back. On a
        busy machine the database or the load generator hold back the faster one first.
        """
        return ratios([one.cpu_ms for one in self.other], [one.cpu_ms for one in self.new])

    def reached(self, *, against_checkout: bool) -> bool:
        """Tell whether the median of either ratio reaches the target, without an error."""
        if any(one.errors or one.killed for one in self.new):
            return False
        limit = self.case.p99_limit_ms
        if limit and any(one.p99_ms >= limit for one in self.new):
            return False
        least = SLOWER if against_checkout else self.case.least
        best = self.cpu.median if self.case.paced else max(self.rates.median, self.cpu.median)
        return not self.other or best >= least

    def cells(self, *, against_checkout: bool) -> list[str]:
        """Return the line of the table."""
        case, reached = self.case, self.reached(against_checkout=against_checkout)
        target = f">= {case.least:.0f}x" if case.least else "no error"
        if against_checkout:
            target = f">= {SLOWER}x"
        elif case.p99_limit_ms:
            target = f"p99 < {case.p99_limit_ms:.0f} ms, no error"
        times = [f"{one.shown(2)}" if self.other else "" for one in (self.rates, self.cpu)]
        name = f"{case.name}: {self.part}" if self.part else case.name
        return [
            name,
            _shown(self.other),
            _shown(self.new),
            *times,
            target + " MISSED" * (not reached),
        ]


def _shown(results: Sequence[Result]) -> str:
    """Return the median of each figure; errors and kills are added up, of peaks the highest."""
    if not results:
        return ""
    one = Result._make(statistics.median(column) for column in zip(*results, strict=True))
    errors, killed = (
        sum(counts) for counts in zip(*((r.errors, r.killed) for r in results), strict=True)
    )
    peak = max(result.peak_mib for result in results)
    text = f"{one.per_second:,.1f}/s, {one.cpu_ms:.3f} ms CPU, p50 {one.p50_ms:.0f}"
    text += f", p99 {one.p99_ms:.0f} ms, {peak:.0f} MiB"
    text += f", {errors} errors" if errors else ""
    return text + (f", killed {killed} times" if killed else "")
