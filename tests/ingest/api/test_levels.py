"""Level hysteresis: through the floor nobody moves, by the stairs everybody does."""

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from ingest.rules.levels import Rule, settled
from ingest.rules.where import RECENT

RULE = Rule(hits=3, window_seconds=30, margin_db=10, silence_seconds=20)
OFF = RULE._replace(hits=1)
HOME, OTHER = "4", "5"


class Heard(NamedTuple):
    level: str
    timestamp: int
    rssi: int | None = -60

    @property
    def heard_at(self) -> int:
        return self.timestamp


def heard(level: str, timestamp: int, rssi: int = -60) -> Heard:
    return Heard(level, timestamp, rssi)


def latest(walk: list[Heard]) -> list[Heard]:
    """Return what `latest` keeps of a walk."""
    return sorted(walk, key=lambda one: one.timestamp, reverse=True)[:RECENT]


def levels(walk: list[Heard], rule: Rule = RULE) -> list[str]:
    """Return the level after each detection of a walk."""
    return [settled(latest(walk[:n]), rule).level for n in range(1, len(walk) + 1)]


def every_four_seconds(text: str, **more: Any) -> list[Heard]:
    return [heard(level, 4 * number, **more) for number, level in enumerate(text)]


def test_examples() -> None:
    assert "".join(levels(every_four_seconds("44445444"))) == "44444444"
    assert "".join(levels(every_four_seconds("44445544"))) == "44444444"
    assert "".join(levels(every_four_seconds("44445555"))) == "44444455"
    assert "".join(levels(every_four_seconds("44445555"), OFF)) == "44445555"
    louder = [*every_four_seconds("444"), heard("5", 12, -50)]
    assert levels(louder)[-1] == "5"
    assert levels([*louder[:3], heard("5", 12, -51)])[-1] == "4"
    later = [*every_four_seconds("444"), heard("5", 8 + 21)]
    assert levels(later)[-1] == "5"
    assert levels([*later[:3], heard("5", 8 + 20)])[-1] == "4"


RUN_AT_HOME = st.integers(RULE.hits, 6)
RUN_ELSEWHERE = st.integers(1, RULE.hits - 1)
GAP = st.integers(1, 4)
QUIETER = st.integers(0, RULE.margin_db - 1)


@st.composite
def flickering(draw: st.DrawFn) -> list[Heard]:
    """Somebody on one level who now and then hears others, never `hits` times in a row."""
    walk: list[Heard] = []
    timestamp = 0

    def hear(level: str, times: int) -> None:
        nonlocal timestamp
        for _ in range(times):
            timestamp += draw(GAP)
            walk.append(heard(level, timestamp, -60 + draw(QUIETER)))

    hear(HOME, RULE.hits)
    for _ in range(draw(st.integers(1, 8))):
        for level in draw(st.lists(st.sampled_from([OTHER, "3"]), max_size=1)):
            hear(level, draw(RUN_ELSEWHERE))
        hear(HOME, draw(RUN_AT_HOME))
    return walk


@given(walk=flickering())
def test_flicker_moves_nobody(walk: list[Heard]) -> None:
    for number in range(1, len(walk) + 1):
        recent = latest(walk[:number])
        assert settled(recent, RULE).level == HOME


@given(walk=flickering(), gaps=st.lists(st.integers(1, 10), min_size=3, max_size=8))
def test_a_move_is_seen_at_the_third_detection(walk: list[Heard], gaps: list[int]) -> None:
    timestamp = walk[-1].timestamp
    for gap in gaps:
        timestamp += gap
        walk.append(heard("9", timestamp))
    assert levels(walk)[-(len(gaps) - RULE.hits + 1) :] == ["9"] * (len(gaps) - RULE.hits + 1)


@given(walk=flickering(), others=st.lists(st.sampled_from("567"), min_size=1, max_size=7))
def test_a_level_no_longer_heard_is_left(walk: list[Heard], others: list[str]) -> None:
    start = walk[-1].timestamp
    for number, level in enumerate(others):
        walk.append(heard(level, start + number))
    walk.append(heard("8", start + RULE.silence_seconds + 8))
    assert levels(walk)[-1] != HOME


ANY = st.builds(heard, st.sampled_from("345"), st.integers(0, 200), st.integers(-127, 20))


@given(walk=st.lists(ANY, min_size=1, max_size=20))
def test_what_is_told_was_heard_not_long_ago(walk: list[Heard]) -> None:
    recent = latest(walk)
    found = settled(recent, RULE)
    assert found in recent
    assert recent[0].timestamp - found.timestamp <= RULE.silence_seconds
    assert settled(recent, OFF).timestamp == recent[0].timestamp
    same = next(one for one in recent if one.level == found.level)
    assert found.timestamp == same.timestamp
