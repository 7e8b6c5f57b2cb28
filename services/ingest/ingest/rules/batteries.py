"""How full a beacon's battery is, and when it has to be changed."""

import math
from collections.abc import Mapping, Sequence
from statistics import linear_regression
from typing import NamedTuple

DAY_SECONDS = 86_400
# Over how many days a trend is looked for, a reading for each; with fewer than the others is none.
SERIES_DAYS = 60
LEAST_DAYS, FEWEST_READINGS = 14, 5
# Further ahead nobody knows: a line that hardly falls reaches its end in any year.
MAX_YEARS = 5
# What should be changed soon: by the trend within so many days, or with less than this share left.
SOON_DAYS, LITTLE = 30, 0.2


class Reading(NamedTuple):
    """What a beacon told, and when, by our clock; unix seconds."""

    at: int
    value: float


class Kind(NamedTuple):
    """A way in which beacons tell of their battery."""

    unit: str
    full: float
    empty: float  # from here on it has to be changed
    jump: float  # who tells so much more than the day before has another battery


# Percent first: the maker's own estimate counts where a frame has both.
# A lithium cell of 3 V (CR2477, CR2032) keeps its voltage for most of its life and then falls fast:
# Ruuvi tells people to change it below 2.5 V (wiki of ruuvitag_fw, "FAQ: battery"), for below 2.0 V
# it may be dead within days. Of a cold night comes less than 0.2 V.
KINDS = {
    "battery_percent": Kind("%", 100, 0, 20),
    "battery_mv": Kind("mV", 3000, 2500, 200),
}


class Battery(NamedTuple):
    """A battery; never in two units."""

    value: float
    unit: str
    at: int  # when the value was told, unix seconds
    left: float  # the share of what is between full and empty
    per_day: float | None  # by how much it changes, None while there is no trend
    empty_at: int | None  # unix seconds; None: by no trend, or later than anybody can say
    low: bool


def battery(
    latest: Mapping[str, Reading], series: Mapping[str, Sequence[Reading]]
) -> Battery | None:
    """Return what the kind that was told last says; None where no battery was ever told."""
    kinds = [name for name in KINDS if name in latest]
    if not kinds:
        return None
    name = max(kinds, key=lambda name: latest[name].at)
    kind, (at, value) = KINDS[name], latest[name]
    left = round(min(1.0, max(0.0, (value - kind.empty) / (kind.full - kind.empty))), 3)
    per_day, empty_at = _trend(_since_change(series.get(name, ()), kind), kind)
    if value <= kind.empty:
        empty_at = at
    elif empty_at is not None:
        empty_at = max(empty_at, at)
    is_soon = empty_at is not None and empty_at - at <= SOON_DAYS * DAY_SECONDS
    return Battery(value, kind.unit, at, left, per_day, empty_at, is_soon or left <= LITTLE)


def urgency(battery: Battery | None) -> tuple[float, float]:
    """Return what to sort by: the next to change first, then the lowest, what tells none last."""
    if battery is None:
        return math.inf, math.inf
    return math.inf if battery.empty_at is None else battery.empty_at, battery.left


def _since_change(series: Sequence[Reading], kind: Kind) -> list[Reading]:
    """Return the readings of the last days, since the battery was last changed."""
    ordered = sorted(series)
    first = 0
    for index in range(1, len(ordered)):
        if ordered[index].value - ordered[index - 1].value >= kind.jump:
            first = index
    newest = ordered[-1].at if ordered else 0
    return [
        reading for reading in ordered[first:] if newest - reading.at < SERIES_DAYS * DAY_SECONDS
    ]


def _trend(series: Sequence[Reading], kind: Kind) -> tuple[float | None, int | None]:
    """Return the change in a day and when the battery is empty by it, None where not known.

    It is the line of least squares: with t the times and v the values, its slope is
    sum((t - mean t) * (v - mean v)) / sum((t - mean t)^2).
    """
    if len(series) < FEWEST_READINGS or series[-1].at - series[0].at < LEAST_DAYS * DAY_SECONDS:
        return None, None
    days = [reading.at / DAY_SECONDS for reading in series]
    slope, start = linear_regression(days, [reading.value for reading in series])
    per_day = round(slope, 3)
    if slope >= 0:
        return per_day, None
    empty = (kind.empty - start) / slope
    if empty - days[-1] > MAX_YEARS * 365:
        return per_day, None
    return per_day, round(empty * DAY_SECONDS)
