"""What the figures of the report are computed from, and how."""

import csv
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

HTTP = "http"
VERIFICATION = "verification"
KEPT_UP = 0.9  # answers by arrivals: the rest is the tail after the last request
LATE_MS = 100.0  # from here on the generator itself is the limit, and the figures are void


class Row(NamedTuple):
    """One request; times in seconds since the step began."""

    plan: str
    step: str
    name: str  # what was asked: insert, extract, hacs, page, ...
    due: float  # when it should have been sent
    sent: float
    ms: float  # from sending to the last byte of the answer
    status: int  # 0 when there was no answer
    size: int  # bytes of the answer
    error: str = ""  # http: no good status; verification: a good status with a wrong answer
    detail: str = ""


class Summary(NamedTuple):
    """The source's table (throughput, min, max, average in ms), and what it lacked."""

    requests: int
    rate: float  # answers a second, as JMeter counts: from the first sent to the last answered
    min: float
    max: float
    mean: float
    p50: float
    p99: float
    errors: int
    verification_errors: int
    late_p99_ms: float  # how late the generator itself was: the other figures are void when large

    def broke(self, mean_limit_ms: float) -> bool:
        """Tell whether a step shows that the server has had too much."""
        return bool(self.errors + self.verification_errors) or self.mean > mean_limit_ms


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


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the range of repetitions; nan of none."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Spread(math.nan, math.nan, math.nan)
    return Spread(statistics.median(known), min(known), max(known))


def ratios(old: Sequence[float], new: Sequence[float]) -> Spread:
    """Return old/new of repetitions that ran next to each other: above 1, the new one is better.

    Pairs, since what else a shared machine does changes from minute to minute.
    """
    pairs = zip(old, new, strict=True)
    return spread([one / other if other else math.nan for one, other in pairs])


def write_csv(path: Path, rows: Iterable[tuple[object, ...]], header: Sequence[str]) -> None:
    """Write rows under a header."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def read_rows(path: Path) -> list[Row]:
    """Read what was written of requests."""
    with path.open(newline="") as file:
        return [_row(one) for one in csv.DictReader(file)]


def _row(text: dict[str, str]) -> Row:
    numbers = {name: float(text[name]) for name in ("due", "sent", "ms")}
    whole = {name: int(text[name]) for name in ("status", "size")}
    words = {name: text[name] for name in ("plan", "step", "name", "error", "detail")}
    return Row(**words, **numbers, **whole)  # type: ignore[arg-type]
