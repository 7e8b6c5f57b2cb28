"""What a turn measured, and how two services compare over all turns."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from loadtests.benchmark.cases import SLOWER, Case
from loadtests.figures import Row, Spread, ratios, summary
from loadtests.held_back import Meter
from scripts.processes.control_groups import SERVICE, Usage


class Result(NamedTuple):
    """One service (or two together) in one turn."""

    per_second: float  # requests, or detections of batches
    cpu_ms: float  # of the service, for each of them
    p50_ms: float
    p99_ms: float
    errors: float
    peak_mib: float
    killed: float
    machine_was_full: float  # 1 when that, and not the limit, held back


def result(
    case: Case, rows: Sequence[Row], before: list[Usage], after: list[Usage], meter: Meter
) -> Result:
    """Return what requests took, and what they cost by the kernel's counters."""
    figures = summary(rows)
    done = (figures.requests - figures.wrong) * case.per_request
    cpu = sum(now.cpu_seconds - then.cpu_seconds for now, then in zip(after, before, strict=True))
    return Result(
        figures.rate * done / figures.requests,
        cpu * 1000 / max(1, done),
        figures.p50,
        figures.p99,
        figures.wrong,
        max(usage.peak_bytes for usage in after) / 2**20,
        sum(usage.killed for usage in after),
        float(meter.shares(cpu, (SERVICE.cpu or math.inf) * len(after)).machine_was_full),
    )


class Comparison(NamedTuple):
    """A case, or a part of it, on both services: neighbours have one number."""

    case: Case
    part: str
    other: list[Result]
    new: list[Result]
    is_checkout: bool  # the other one: of this architecture

    def rates(self) -> Spread:
        """Return how many times as fast the new one was."""
        return ratios(
            [result.per_second for result in self.new], [result.per_second for result in self.other]
        )

    def cpu(self) -> Spread:
        """Return how many times the CPU the other took for each request.

        It is the ratio of the rates where the limit of 0.3 CPU is all that holds both back. On a
        busy machine the database or the load generator hold back the faster one first.
        """
        return ratios(
            [result.cpu_ms for result in self.other], [result.cpu_ms for result in self.new]
        )

    @property
    def by_cpu(self) -> bool:
        """Tell whether the CPU counts: a rate is fixed, or the machine held the new one back."""
        return self.case.paced or all(result.machine_was_full for result in self.new)

    def reached(self) -> bool:
        """Tell whether the median of the ratio that counts reaches the target, without an error."""
        case, p99_ms = self.case, max(result.p99_ms for result in self.new)
        if (
            any(result.errors or result.killed for result in self.new)
            or p99_ms >= case.p99_limit_ms
        ):
            return False
        if not self.other:
            return True
        times = self.cpu() if self.by_cpu else self.rates()
        return times.median >= (SLOWER if self.is_checkout else case.least)

    def cells(self) -> list[str]:
        """Return the line of the table."""
        case, least = self.case, f">= {self.case.least:.0f}x" if self.case.least else ""
        targets = [f">= {SLOWER}x" if self.is_checkout else least]
        targets += [f"p99 < {case.p99_limit_ms:.0f} ms" if case.paced else "", "no error"]
        targets += ["by CPU: the machine was full"] if self.by_cpu and not case.paced else []
        times = [of().shown(2) if self.other else "" for of in (self.rates, self.cpu)]
        name = f"{case.name}: {self.part}" if self.part else case.name
        verdict = ", ".join(filter(None, targets)) + ("" if self.reached() else " MISSED")
        return [name, _shown(self.other), _shown(self.new), *times, verdict]


def _shown(results: Sequence[Result]) -> str:
    """Return the median of each figure; errors and kills are added up, of peaks the highest."""
    if not results:
        return ""
    middle = Result._make(map(statistics.median, zip(*results, strict=True)))
    errors, killed = (
        sum(result.errors for result in results),
        sum(result.killed for result in results),
    )
    text = f"{middle.per_second:,.1f}/s, {middle.cpu_ms:.3f} ms CPU, p50 {middle.p50_ms:.0f}"
    text += f", p99 {middle.p99_ms:.0f} ms, {max(result.peak_mib for result in results):.0f} MiB"
    return text + f", {errors} errors" * bool(errors) + f", killed {killed} times" * bool(killed)
