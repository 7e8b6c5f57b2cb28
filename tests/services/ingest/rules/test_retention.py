"""The border before which everything is due."""

import pytest

from ingest.rules.request_parameters import TimeRange
from ingest.rules.retention import FOR_EVER, Retention

HOUR, DAY = 3600, 86_400
NOW = 20_000 * DAY


@pytest.mark.parametrize(
    ("days", "now", "floor"),
    [
        (0, NOW, 0),
        (1, NOW, NOW - DAY),
        (30, NOW, NOW - 30 * DAY),
        # It moves once an hour, and nothing older is ever kept.
        (1, NOW + 1, NOW + HOUR - DAY),
        (1, NOW + HOUR, NOW + HOUR - DAY),
        (1, NOW + HOUR + 0.5, NOW + 2 * HOUR - DAY),
        (30_000, NOW, 0),
    ],
)
def test_the_border(days: int, now: float, floor: int) -> None:
    assert Retention(days, lambda: now).floor() == floor


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ((NOW - 9 * DAY, NOW), (NOW - DAY, NOW)),
        ((NOW - DAY, NOW), (NOW - DAY, NOW)),
        ((NOW - 60, NOW), (NOW - 60, NOW)),
        ((0, NOW - DAY - 1), (NOW - DAY, NOW - DAY - 1)),
        ((0, 5), (6, 5)),
    ],
)
def test_what_is_kept_of_a_range(wanted: tuple[int, int], kept: tuple[int, int]) -> None:
    retention = Retention(1, lambda: NOW)
    assert retention.kept(TimeRange(7, *wanted)) == TimeRange(7, *kept)
    assert FOR_EVER.kept(TimeRange(7, *wanted)) == TimeRange(7, *wanted)
    assert FOR_EVER.days == 0
