"""Everybody's last detection, cached compactly: read once for all who ask, and exact for each.

When what was stored is noted, one read tells everybody's version. Only those are read again whose
version is another one.
"""

import hashlib
from array import array
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

from bson import Timestamp
from msgspec import Struct

from ingest.batcher import Batcher
from ingest.errors import StoreUnavailable
from ingest.rules import levels, where
from ingest.rules.request_parameters import StaffId, by_staff_id
from ingest.storage.client import time_limit
from ingest.storage.latest import Entry, Latest
from ingest.storage.notes import Notes

# A database that takes no note, or does not tell the versions, in this time is one of which a shard
# is missing.
NOTE_SECONDS = VERSIONS_SECONDS = 0.8
# With what is new, which is asked for before, not longer either.
THERE_SECONDS = 0.5
# How many people are read again with one command.
GROUP = 500


class HeardBeacon(NamedTuple):
    """The beacon that was heard, and where it hung."""

    level: str
    location: str
    mac: str


class LastHeard(Struct, frozen=True, gc=False):
    """Where somebody was last heard; some 200 bytes."""

    staff_id: StaffId
    version: int
    timestamp: int  # unix seconds
    heard_at: float  # the same, or when we heard of it: a phone's clock may be ahead
    rssi: int | None
    beacon: HeardBeacon


class People(NamedTuple):
    """Everybody, by staff id; `tag` changes with every version."""

    staff: list[LastHeard]
    heard_at: "array[float]"
    tag: str
    read_at: Timestamp | None  # rows have to be read as of it; None when a shard did not answer

    @property
    def complete(self) -> bool:
        """Whether all shards answered: the people of the others are missing."""
        return self.read_at is not None


class Everyone:
    """Caches everybody's last detection."""

    def __init__(self, latest: Latest, notes: Notes, rule: levels.Rule) -> None:
        self._latest = latest
        self._notes = notes
        self._rule = rule
        self._cached: dict[StaffId, LastHeard] = {}
        self._people = People([], array("d"), "", None)
        self._doubtful = False  # whether a shard did not answer when it was last asked
        self._pool = ThreadPoolExecutor(1, "everyone")
        self._reads: Batcher[None, People] = Batcher(self._read, self._pool)

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()

    def read(self) -> People:
        """Return everybody with all that was acknowledged before the call. StoreUnavailable."""
        return self._reads.call(None)

    def _read(self, calls: list[None]) -> list[People | Exception]:
        """Read once for all who wait."""
        staff_ids, versions, read_at = self._versions()
        complete = read_at is not None
        if not complete and not staff_ids:
            raise StoreUnavailable("no shard answers")
        changed = [
            staff_id
            for staff_id, version in zip(staff_ids, versions, strict=True)
            if (cached := self._cached.get(staff_id)) is None or cached.version != version
        ]
        for first in range(0, len(changed), GROUP):
            self._renew(changed[first : first + GROUP], read_at)
        before = self._people
        if changed or not (complete and before.complete and len(staff_ids) == len(before.staff)):
            found = (self._cached.get(staff_id) for staff_id in staff_ids)
            staff = sorted((one for one in found if one), key=lambda one: by_staff_id(one.staff_id))
            if complete:  # who is missing now is gone
                self._cached = {one.staff_id: one for one in staff}
            self._people = _people(staff, read_at)
        else:
            self._people = before._replace(read_at=read_at)
        return [self._people] * len(calls)

    def _versions(self) -> tuple[list[StaffId], list[int], Timestamp | None]:
        """Return the staff ids and versions of those whose shards answer.

        When all do as well the database's time: they have all that was noted then.
        """
        if not self._doubtful:
            try:
                with time_limit(NOTE_SECONDS):
                    noted_at = self._notes.bring_up()
                with time_limit(VERSIONS_SECONDS):
                    return *self._latest.every_version(noted_at), noted_at
            except StoreUnavailable:
                self._doubtful = True
        is_noted = self._notes.bring_up_there()
        with time_limit(THERE_SECONDS):
            staff_ids, versions, at = self._latest.every_version_there()
        self._doubtful = at is None
        return staff_ids, versions, at if is_noted else None

    def _renew(self, staff_ids: list[StaffId], as_of: Timestamp | None) -> None:
        for staff_id in staff_ids:  # whoever is not found any more is read again next time
            self._cached.pop(staff_id, None)
        for entry in self._latest.entries(staff_ids, as_of):
            self._cached[entry.staff_id] = _last_heard(entry, self._rule)


def _last_heard(entry: Entry, rule: levels.Rule) -> LastHeard:
    last = where.settled(entry.recent, rule)
    heard_at = min(last.timestamp, last.received_at)
    beacon = _shared(HeardBeacon(last.level, last.location, last.mac))
    return LastHeard(entry.staff_id, entry.version, last.timestamp, heard_at, last.rssi, beacon)


@lru_cache(2048)
def _shared(beacon: HeardBeacon) -> HeardBeacon:
    """Return one object for all who heard the same beacon."""
    return beacon


def _people(staff: list[LastHeard], read_at: Timestamp | None) -> People:
    versions = array("q", (one.version for one in staff))
    tag = hashlib.blake2b(versions, digest_size=8, key=b"complete" if read_at else b"").hexdigest()
    return People(staff, array("d", (one.heard_at for one in staff)), tag, read_at)
