"""What names a state of somebody's detections, and what changed since another state.

A state is known by the stamps that are not settled (`stamps.py`): who has seen all of them
has seen everything that was acknowledged. One small read of an index tells them. Where many came
at once, as a phone's backlog, the newest alone names them as soon as it is settled, too.
"""

import hashlib
import secrets
import time
from array import array
from collections.abc import Collection as Many
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bson import Timestamp
from pymongo import DESCENDING
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from ingest.rules.request_parameters import MAX_UNIX_SECONDS, StaffId
from ingest.storage.database.client import time_limit
from ingest.storage.database.driver import find_there, reading
from ingest.storage.database.indexes import BY_STAMP_OF_STAFF
from ingest.storage.detections.documents import Document, unix_seconds
from ingest.storage.detections.stamps import STAMP, check_quick, number, read, settled, stamp
from ingest.storage.people.latest import Latest

# How many stamps are looked at, of each; the history of who has more is read again whole.
MAX_STAMPS = 4000
# More than so many are named by the newest, once that is settled: else each request reads them all.
FEW = 32
_OF_NEWEST = b"newest"  # else such a name could be that of a state in which the others were missing
# How many of all are kept when there are more.
MAX_KEPT = 20_000
# What each question may take while a shard is away, which takes all of it: after which stamps to
# ask, which there are, and of whom nothing was told whether his shard answers.
FLOORS_SECONDS, STAMPS_SECONDS, SILENT_SECONDS = 0.25, 0.35, 0.2
NOTHING = MAX_UNIX_SECONDS + 1
_FIELDS = {"_id": 0, "staff_id": 1, STAMP: 1, "timestamp": 1}


class Mark(NamedTuple):
    """What is remembered of a state: its name, and in order the stamps after `floor`."""

    name: int
    stamps: "array[int]"
    floor: int

    @property
    def newest(self) -> int:
        """The newest stamp, as a number."""
        return self.stamps[-1]


class State(NamedTuple):
    """A state of somebody's detections: the timestamp of each with a stamp after `floor`."""

    mark: Mark
    floor: int
    timestamps: dict[int, int]
    is_all: bool  # else they are too many to keep
    read_at: Timestamp | None  # the database's time: rows have to be read as of later

    def changed_since(self, mark: Mark) -> int | None:
        """Return the lowest timestamp that changed since a state, None if that is not known.

        NOTHING: none did. It is not known when a stamp is gone: of a database that was restored, or
        of a detection that was changed.
        """
        known = set(mark.stamps)
        if not self.is_all or self.floor > mark.floor or not known <= self.timestamps.keys():
            return None
        changed = [
            timestamp
            for one, timestamp in self.timestamps.items()
            if one > mark.floor and one not in known
        ]
        return min(changed, default=NOTHING)


class States:
    """Reads states."""

    def __init__(self, staff: Collection[Document], latest: Latest) -> None:
        # What a majority has is never rolled back: a state never stands for two histories.
        self._staff = staff.with_options(read_concern=ReadConcern("majority"))
        self._latest = latest
        self._cluster_time = (
            0  # the last time of the database that was told with states, as a number
        )

    def read(self, known: Mapping[StaffId, Mark | None]) -> dict[StaffId, State]:
        """Return each staff member's state; those without stamped detections are left out.

        `known`: what is remembered of each. What was acknowledged before the call is included.
        Raises StoreUnavailable.
        """
        cluster_time = self._cluster_time
        floors, unknown = _floors(known)
        if unknown:
            noted, at = self._latest.newest_stamps(unknown)
            floors, cluster_time = floors | _settled(noted, at), max(cluster_time, number(at))
        with reading(self._staff) as session:
            rows = self._rows(_after(floors), session)
            if len(rows) > MAX_STAMPS:  # of all together
                states = self._one_by_one(floors, session, cluster_time)
            else:
                states = _states(floors, rows, session.operation_time, cluster_time)
            self._cluster_time = max(cluster_time, number(session.operation_time))
            return states

    def read_there(
        self, known: Mapping[StaffId, Mark | None]
    ) -> tuple[dict[StaffId, State], set[StaffId]]:
        """Do the same for those whose shards answer; return as well whose do not.

        With a dead shard it takes all the time that it is given.
        """
        cluster_time = self._cluster_time
        floors, unknown = _floors(known)
        if unknown:
            with time_limit(FLOORS_SECONDS):
                noted, at = self._latest.newest_stamps_there(unknown)
            floors, cluster_time = floors | _settled(noted, at), max(cluster_time, number(at))
        began = time.monotonic()
        find = {"filter": _after(floors), "projection": _FIELDS}
        with time_limit(STAMPS_SECONDS):
            there = find_there(self._staff, MAX_STAMPS + 1, find, BY_STAMP_OF_STAFF)
        check_quick(began)
        is_all = len(there.rows) <= MAX_STAMPS
        states = _states(
            floors, there.rows, there.at, cluster_time, is_all=is_all, has_newest=is_all
        )
        # Who has no stamps, or is beyond those that were looked at, may answer all the same.
        others = [] if there.all_answered else list(known.keys() - states.keys())
        silent = set(others) - self._latest.answering(others, SILENT_SECONDS) if others else set()
        return states, silent

    def _one_by_one(
        self, floors: dict[StaffId, int], session: ClientSession, cluster_time: int
    ) -> dict[StaffId, State]:
        """Read the newest stamps of each: much was stored, or changed by a correction."""
        states: dict[StaffId, State] = {}
        kept = 0
        for staff_id, floor in floors.items():
            rows = self._rows(_after({staff_id: floor}), session, newest=True)
            kept += len(rows)
            is_all = len(rows) <= MAX_STAMPS and kept <= MAX_KEPT
            states |= _states(
                {staff_id: floor}, rows, session.operation_time, cluster_time, is_all=is_all
            )
        return states

    def _rows(
        self, query: Document, session: ClientSession, *, newest: bool = False
    ) -> list[Document]:
        cursor = self._staff.find(query, _FIELDS, session=session)
        if newest:
            cursor = cursor.sort(STAMP, DESCENDING)
        return read(cursor.limit(MAX_STAMPS + 1).batch_size(MAX_STAMPS + 2), BY_STAMP_OF_STAFF)


def _floors(
    known: Mapping[StaffId, Mark | None],
) -> tuple[dict[StaffId, int], list[StaffId]]:
    """Return after which stamp each staff member's are to be read, and of whom that is not known.

    Of those it is after all: whoever has nothing in `latest` has little.
    """
    floors = {staff_id: mark.floor if mark else 0 for staff_id, mark in known.items()}
    return floors, [staff_id for staff_id, mark in known.items() if not mark]


def _settled(noted: dict[StaffId, int], at: Timestamp | None) -> dict[StaffId, int]:
    return {staff_id: settled(min(newest, number(at))) for staff_id, newest in noted.items()}


def _states(
    floors: dict[StaffId, int],
    rows: Sequence[Document],
    at: Timestamp | None,
    cluster_time: int,
    *,
    is_all: bool = True,
    has_newest: bool = True,
) -> dict[StaffId, State]:
    """Return states. `has_newest`: only older stamps are missing.

    `cluster_time`: the time that was known before.
    What is settled by a time that the database was told with the question was there to be found, or
    is stamped again. The time that it tells with the answer may be another shard's.
    """
    timestamps: dict[StaffId, dict[int, int]] = {}
    for row in rows:
        stamps = timestamps.setdefault(row["staff_id"], {})
        stamps[number(row[STAMP])] = unix_seconds(row.get("timestamp"))
    states: dict[StaffId, State] = {}
    for staff_id, by_stamp in timestamps.items():
        mark, newest = _mark(by_stamp, at, is_all=is_all, has_newest=has_newest), max(by_stamp)
        were_many = floors[staff_id] == newest - 1  # when the cached history was named, as below
        if has_newest and newest <= settled(cluster_time) and (were_many or len(mark.stamps) > FEW):
            named = array("Q", [newest])
            mark = Mark(_name(named, _OF_NEWEST), named, newest - 1)
        states[staff_id] = State(mark, floors[staff_id], by_stamp if is_all else {}, is_all, at)
    return states


def _mark(stamps: Many[int], at: Timestamp | None, *, is_all: bool, has_newest: bool) -> Mark:
    floor = settled(min(max(stamps), number(at)))
    unsettled = array("Q", sorted(stamp_ for stamp_ in stamps if stamp_ > floor))
    if is_all or (has_newest and min(stamps) <= floor):
        return Mark(_name(unsettled), unsettled, floor)
    return Mark(secrets.randbits(64), unsettled, floor)  # it proves nothing


def _name(stamps: "array[int]", kind: bytes = b"") -> int:
    return int.from_bytes(hashlib.blake2b(stamps, digest_size=8, person=kind).digest(), "big")


def _after(floors: dict[StaffId, int]) -> Document:
    conditions = [
        {"staff_id": staff_id, STAMP: {"$gt": stamp(floor)}} for staff_id, floor in floors.items()
    ]
    return conditions[0] if len(conditions) == 1 else {"$or": conditions}
