"""Where somebody is: of what was heard within some seconds the strongest counts, not the last."""

from collections.abc import Collection, Iterator
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Generic, NamedTuple, Protocol, TypeVar

from ingest.rules import levels
from ingest.rules.levels import Heard, Rule

# The name of every place that is not ours: of a beacon that the directory does not have.
UNKNOWN = "unknown"
# How many of the newest detections decide: three seconds of a phone that hears five beacons each.
RECENT = 16
# A place is as strong as the mean of what was heard of it, which forgets half in this time. The
# noise of a radio is another one each second, and from one room to the next one walks 8 s.
HALF_LIFE_SECONDS = 1.0
# What a place loses that is not heard any more: now and then a beacon is missed.
FALL_DB_PER_SECOND = 1.5
# By how much another place has to be stronger: between two rooms nobody goes to and fro.
MARGIN_DB = 2.0
# The level is that of the strongest beacon within this time: less than the pauses of a phone.
SCAN_SECONDS = 3
# A strength that is not known is weaker than what any receiver reports.
WEAKEST_DBM = -128.0


class HeardAt(Heard, Protocol):
    """What of a detection decides on the place."""

    @property
    def location(self) -> str: ...  # noqa: D102


OneHeard = TypeVar("OneHeard", bound=HeardAt)


def settled(recent: Collection[OneHeard], rule: Rule) -> OneHeard:
    """Return the newest detection of the place where somebody is, of what was heard last.

    First of the level, by `levels.settled`, then of the place on it that is the strongest. What is
    not ours counts when nothing of ours was heard for `silence_seconds`. So what is returned is at
    most so much, and SCAN_SECONDS, older than the newest of ours.
    """
    newest_first = sorted(map(_sighting, recent), key=_ORDER, reverse=True)
    newest = newest_first[0]
    ours = [detection for detection in newest_first if detection.place[1] != UNKNOWN]
    if not ours or newest.at - ours[0].at > rule.silence_seconds:
        return newest.heard
    of_level = ours[0].heard
    if any(detection.place[0] != of_level.level for detection in ours):
        of_level = levels.settled([detection.heard for detection in _strongest(ours)], rule)
    since = min(of_level.heard_at, ours[0].at - rule.silence_seconds)
    return _strongest_place(
        [
            detection
            for detection in ours
            if detection.place[0] == of_level.level and detection.at >= since
        ]
    )


class _Sighting(NamedTuple, Generic[OneHeard]):
    """A detection, and by what it is compared."""

    at: int
    # What a clock that is ahead stamped, and came in one batch, is in the order of that clock.
    timestamp: int
    dbm: float
    place: tuple[str, str]  # level and location
    heard: OneHeard


_ORDER = itemgetter(0, 1, 2, 3)
_SCAN = itemgetter(0, 1)


def _sighting(heard: OneHeard) -> _Sighting[OneHeard]:
    dbm = WEAKEST_DBM if heard.rssi is None else heard.rssi
    place = heard.level, heard.location
    return _Sighting(heard.heard_at, heard.timestamp, dbm, place, heard)


def _strongest(newest_first: list[_Sighting[OneHeard]]) -> Iterator[_Sighting[OneHeard]]:
    """Yield for each scan what was strongest in it and just before."""
    passed = 0
    for (at, _), scan in groupby(newest_first, _SCAN):
        near = takewhile(lambda detection: detection.at > at - SCAN_SECONDS, newest_first[passed:])  # noqa: B023
        yield max(near, key=itemgetter(2))
        passed += len(list(scan))


def _strongest_place(newest_first: list[_Sighting[OneHeard]]) -> OneHeard:
    """Return the newest detection of the strongest place."""
    last: dict[tuple[str, str], _Sighting[OneHeard]] = {}  # of each place, with the mean as dbm
    current = None
    for (at, _), scan in groupby(reversed(newest_first), _SCAN):
        for place, one in {
            detection.place: detection for detection in scan
        }.items():  # the strongest stays
            last[place] = one._replace(dbm=_mean(last.get(place), one))
        now = {place: one.dbm - FALL_DB_PER_SECOND * (at - one.at) for place, one in last.items()}
        strongest = max(now, key=now.__getitem__)
        if current is None or now[strongest] >= now[current] + MARGIN_DB:
            current = strongest
    return last[current or newest_first[0].place].heard


def _mean(before: _Sighting[OneHeard] | None, one: _Sighting[OneHeard]) -> float:
    if before is None or before.dbm == WEAKEST_DBM:
        return one.dbm
    if one.dbm == WEAKEST_DBM:
        return before.dbm
    share: float = 0.5 ** (max(1, one.at - before.at) / HALF_LIFE_SECONDS)
    return share * before.dbm + (1 - share) * one.dbm
