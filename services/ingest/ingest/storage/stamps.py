"""Stamps: when the database stored what, by which a reader knows what it has not seen yet.

MongoDB gives each detection that it stores or changes the time of its logical clock, which never
goes back. The commit follows its stamp within `SETTLE_SECONDS`, less what a read may take, or the
detection is stamped again before anybody hears of it. So whatever a reader has not seen yet has a
later stamp than the newest that it has seen, less `SETTLE_SECONDS`; what is older is settled. That
is true of one server; `storage/notes.py` says what it takes for several shards.
"""

import time
from typing import Any

from bson import Timestamp
from pymongo.cursor import Cursor
from pymongo.errors import OperationFailure

from ingest.errors import StoreUnavailable

# The field of a detection.
STAMP = "stored"
# What is stored with this gets MongoDB's time in its place, what is updated with this as well.
NEW = Timestamp(0, 0)
RENEWED: dict[str, Any] = {"$currentDate": {STAMP: {"$type": "timestamp"}}}
# What a command may take that stores detections, or reads stamps. The time-outs are shorter.
WRITE_SECONDS, READ_SECONDS = 3, 2
# Both, and what whole seconds and a clock that is a little ahead may add.
SETTLE_SECONDS = WRITE_SECONDS + READ_SECONDS + 3

_BAD_VALUE = 2  # what MongoDB says of a hint to an index that is not there


def number(stamp: Timestamp) -> int:
    """Return a stamp as a number: later is larger."""
    return stamp.time << 32 | stamp.inc


def stamp(number: int) -> Timestamp:
    """Return the stamp of a number."""
    return Timestamp(number >> 32, number & 0xFFFFFFFF)


def settled(newest: int) -> int:
    """Return the last stamp after which a reader may have missed something; as numbers."""
    return max(0, (newest >> 32) - SETTLE_SECONDS) << 32


class Clock:
    """Tells whether the stamps of a command are close enough to its commit."""

    def __init__(self) -> None:
        self._last: tuple[int, float] | None = None  # the database's time, and ours then

    def is_close(self, began: float, at: Timestamp | None) -> bool:
        """Judge a command by when it began (`time.monotonic`), and its reply's operation time.

        It stamped after it began. If it was quick by our clock, stamp and commit differ by more
        only if the database's clock was set ahead in between: then its time has grown by more than
        ours.
        """
        now = time.monotonic()
        if at is None:
            return False
        last, self._last = self._last, (at.time, now)
        if last is None or now - began > WRITE_SECONDS:
            return False
        return at.time - last[0] <= now - last[1] + 1


def read(cursor: Cursor[dict[str, Any]], index: str) -> list[dict[str, Any]]:
    """Read stamps by an index, or without it while it is being made. StoreUnavailable: too slow."""
    began = time.monotonic()
    try:
        found = list(cursor.hint(index))
    except OperationFailure as error:
        if error.code != _BAD_VALUE:
            raise
        found = list(cursor.clone().hint(None))
    check_quick(began)
    return found


def check_quick(began: float) -> None:
    """Raise StoreUnavailable for a read that took so long that it may have missed something."""
    if time.monotonic() - began > READ_SECONDS:
        raise StoreUnavailable("the database is too slow to tell what is new")
