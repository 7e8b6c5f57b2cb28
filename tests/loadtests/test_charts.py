"""The plots are well-formed, and their points lie where they should."""

import re
import xml.etree.ElementTree as ET

import pytest

from loadtests.report.charts import Axis, chart

LINE = re.compile(r'points="([^"]*)"')


@pytest.mark.parametrize("axis", [Axis("load"), Axis("load", log=True)])
def test_a_growing_line_rises_and_is_inside(axis: Axis) -> None:
    svg = chart("a < b", {"old": [(3, 40), (1, 10), (2, 20)]}, axis, axis)
    root = ET.fromstring(svg)
    assert root.find("{http://www.w3.org/2000/svg}title").text == "a < b"  # type: ignore[union-attr]
    points = [tuple(map(float, one.split(","))) for one in LINE.findall(svg)[0].split()]
    assert points == sorted(points)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)
    width, height = (float(n) for n in root.attrib["viewBox"].split()[2:])
    assert all(0 < x < width and 0 < y < height for x, y in points)


@pytest.mark.parametrize("values", [[(0, 0)], [(1, 0.001), (100_000, 90_000)], [(5, 5)]])
def test_every_range_has_ticks(values: list[tuple[float, float]]) -> None:
    for axis in (Axis("linear"), Axis("log", log=True)):
        svg = chart("t", {"s": values}, axis, axis)
        assert svg.count('class="rule"') >= 1
        assert "nan" not in svg


def test_nothing_gives_no_chart() -> None:
    assert chart("t", {"s": []}, Axis("x"), Axis("y")) == ""
