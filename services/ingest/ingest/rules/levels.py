"""On which level somebody is, when a beacon may be heard through the floor."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar


class Rule(NamedTuple):
    """When somebody has changed level; `hits` of 1 believes each detection at once."""

    hits: int
    window_seconds: int
    margin_db: int
    silence_seconds: int


class Heard(Protocol):
    """What of a detection decides; unix seconds and dBm."""

    @property
    def level(self) -> str: ...  # noqa: D102
    @property
    def timestamp(self) -> int: ...  # noqa: D102
    @property
    def rssi(self) -> int | None: ...  # noqa: D102
    @property
    def heard_at(self) -> int: ...  # noqa: D102


OneHeard = TypeVar("OneHeard", bound=Heard)


def settled(recent: Sequence[OneHeard], rule: Rule) -> OneHeard:
    """Return the newest detection of the level that somebody is on; `recent` is newest first.

    Followed from the oldest on, the level changes with a detection on another one that

    - is the last of `hits` in a row on that level within `window_seconds`, or
    - is at least `margin_db` stronger than the last one on the old level, where both strengths
      are known, or
    - comes more than `silence_seconds` after the last one on the old level.

    So what is returned is at most `silence_seconds` older than the newest detection.
    """
    current = recent[-1]
    row: list[int] = []  # times on the other level since the current one was last heard
    other = None
    for heard in reversed(recent):
        if heard.level == current.level:
            current, other, row = heard, None, []
            continue
        row = [*row, heard.heard_at] if heard.level == other else [heard.heard_at]
        other = heard.level
        in_a_row = row[-rule.hits :]
        if (
            (len(in_a_row) == rule.hits and in_a_row[-1] - in_a_row[0] <= rule.window_seconds)
            or _is_stronger(heard, current, rule.margin_db)
            or heard.heard_at - current.heard_at > rule.silence_seconds
        ):
            current, other, row = heard, None, []
    return current


def _is_stronger(heard: Heard, current: Heard, margin_db: int) -> bool:
    """Tell whether it is by so much; a strength that is not known never wins, nor loses."""
    if heard.rssi is None or current.rssi is None:
        return False
    return heard.rssi >= current.rssi + margin_db
