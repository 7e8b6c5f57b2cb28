"""Line charts as SVG that fit light and dark pages, also as images in a README."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 46, 46
LEGEND, CHARACTER = 34, 7  # its line and gaps, and a letter
CSS = Path(__file__).with_name("chart.css")

Points = Sequence[tuple[float, float]]


class Axis(NamedTuple):
    """What is along an axis."""

    label: str
    log: bool = False


class Scale(NamedTuple):
    """Turns values into pixels."""

    low: float
    high: float
    first: float
    last: float
    log: bool

    def at(self, value: float) -> float:
        """Return the pixel of a value; values outside lie on the edge."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self.first + (self.last - self.first) * (value - low) / (high - low)

    def ticks(self) -> list[float]:
        """Return round values for the axis."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            every = [m * 10.0**p for p in powers for m in (1, 2, 5)]
            inside = [tick for tick in every if self.low <= tick <= self.high]
            return inside if len(inside) <= 7 else [t for t in inside if f"{t:e}"[0] == "1"]
        step = 10.0 ** math.floor(math.log10(self.high))
        step = next(s for s in (step / 5, step / 2, step, 2 * step) if self.high / s <= 6)
        return [step * number for number in range(int(self.high / step) + 1)]


def chart(title: str, series: Mapping[str, Points], across: Axis, up: Axis) -> str:
    """Return a line for each series; the legend stands above them."""
    known = {name: sorted(points) for name, points in series.items() if points}
    if not known:
        return ""
    xs = _scale([x for points in known.values() for x, _ in points], across, LEFT, WIDTH - RIGHT)
    ys = _scale([y for points in known.values() for _, y in points], up, HEIGHT - BOTTOM, TOP)
    parts = [*_grid(xs, ys), *_labels(title, across, up)]
    x = LEFT
    for number, (name, points) in enumerate(known.items()):
        colour = f"var(--c{number % 5})"
        parts += _line(points, xs, ys, colour)
        parts.append(f'<path d="M{x} 31h14" style="stroke:{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 18}" y="35">{escape(name)}</text>')
        x += LEGEND + CHARACTER * len(name)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" {box}>'
    style = f"<style>\n{CSS.read_text()}</style>"
    return "\n".join([head, f"<title>{escape(title)}</title>", style, *parts, "</svg>\n"])


def _scale(values: list[float], axis: Axis, first: float, last: float) -> Scale:
    if axis.log:
        positive = [value for value in values if value > 0] or [1.0]
        low, high = min(positive) / 1.1, max(positive) * 1.1
    else:
        low, high = 0.0, max(values) * 1.05 or 1.0
    return Scale(low, high, first, last, axis.log)


def _text(text: str, anchor: str, place: str) -> str:
    return f'<text class="soft" text-anchor="{anchor}" {place}>{escape(text)}</text>'


def _grid(xs: Scale, ys: Scale) -> list[str]:
    parts = [f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>']
    for tick, y in ((tick, ys.at(tick)) for tick in ys.ticks()):
        parts.append(f'<path class="rule" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(f"{tick:,g}", "end", f'x="{LEFT - 6}" y="{y + 4:.1f}"'))
    for tick in xs.ticks():
        place = f'x="{xs.at(tick):.1f}" y="{HEIGHT - BOTTOM + 18}"'
        parts.append(_text(f"{tick:,g}", "middle", place))
    return parts


def _labels(title: str, across: Axis, up: Axis) -> list[str]:
    below = f'x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}"'
    beside = f'transform="translate(14 {HEIGHT / 2}) rotate(-90)"'
    head = f'<text x="10" y="18" font-weight="600">{escape(title)}</text>'
    return [head, _text(across.label, "middle", below), _text(up.label, "middle", beside)]


def _line(points: Points, xs: Scale, ys: Scale, colour: str) -> list[str]:
    at = [(xs.at(x), ys.at(y)) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    line = f'<polyline style="stroke:{colour}" points="{path}"/>'
    dots = [f'<circle r="3" cx="{x:.1f}" cy="{y:.1f}" style="fill:{colour}"/>' for x, y in at]
    return [line, *(dots if len(at) <= 20 else [])]
