"""Positions that look wrong."""

import pytest

from ingest.rules.positions import doubts

ROOMS = [(x, y) for x in (0, 8, 15, 28, 40) for y in (2.5, 11)]
CAMPUS = [(x * 100.0, 50.0) for x in range(20)]


@pytest.mark.parametrize(
    ("at", "others", "said"),
    [
        ((2800, 5), ROOMS, "x is 2800, far outside of its level, whose beacons are at 0 to 40"),
        (
            (28, -5000),
            ROOMS,
            "y is -5000, far outside of its level, whose beacons are at 2.5 to 11",
        ),
        ((103.77012, 1.29031), [], "x and y look like degrees"),
        ((1.29031, 103.77012), ROOMS, "x and y look like degrees"),
        ((28, 5), ROOMS, ""),
        ((140.25, 60.125), ROOMS, ""),
        ((1900.0, 50), CAMPUS, ""),
        ((2800, 5), ROOMS[:2], ""),  # which of them is wrong?
        ((2800, 5), [(2790, 4), (2810, 9), (2805, 2)], ""),
        ((5, 5), [(5, 5)] * 3, ""),
    ],
)
def test_what_looks_wrong_is_named(
    at: tuple[float, float], others: list[tuple[float, float]], said: str
) -> None:
    text = doubts(at, others)
    assert text.startswith(said)
    assert bool(text) == bool(said)
