"""Line charts as SVG that fit light and dark pages, also as images in a README."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment

LEFT, RIGHT, TOP, BOTTOM = 62, 544, 46, 274  # edges of the plot, as in the template
LEGEND, CHARACTER = 34, 7  # its line and gaps, and a letter
CSS, SVG = (Path(__file__).with_name(name).read_text() for name in ("chart.css", "chart.svg.jinja"))
TEMPLATE = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(SVG)


class Axis(NamedTuple):
    """What is along an axis."""

    label: str
    log: bool = False


class Scale:
    """Turns the values along an axis into pixels from `first` to `last`."""

    def __init__(self, values: Sequence[float], axis: Axis, first: float, last: float) -> None:
        self._log = axis.log
        self._first, self._last = first, last
        positive = [value for value in values if value > 0] or [1.0]
        self._low = min(positive) / 1.1 if axis.log else 0.0
        self._high = max(positive) * (1.1 if axis.log else 1.05)

    def at(self, value: float) -> float:
        """Return the pixel of a value; values outside lie on the edge."""
        inside = min(max(value, self._low), self._high)
        ends = [math.log(end) if self._log else end for end in (inside, self._low, self._high)]
        share = (ends[0] - ends[1]) / (ends[2] - ends[1])
        return self._first + (self._last - self._first) * share

    def ticks(self) -> list[float]:
        """Return round values for the axis."""
        low, high = self._low, self._high
        if self._log:
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            rounds = [m * 10.0**p for p in powers for m in (1, 2, 5)]
            inside = [tick for tick in rounds if low <= tick <= high]
            return inside if len(inside) <= 7 else [t for t in inside if f"{t:e}"[0] == "1"]
        step = 10.0 ** math.floor(math.log10(high))
        step = next(s for s in (step / 5, step / 2, step, 2 * step) if high / s <= 6)
        return [step * number for number in range(int(high / step) + 1)]


def chart(
    title: str, series: Mapping[str, Iterable[tuple[float, float]]], across: Axis, up: Axis
) -> str:
    """Return a line for each series; the legend stands above them."""
    known = {name: sorted(points) for name, points in series.items() if points}
    if not known:
        return ""
    xs = Scale([x for points in known.values() for x, _ in points], across, LEFT, RIGHT)
    ys = Scale([y for points in known.values() for _, y in points], up, BOTTOM, TOP)
    legend = list(accumulate((LEGEND + CHARACTER * len(name) for name in known), initial=LEFT))
    drawn = {"series": known, "legend": legend, "xs": xs, "ys": ys, "across": across, "up": up}
    return TEMPLATE.render(title=title, css=CSS, px="{:.1f}".format, **drawn) + "\n"
