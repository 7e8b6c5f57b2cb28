"""The rows of requests, the figures computed from them, and their CSV files."""

import csv
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

HTTP = "http"
VERIFICATION = "verification"
STORED = "stored"  # step and name of the rows that compare what is stored at the end
MIN_ANSWERED_SHARE = 0.9  # answers by arrivals: the rest is the tail after the last request
LATE_MS = 100.0  # from here on the generator itself is the limit, and the figures are void

Record = TypeVar("Record", bound=tuple[Any, ...])  # a NamedTuple of texts and numbers


class Row(NamedTuple):
    """One request; times in seconds since the step began."""

    plan: str
    step: str
    name: str  # kind of request: insert, extract, hacs, page, ...
    due: float  # when it should have been sent
    sent: float
    ms: float  # from sending to the last byte of the response
    status: int  # 0 when there was no response
    size: int  # bytes of the response
    error: str = ""  # http: no good status; verification: a good status with wrong content
    detail: str = ""


class Summary(NamedTuple):
    """The source's table (throughput, min, max, average in ms), and what it lacked."""

    requests: int
    rate: float  # responses a second, as JMeter counts: from the first sent to the last answered
    min: float
    max: float
    mean: float
    p50: float
    p99: float
    errors: int
    verification_errors: int
    late_p99_ms: float  # how late the generator itself was: the other figures are void when large

    @property
    def wrong(self) -> int:
        """How many requests had no good status, or wrong content."""
        return self.errors + self.verification_errors

    @property
    def late(self) -> bool:
        """Tell whether the generator itself was the limit."""
        return self.late_p99_ms > LATE_MS

    def line(self, name: str) -> str:
        """Return them for people."""
        late = f"  GENERATOR {self.late_p99_ms:.0f} ms LATE" if self.late else ""
        return (
            f"  {name:>6}: {self.rate:7.1f}/s  mean {self.mean:.1f}  p50 {self.p50:.1f}  "
            f"p99 {self.p99:.0f}  min {self.min:.1f}  max {self.max:.0f} ms  "
            f"errors {self.errors}, verification {self.verification_errors}{late}"
        )

    def broke(self, mean_limit_ms: float) -> bool:
        """Tell whether a step shows that the server has had too much."""
        return bool(self.wrong) or self.mean > mean_limit_ms

    def kept_up(self, rate: float) -> bool:
        """Tell whether responses came as fast as requests: a queue grows where they do not."""
        return self.rate >= MIN_ANSWERED_SHARE * rate


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that `share` of them do not exceed (nearest rank); nan of none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(rows: Sequence[Row]) -> Summary:
    """Return the figures of one step's requests."""
    times = [row.ms for row in rows]
    late = [(row.sent - row.due) * 1000 for row in rows]
    ended = max((row.sent + row.ms / 1000 for row in rows), default=0)
    took = ended - min((row.sent for row in rows), default=0)
    return Summary(
        requests=len(rows),
        rate=len(rows) / took if took else math.nan,
        min=min(times, default=math.nan),
        max=max(times, default=math.nan),
        mean=statistics.fmean(times) if times else math.nan,
        p50=percentile(times, 0.50),
        p99=percentile(times, 0.99),
        errors=sum(row.error == HTTP for row in rows),
        verification_errors=sum(row.error == VERIFICATION for row in rows),
        late_p99_ms=percentile(late, 0.99),
    )


class Spread(NamedTuple):
    """Repetitions of one figure: the middle one, the least and the most."""

    median: float
    low: float
    high: float

    def shown(self, digits: int = 0) -> str:
        """Return the median and, where they differ, the range: `4.2 (4.0 to 4.3)`."""
        if math.isnan(self.median):
            return "-"
        middle, low, high = (f"{value:,.{digits}f}" for value in self)
        return middle if low == high else f"{middle} ({low} to {high})"


def spread(values: Iterable[float]) -> Spread:
    """Return the median and the range of repetitions; nan of none."""
    numbers = [value for value in values if not math.isnan(value)]
    if not numbers:
        return Spread(math.nan, math.nan, math.nan)
    return Spread(statistics.median(numbers), min(numbers), max(numbers))


def ratios(figures: Sequence[float], others: Sequence[float]) -> Spread:
    """Return figures/others of repetitions that ran next to each other.

    Pairs, since what else a shared machine does changes from minute to minute.
    """
    pairs = zip(figures, others, strict=True)
    return spread(figure / other if other else math.nan for figure, other in pairs)


def write_csv(path: Path, rows: Iterable[tuple[object, ...]], header: Sequence[str]) -> None:
    """Write rows under a header."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def read_csv(path: Path, kind: type[Record]) -> list[Record]:
    """Read what was written of a NamedTuple, each field as its type."""
    with path.open(newline="") as file:
        lines = list(csv.reader(file))[1:]
    return [msgspec.convert(line, kind, strict=False) for line in lines]
