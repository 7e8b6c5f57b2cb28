"""Each of the three ways to another level, at its edge."""

from typing import NamedTuple

import pytest

from ingest.rules.levels import Rule, settled

RULE = Rule(hits=3, window_seconds=30, margin_db=10, silence_seconds=60)


class Heard(NamedTuple):
    level: str
    timestamp: int
    rssi: int | None = -60

    @property
    def heard_at(self) -> int:
        return self.timestamp


def level(
    *walk: tuple[str, int] | tuple[str, int, int | None], rule: Rule = RULE
) -> tuple[str, int]:
    """Return where a walk, the oldest first, has led, and when that was heard."""
    # Levels that are equal, and each a text of its own, as a database gives them.
    heard = [Heard(f"level {name}", *more) for name, *more in reversed(walk)]
    detection = settled(heard, rule)
    return detection.level.removeprefix("level "), detection.timestamp


def test_one_detection_is_all_that_is_known() -> None:
    assert level(("4", 7)) == ("4", 7)


def test_the_newest_of_the_same_level_is_returned() -> None:
    assert level(("4", 0), ("5", 1), ("4", 2)) == ("4", 2)


@pytest.mark.parametrize(("last", "expected"), [(40, ("5", 40)), (41, ("4", 9))])
def test_hits_in_a_row_within_the_window(last: int, expected: tuple[str, int]) -> None:
    assert level(("4", 9), ("5", 10), ("5", 20), ("5", last)) == expected


def test_only_the_last_hits_of_a_row_count() -> None:
    assert level(("4", 0), ("5", 1), ("5", 30), ("5", 40), ("5", 59)) == ("5", 59)
    quick = RULE._replace(window_seconds=0)
    assert level(("4", 0), ("5", 1), ("5", 1), rule=quick) == ("4", 0)
    assert level(("4", 0), ("5", 1), ("5", 1), ("5", 1), rule=quick) == ("5", 1)


def test_a_row_ends_where_somebody_is_heard_elsewhere() -> None:
    assert level(("4", 0), ("5", 1), ("5", 2), ("6", 3), ("5", 4)) == ("4", 0)
    assert level(("4", 0), ("5", 1), ("5", 2), ("4", 3), ("5", 4)) == ("4", 3)
    assert level(("4", 0), ("5", 1), ("6", 2), ("6", 3), ("6", 4)) == ("6", 4)
    moved = [("4", 0), ("5", 1), ("5", 2), ("5", 3)]
    assert level(*moved, ("4", 4), ("4", 5)) == ("5", 3)
    assert level(*moved, ("4", 4), ("4", 5), ("4", 6)) == ("4", 6)


def test_a_row_begins_anew_after_a_change() -> None:
    assert level(("4", 0), ("5", 1), ("4", 2, -49), ("5", 3), ("5", 4)) == ("4", 2)
    assert level(("4", 0), ("5", 1), ("6", 2, -50), ("5", 3), ("5", 4)) == ("6", 2)


@pytest.mark.parametrize(("rssi", "expected"), [(-30, "5"), (-50, "5"), (-51, "4"), (-70, "4")])
def test_the_margin_over_the_last_on_the_old_level(rssi: int, expected: str) -> None:
    assert level(("4", 0, -20), ("4", 1, -60), ("5", 2, rssi))[0] == expected
    assert level(("4", 1, -57), ("5", 2, rssi + 3))[0] == expected


@pytest.mark.parametrize(("when", "expected"), [(61, "4"), (62, "5")])
def test_the_silence_of_the_old_level(when: int, expected: str) -> None:
    assert level(("4", 0), ("4", 1), ("5", when))[0] == expected
    assert level(("4", 5), ("5", when + 4))[0] == expected


def test_a_strength_that_is_not_known_never_wins_but_counts_as_heard() -> None:
    weak = [("4", n, -55) for n in range(8)]
    assert level(*weak, ("5", 8, None))[0] == "4"
    assert level(("4", 0, None), ("5", 1, -20))[0] == "4"
    assert level(*weak, ("5", 8, None), ("5", 9, None), ("5", 10, None)) == ("5", 10)


def test_with_one_hit_each_detection_is_believed() -> None:
    believed = RULE._replace(hits=1)
    assert level(("4", 0), ("5", 1), ("4", 2), ("6", 3, -99), rule=believed) == ("6", 3)
