"""Line charts as SVG that fit light and dark pages, also as images in a README."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 46, 46
LEGEND, CHARACTER = 34, 7  # its line and gaps, and a letter
STYLE = """<style>
svg.chart{--ink:#1f2328;--soft:#59636e;--rule:#d8dee4;--paper:#fff;--c0:#b35900;--c1:#0969da;\
--c2:#1a7f37;--c3:#8250df;--c4:#bf3989;font:12px system-ui,sans-serif}
@media(prefers-color-scheme:dark){svg.chart{--ink:#e6edf3;--soft:#9198a1;--rule:#3d444d;\
--paper:#0d1117;--c0:#f0883e;--c1:#58a6ff;--c2:#3fb950;--c3:#bc8cff;--c4:#f778ba}}
.chart text{fill:var(--ink)}.chart .soft{fill:var(--soft)}.chart .rule{stroke:var(--rule)}
.chart .paper{fill:var(--paper)}.chart polyline{fill:none;stroke-width:2;stroke-linejoin:round}
</style>"""

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
        parts += [*_line(points, xs, ys, colour), _legend(x, name, colour)]
        x += LEGEND + CHARACTER * len(name)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" {box}>'
    whole = [head, f"<title>{escape(title)}</title>", STYLE, *parts, "</svg>"]
    return "\n".join(whole) + "\n"


def _scale(values: list[float], axis: Axis, first: float, last: float) -> Scale:
    if axis.log:
        positive = [value for value in values if value > 0] or [1.0]
        low, high = min(positive) / 1.1, max(positive) * 1.1
    else:
        low, high = 0.0, max(values) * 1.05 or 1.0
    return Scale(low, high, first, last, axis.log)


def _grid(xs: Scale, ys: Scale) -> list[str]:
    parts = [f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>']
    for tick in ys.ticks():
        y = ys.at(tick)
        parts.append(f'<path class="rule" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        label = f'<text class="soft" text-anchor="end" x="{LEFT - 6}" y="{y + 4:.1f}">'
        parts.append(f"{label}{tick:,g}</text>")
    for tick in xs.ticks():
        label = f'<text class="soft" text-anchor="middle" x="{xs.at(tick):.1f}"'
        parts.append(f'{label} y="{HEIGHT - BOTTOM + 18}">{tick:,g}</text>')
    return parts


def _labels(title: str, across: Axis, up: Axis) -> list[str]:
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [
        f'<text x="10" y="18" font-weight="600">{escape(title)}</text>',
        f'<text class="soft" text-anchor="middle" x="{middle}" y="{HEIGHT - 8}">'
        f"{escape(across.label)}</text>",
        f'<text class="soft" text-anchor="middle" transform="translate(14 {HEIGHT / 2}) '
        f'rotate(-90)">{escape(up.label)}</text>',
    ]


def _line(points: Points, xs: Scale, ys: Scale, colour: str) -> list[str]:
    at = [(xs.at(x), ys.at(y)) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    line = f'<polyline style="stroke:{colour}" points="{path}"/>'
    dots = [f'<circle r="3" cx="{x:.1f}" cy="{y:.1f}" style="fill:{colour}"/>' for x, y in at]
    return [line, *(dots if len(at) <= 20 else [])]


def _legend(x: int, name: str, colour: str) -> str:
    return (
        f'<path d="M{x} 31h14" style="stroke:{colour}" stroke-width="3"/>'
        f'<text x="{x + 18}" y="35">{escape(name)}</text>'
    )
