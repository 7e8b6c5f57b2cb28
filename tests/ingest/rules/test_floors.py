"""The order of levels, by the table that the page's function is tested with too."""

import random
from pathlib import Path

import pytest

from ingest.rules.floors import by_level

BUILDINGS = [
    line.split("\t")
    for line in (Path(__file__).parents[2] / "floors.tsv").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize("levels", BUILDINGS, ids=lambda levels: levels[0])
def test_levels_lie_in_the_order_of_the_building(levels: list[str]) -> None:
    assert sorted(random.Random(7).sample(levels, len(levels)), key=by_level) == levels


@pytest.mark.parametrize(
    "name", ["", " ", "\u0663", "9" * 64, "-", "²", "Küche", "1e400", "a\u0130b"]
)
def test_any_name_has_a_place_before_unknown(name: str) -> None:
    assert sorted(["unknown", name, "1"], key=by_level)[-1] == "unknown"
