"""What names a state of somebody's detections, and what changed since another state.

A state is known by the stamps that are not settled (`storage/stamps.py`): who has seen all of them
has seen everything that was acknowledged. One small read of an index tells them.
"""

import hashlib
import random
import time
from array import array
from collections.abc import Collection as Many
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bson import Timestamp
from pymongo import DESCENDING
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from ingest.rules.request_parameters import StaffId
from ingest.storage.client import time_limit
from ingest.storage.documents import Document, unix_seconds
from ingest.storage.driver import domain_errors, find_there
from ingest.storage.indexes import BY_STAMP_OF_STAFF
from ingest.storage.latest import Latest
from ingest.storage.stamps import STAMP, check_quick, number, read, settled, stamp

# How many stamps are looked at, of each; the history of who has more is read again whole.
MAX_STAMPS = 2000
# What it may take to find after which stamps to ask while a shard is away, which takes all of it.
FLOORS_SECONDS = 0.4
_FIELDS = {"_id": 0, "staff_id": 1, STAMP: 1, "timestamp": 1}


class Mark(NamedTuple):
    """What is remembered of a state: its name, and the stamps that were not settled, in order."""

    name: int
    stamps: "array[int]"

    @property
    def newest(self) -> int:
        """The newest stamp, as a number."""
        return self.stamps[-1]


class State(NamedTuple):
    """A state of somebody's detections: the timestamp of each with a stamp after `floor`."""

    mark: Mark
    floor: int
    timestamps: dict[int, int]
    is_all: bool  # there are no more of them
    read_at: Timestamp | None  # the database's time: rows have to be read as of later

    def changed_since(self, mark: Mark) -> int | None:
        """Return the lowest timestamp that changed since a state, None if that is not known.

        It is not when a stamp is gone: of a database that was restored, or of a detection that was
        changed.
        """
        floor = settled(mark.newest)
        known = set(mark.stamps)
        if not self.is_all or self.floor > floor or not known <= self.timestamps.keys():
            return None
        changed = [
            timestamp
            for one, timestamp in self.timestamps.items()
            if one > floor and one not in known
        ]
        return min(changed, default=None)


class States:
    """Reads states."""

    def __init__(self, staff: Collection[Document], latest: Latest) -> None:
        # What a majority has is never rolled back: a state never stands for two histories.
        self._staff = staff.with_options(read_concern=ReadConcern("majority"))
        self._latest = latest

    def read(self, known: Mapping[StaffId, int]) -> dict[StaffId, State]:
        """Return each staff member's state; those without stamped detections are left out.

        `known`: the newest stamp that is known of each, 0 for none. What was acknowledged before
        the call is included. StoreUnavailable.
        """
        floors = self._floors(known, self._latest.newest_stamps)
        with domain_errors(), self._staff.database.client.start_session() as session:
            found = self._found(_after(floors), session)
            at = session.operation_time
            if len(found) > MAX_STAMPS:  # of all together
                return self._one_by_one(floors, session)
        return _states(floors, found, at)

    def read_there(self, known: Mapping[StaffId, int]) -> tuple[dict[StaffId, State], bool]:
        """Do the same for those whose shards answer; tell also whether all shards do.

        With a dead shard it takes all the time that it is given.
        """
        with time_limit(FLOORS_SECONDS):
            floors = self._floors(known, self._latest.newest_stamps_there)
        began = time.monotonic()
        find = {"filter": _after(floors), "projection": _FIELDS}
        there = find_there(self._staff, MAX_STAMPS + 1, find)
        check_quick(began)
        is_all = len(there.found) <= MAX_STAMPS
        return _states(floors, there.found, there.at, is_all=is_all), there.all_answered

    def _floors(self, known: Mapping[StaffId, int], newest_stamps: Any) -> dict[StaffId, int]:
        """Return after which stamp each staff member's detections are to be read."""
        unknown = [staff_id for staff_id, newest in known.items() if not newest]
        noted = newest_stamps(unknown) if unknown else {}
        return {one: settled(newest or noted.get(one, 0)) for one, newest in known.items()}

    def _one_by_one(
        self, floors: dict[StaffId, int], session: ClientSession
    ) -> dict[StaffId, State]:
        """Read the newest stamps of each: much was stored, or changed by a correction."""
        states: dict[StaffId, State] = {}
        for who, floor in floors.items():
            found = self._found(_after({who: floor}), session, newest=True)
            is_all = len(found) <= MAX_STAMPS
            states |= _states({who: floor}, found, session.operation_time, is_all=is_all)
        return states

    def _found(
        self, query: Document, session: ClientSession, *, newest: bool = False
    ) -> list[Document]:
        cursor = self._staff.find(query, _FIELDS, session=session)
        if newest:
            cursor = cursor.sort(STAMP, DESCENDING)
        return read(cursor.limit(MAX_STAMPS + 1).batch_size(MAX_STAMPS + 2), BY_STAMP_OF_STAFF)


def _states(
    floors: dict[StaffId, int],
    found: Sequence[Document],
    at: Timestamp | None,
    *,
    is_all: bool = True,
) -> dict[StaffId, State]:
    timestamps: dict[StaffId, dict[int, int]] = {}
    for one in found:
        stamps = timestamps.setdefault(one["staff_id"], {})
        stamps[number(one[STAMP])] = unix_seconds(one.get("timestamp"))
    return {
        staff_id: State(_mark(stamps, is_all=is_all), floors[staff_id], stamps, is_all, at)
        for staff_id, stamps in timestamps.items()
    }


def _mark(stamps: Many[int], *, is_all: bool) -> Mark:
    unsettled = settled(max(stamps))
    newest = array("Q", sorted(one for one in stamps if one > unsettled))
    name = hashlib.blake2b(newest, digest_size=8).digest()
    if not is_all:  # it proves nothing
        name = random.randbytes(8)  # noqa: S311  # nobody gains by guessing it
    return Mark(int.from_bytes(name, "big"), newest)


def _after(floors: dict[StaffId, int]) -> Document:
    each = [{"staff_id": who, STAMP: {"$gt": stamp(floor)}} for who, floor in floors.items()]
    return each[0] if len(each) == 1 else {"$or": each}
