"""Stamps: when the database stored what, by which a reader knows what it has not seen yet.

MongoDB gives each detection that it stores or changes the time of its logical clock, which never
goes back. The commit follows its stamp within `SETTLE_SECONDS`, less what a read may take, or the
detection is stamped again before anybody hears of it. So whatever a reader has not seen yet has a
later stamp than the newest that it has seen, less `SETTLE_SECONDS`; what is older is settled. That
is true of one server; `storage/people/note_positions.py` says what it takes for several shards.
"""

import time
from typing import Any, NamedTuple

from bson import Timestamp
from pymongo.cursor import Cursor
from pymongo.errors import OperationFailure

from common.schema import STAMP as STAMP  # storage has it from here
from ingest.errors import StoreUnavailable, without_frames
from ingest.storage.database.driver import BAD_VALUE

# What is stored with this gets MongoDB's time in its place, what is updated with this as well.
NEW = Timestamp(0, 0)
RENEWED: dict[str, Any] = {"$currentDate": {STAMP: {"$type": "timestamp"}}}
# What a command may take that stores detections, or reads stamps. The time-outs are shorter.
WRITE_SECONDS, READ_SECONDS = 3, 2
# Both, and what whole seconds and a clock that is a little ahead may add.
SETTLE_SECONDS = WRITE_SECONDS + READ_SECONDS + 3


def number(stamp: Timestamp | None) -> int:
    """Return a stamp as a number: later is larger, 0 is none."""
    return stamp.time << 32 | stamp.inc if stamp else 0


def stamp(number: int) -> Timestamp:
    """Return the stamp of a number."""
    return Timestamp(number >> 32, number & 0xFFFFFFFF)


def second_of(number: int) -> int:
    """Return the second of a stamp."""
    return number >> 32


def start_of(second: int) -> int:
    """Return, as a number, what no stamp of a second is before."""
    return second << 32


def settled(cluster_time: int) -> int:
    """Return the last stamp after which a reader may have missed something; as numbers.

    `cluster_time`: a time that the database told before or during the read. Not a stamp alone: a
    copy may have been restored into a server whose clock is behind its stamps.
    """
    return start_of(max(0, second_of(cluster_time) - SETTLE_SECONDS))


class Begun(NamedTuple):
    """When a command begins: by `time.monotonic`, and the last time that the database told."""

    at: float
    cluster_time: Timestamp


class Clock:
    """Tells whether the stamps of a command are close enough to its commit.

    The driver tells the database with each command the latest time that it was told. So a stamp is
    not before that, and the commit not after the time that the reply tells.
    """

    def __init__(self) -> None:
        self._cluster_time = NEW

    def begin(self) -> Begun:
        """Begin a command."""
        return Begun(time.monotonic(), self._cluster_time)

    def is_close(self, begun: Begun, cluster_time: Timestamp) -> bool:
        """Judge a command by the time that its reply told.

        It is never close when nothing was sent for a while: only the time of its reply is then
        known, and that the next one follows it.
        """
        self._cluster_time = max(self._cluster_time, cluster_time)
        quick = time.monotonic() - begun.at <= WRITE_SECONDS
        return (
            quick
            and begun.cluster_time <= cluster_time
            and cluster_time.time - begun.cluster_time.time <= WRITE_SECONDS
        )


def read(cursor: Cursor[dict[str, Any]], index: str) -> list[dict[str, Any]]:
    """Read stamps by an index, or without it while it is being made.

    Raises StoreUnavailable: too slow.
    """
    began = time.monotonic()
    try:
        rows = list(cursor.hint(index))
    except OperationFailure as error:
        if error.code != BAD_VALUE:
            raise
        without_frames(error)
        rows = list(cursor.clone().hint(None))
    check_quick(began)
    return rows


def check_quick(began: float) -> None:
    """Raise StoreUnavailable for a read that took so long that it may have missed something."""
    if time.monotonic() - began > READ_SECONDS:
        raise StoreUnavailable("the database is too slow to tell what is new")
