"""Line charts as SVG that fit light and dark pages, also as images in a README."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 544, 46, 274  # edges of the plot
LEGEND, CHARACTER = 34, 7  # its line and gaps, and a letter
MOST_DOTS = 20
CSS = Path(__file__).with_name("chart.css")


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
        ends = [math.log(one) if self._log else one for one in (inside, self._low, self._high)]
        share = (ends[0] - ends[1]) / (ends[2] - ends[1])
        return self._first + (self._last - self._first) * share

    def ticks(self) -> list[float]:
        """Return round values for the axis."""
        low, high = self._low, self._high
        if self._log:
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            every = [m * 10.0**p for p in powers for m in (1, 2, 5)]
            inside = [tick for tick in every if low <= tick <= high]
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
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" {box}>',
        f"<title>{escape(title)}</title><style>\n{CSS.read_text()}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        f'<text x="10" y="18" font-weight="600">{escape(title)}</text>',
        _soft(across.label, "middle", f'x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 8}"'),
        _soft(up.label, "middle", f'transform="translate(14 {HEIGHT / 2}) rotate(-90)"'),
    ]
    for tick in ys.ticks():
        parts.append(f'<path class="rule" d="M{LEFT} {ys.at(tick):.1f}H{RIGHT}"/>')
        parts.append(_soft(f"{tick:,g}", "end", f'x="{LEFT - 6}" y="{ys.at(tick) + 4:.1f}"'))
    below = ((f"{tick:,g}", f'x="{xs.at(tick):.1f}" y="{BOTTOM + 18}"') for tick in xs.ticks())
    parts += [_soft(text, "middle", place) for text, place in below]
    at = LEFT
    for number, (name, points) in enumerate(known.items()):
        colour = f"var(--c{number % 5})"
        parts += _line([(xs.at(x), ys.at(y)) for x, y in points], colour)
        parts.append(f'<path d="M{at} 31h14" style="stroke:{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{at + 18}" y="35">{escape(name)}</text>')
        at += LEGEND + CHARACTER * len(name)
    return "\n".join([*parts, "</svg>\n"])


def _soft(text: str, anchor: str, place: str) -> str:
    return f'<text class="soft" text-anchor="{anchor}" {place}>{escape(text)}</text>'


def _line(points: Sequence[tuple[float, float]], colour: str) -> Iterator[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline style="stroke:{colour}" points="{path}"/>'
    for x, y in points if len(points) <= MOST_DOTS else ():
        yield f'<circle r="3" cx="{x:.1f}" cy="{y:.1f}" style="fill:{colour}"/>'
