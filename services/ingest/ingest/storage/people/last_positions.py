"""Everybody's last detection, cached compactly: read once for all who ask, and exact for each.

One read tells everybody's version, and only those are read again whose version is another one. To
that comes what is not noted yet: nobody waits until it is.
"""

import hashlib
import logging
import time
from array import array
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple

from bson import Timestamp
from msgspec import Struct

from ingest.batcher import Batcher
from ingest.errors import StoreUnavailable
from ingest.rules import levels, where
from ingest.rules.request_parameters import StaffId
from ingest.rules.retention import FOR_EVER, Retention
from ingest.storage.database.client import time_limit
from ingest.storage.detections.arrivals import BATCH
from ingest.storage.detections.documents import Document
from ingest.storage.people.latest import Entry, Latest
from ingest.storage.people.notes import MUCH, Notes, TooMuch

log = logging.getLogger(__name__)

# A database that does not tell what is new, or the versions, in this time has too much to do, or a
# shard is missing: the answer says that it is not complete.
NEW_SECONDS = VERSIONS_SECONDS = 0.8
# Who knows nobody yet has nothing else to tell: nearly all the time that the gateway gives.
FIRST_SECONDS = 1.2
# And what is new of those who answer, and their versions, in these.
THERE_SECONDS = 0.4
# How many stamps are looked at: ten seconds of a drain. More detections than so many
# cannot be grouped in that time.
MOST_STAMPS, MOST_NEW = 200_000, 100_000
# How many people are read again with one command.
GROUP = 500
# A page asks every few seconds: what was found before that says nothing of now.
ASKED_LATELY_SECONDS = 20


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
    heard_at: int  # the same by our clock: a phone's may be wrong
    rssi: int | None
    beacon: HeardBeacon
    name: int  # of all that is told of it


class People(NamedTuple):
    """Everybody, by staff id; `tag` changes with all that is told of anybody."""

    staff: list[LastHeard]
    heard_at: "array[int]"
    tag: str
    complete: bool  # else a shard did not answer, or what is newest could not be told in time

    def since(self, floor: int) -> "People":
        """Return those who were heard at a unix second or later."""
        if not floor or min(self.heard_at, default=floor) >= floor:
            return self
        return _people(
            [person for person in self.staff if person.heard_at >= floor], complete=self.complete
        )


class _Latest(NamedTuple):
    """Everybody's versions, and of whom something is not noted yet where he was last heard."""

    staff_ids: list[StaffId]
    versions: list[int]
    ahead: dict[StaffId, LastHeard]
    read_at: Timestamp | None
    complete: bool


class LastPositions:
    """Caches everybody's last detection."""

    def __init__(
        self,
        latest: Latest,
        notes: Notes,
        rule: levels.Rule,
        any_answers: Callable[[float], bool],
        retention: Retention = FOR_EVER,
    ) -> None:
        self._retention = retention
        self._any_answers = any_answers  # of the shards, in so many seconds
        self._latest = latest
        self._notes = notes
        self._rule = rule
        self._cached: dict[StaffId, LastHeard] = {}  # as it is noted
        self._ahead: dict[StaffId, LastHeard] = {}  # than what is noted
        self._people = People([], array("q"), "", complete=False)
        self._doubtful = False  # whether a shard did not answer when it was last asked
        self._late_since: float | None = None  # not everybody was told in time since then
        self._asked_at = 0.0
        self._pool = ThreadPoolExecutor(1, "everyone")
        self._reads: Batcher[None, People] = Batcher(self._read, self._pool)

    def forget(self, is_forgotten: Callable[[StaffId], bool]) -> None:
        """Let go of the forgotten, when what is being read is answered."""
        self._pool.submit(self._forget, is_forgotten)

    def _forget(self, is_forgotten: Callable[[StaffId], bool]) -> None:
        for known in (self._cached, self._ahead):
            for staff_id in [*filter(is_forgotten, known)]:
                del known[staff_id]
        staff = [person for person in self._people.staff if not is_forgotten(person.staff_id)]
        self._people = _people(staff, complete=self._people.complete)

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()

    def read(self) -> People:
        """Return everybody with all that was acknowledged before the call.

        Of whom all is due, nobody is told. Raises StoreUnavailable.
        """
        return self._reads.call(None).since(self._retention.floor())

    def clock_skews(self, since: int) -> list[int]:
        """Return our clock less the phone's of those heard since a unix second, as last read."""
        return [
            person.heard_at - person.timestamp
            for person in self._people.staff
            if person.heard_at >= since
        ]

    @property
    def late_seconds(self) -> int:
        """How long not everybody could be told in time; 0: they were, or nobody asks."""
        since, now = self._late_since, time.monotonic()
        asked_lately = now < self._asked_at + ASKED_LATELY_SECONDS
        return int(now - since) if since is not None and asked_lately else 0

    def _read(self, calls: list[None]) -> list[People | Exception]:
        """Read once for all who wait."""
        self._asked_at = time.monotonic()
        latest = self._find()
        changed = [
            staff_id
            for staff_id, version in zip(latest.staff_ids, latest.versions, strict=True)
            if (cached := self._cached.get(staff_id)) is None or cached.version != version
        ]
        for first in range(0, len(changed), GROUP):
            self._renew(changed[first : first + GROUP], latest.read_at)
        before = self._people
        same = latest.complete and before.complete and latest.ahead == self._ahead
        present = set(latest.staff_ids)
        unnoted = [staff_id for staff_id in latest.ahead if staff_id not in present]
        if changed or not (same and len(present) + len(unnoted) == len(before.staff)):
            if latest.complete:  # who is missing now is gone
                for staff_id in [*self._cached.keys() - present]:
                    del self._cached[staff_id]
            positions = (
                latest.ahead.get(staff_id) or self._cached.get(staff_id)
                for staff_id in chain(latest.staff_ids, unnoted)
            )
            self._people = _people(_sorted(positions), complete=latest.complete)
        self._ahead = latest.ahead
        return [self._people] * len(calls)

    def _find(self) -> _Latest:
        """Find out where everybody was last heard, or those whose shards answer."""
        if not self._doubtful:
            try:
                with time_limit(NEW_SECONDS if self._cached else FIRST_SECONDS):
                    ahead, read_at = self._arrived()
                with time_limit(VERSIONS_SECONDS if self._cached else FIRST_SECONDS):
                    everybody = self._latest.every_version(read_at)
                self._late_since = None
                return _Latest(*everybody, ahead, read_at, complete=True)
            except TooMuch as error:
                log.info("not everybody is told: %s", error)
            except StoreUnavailable:
                self._doubtful = True
                if self._late_since is None:
                    self._late_since = time.monotonic()
        try:
            return self._find_there()
        except StoreUnavailable:
            # It has too much to do to tell, but it answers: what is known is told.
            if not (self._cached and self._any_answers(THERE_SECONDS)):
                raise
            known = list(self._cached), [person.version for person in self._cached.values()]
            return _Latest(*known, self._ahead, None, complete=False)

    def _find_there(self) -> _Latest:
        """Do so for those whose shards answer, or with the newest alone.

        Raises StoreUnavailable.
        """
        with time_limit(THERE_SECONDS):
            arrived, is_all = self._notes.arrived_there()
        with time_limit(THERE_SECONDS):
            staff_ids, versions, all_answer = self._latest.every_version_there()
        self._doubtful = not all_answer
        if is_all and all_answer:
            self._late_since = None
        ahead = self._with(arrived, None)
        latest = _Latest(staff_ids, versions, ahead, None, complete=is_all and all_answer)
        if not (latest.complete or latest.staff_ids or latest.ahead):
            raise StoreUnavailable("no shard answers")
        return latest

    def _arrived(self) -> tuple[dict[StaffId, LastHeard], Timestamp | None]:
        """Return where those were last heard of whom something is not noted yet."""
        ahead: dict[StaffId, LastHeard] = {}
        with self._notes.unnoted(MOST_STAMPS, NEW_SECONDS) as unnoted:
            if len(unnoted) > MUCH or not unnoted.is_all:
                self._notes.hurry()
            if len(unnoted) > MOST_NEW or not unnoted.is_all:
                raise TooMuch("too much is new")
            people = unnoted.people(unnoted.wanted)
            while batch := list(islice(people, BATCH)):
                ahead |= self._with(
                    {staff_id: shown for staff_id, shown, _ in batch}, unnoted.read_at
                )
            return ahead, unnoted.read_at

    def _with(
        self, arrived: dict[StaffId, list[Document]], as_of: Timestamp | None
    ) -> dict[StaffId, LastHeard]:
        entries = self._latest.entries_with(arrived, as_of) if arrived else ()
        return {entry.staff_id: _last_heard(entry, self._rule) for entry in entries}

    def _renew(self, staff_ids: list[StaffId], as_of: Timestamp | None) -> None:
        for staff_id in staff_ids:  # whoever is not found any more is read again next time
            self._cached.pop(staff_id, None)
        for entry in self._latest.entries(staff_ids, as_of):
            self._cached[entry.staff_id] = _last_heard(entry, self._rule)


def _last_heard(entry: Entry, rule: levels.Rule) -> LastHeard:
    last = where.settled(entry.recent, rule)
    beacon = _shared(HeardBeacon(last.level, last.location, last.mac))
    text = f"{entry.staff_id!r} {last.timestamp} {last.heard_at} {last.rssi} {beacon!r}".encode()
    name = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
    return LastHeard(
        entry.staff_id, entry.version, last.timestamp, last.heard_at, last.rssi, beacon, name
    )


@lru_cache(2048)
def _shared(beacon: HeardBeacon) -> HeardBeacon:
    """Return one object for all who heard the same beacon."""
    return beacon


def _sorted(positions: Iterable[LastHeard | None]) -> list[LastHeard]:
    """Sort those who are there by staff id, numbers first: without a key in memory for each."""
    numbers: list[LastHeard] = []
    texts: list[LastHeard] = []
    for at in filter(None, positions):
        (texts if isinstance(at.staff_id, str) else numbers).append(at)
    for some in (numbers, texts):
        some.sort(key=attrgetter("staff_id"))
    numbers += texts
    return numbers


def _people(staff: list[LastHeard], *, complete: bool) -> People:
    names = array("Q", (person.name for person in staff))
    tag = hashlib.blake2b(names, digest_size=8, key=b"complete" if complete else b"").hexdigest()
    return People(staff, array("q", (person.heard_at for person in staff)), tag, complete)
