"""Forgetting people: what was stored, what waits, and what is cached of them.

Whoever is to be forgotten is put into the list of erasures first. From then on nothing that came
before is stored any more, whatever waits where. What comes later is new: the person is back.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from common.erasures import NOBODY
from ingest.recording.erasure_list import ErasureList
from ingest.recording.spools import Spools
from ingest.rules.request_parameters import MAX_UNIX_SECONDS, StaffId, TimeRange
from ingest.storage.database.client import Client, time_limit
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.forgotten import Forgotten
from ingest.storage.detections.inserts import Inserts
from ingest.storage.people.deleted import Deleted
from ingest.storage.people.latest import Latest
from ingest.storage.people.lost_contacts import LostContacts
from ingest.storage.people.people import People
from ingest.storage.sealed.border import Border
from ingest.storage.sealed.damage import leaving_out
from ingest.storage.sealed.sealed import Sealed

# How long one call deletes before it answers with its progress.
DELETE_SECONDS = 5.0
# Who has looked at the list before may store for so long what came before.
SETTLE_SECONDS = 8.0
# So long after the beginning one goes on; then it begins anew.
GO_ON_SECONDS = 3600
COUNT_SECONDS = 10.0
# The rest that others get between two pieces.
REST_SECONDS = 0.02


class Progress(NamedTuple):
    """How many detections went, and how many are left at most; None: all of it is done."""

    deleted: int
    remaining: int | None


class Stored(NamedTuple):
    """The collections that hold something of people."""

    detections: Detections
    staff: Forgotten
    sealed: Sealed
    border: Border
    latest: Latest
    deleted: Deleted
    people: People
    lost_contacts: LostContacts

    @classmethod
    def of(cls, client: Client) -> "Stored":
        """Return those of a database."""
        staff, database = client.staff, client.database
        detections, latest = Detections(staff), Latest(client.latest)
        lost_contacts = LostContacts(database)
        return cls(
            detections,
            Forgotten(staff),
            Sealed(staff),
            Border(database),
            latest,
            Deleted(detections, Inserts(staff), latest, lost_contacts),
            People(database),
            lost_contacts,
        )


class Forgetting:
    """Deletes what the database has of somebody."""

    def __init__(self, erasure_list: ErasureList, stored: Stored) -> None:
        self._list = erasure_list
        self._stored = stored

    def forget(self, staff_id: StaffId, *, go_on: bool) -> Progress:
        """Forget somebody, for some seconds; then go on until nothing remains.

        Who goes on deletes nothing that came since the beginning, and looks once more when all is
        stored that was on its way then.
        Raises StoreUnavailable: some of it is done; to go on does the rest.
        """
        now = time.time()
        begun = self._list.current().until(staff_id)
        is_begun = go_on and begun > now - GO_ON_SECONDS
        until = begun if is_begun else self._list.add(staff_id)
        before = self._count(staff_id)
        if not is_begun:
            self._forget_name(staff_id)
        is_all = self._delete(staff_id, until, DELETE_SECONDS)
        after = self._count(staff_id)
        deleted = max(0, before - after)  # more may have come
        if not is_all:
            return Progress(deleted, after)
        if now < until + SETTLE_SECONDS:
            return Progress(deleted, 0)
        self._list.touch()  # what was read meanwhile may be cached
        return Progress(deleted, None)

    def forget_again(self, since: float) -> int:
        """Forget everybody once more who was forgotten since a unix second; return how many.

        Of a database that was restored, whose copy was begun then; and who was being forgotten at
        that moment. Raises StoreUnavailable.
        """
        erasures = self._list.current()
        again = {
            staff_id: until
            for staff_id in self._everybody()
            if (until := erasures.until(staff_id)) > since - GO_ON_SECONDS
        }
        for staff_id, until in again.items():
            if until > since:  # else it was gone before, and may be a new one
                self._forget_name(staff_id)
            while not self._delete(staff_id, until, DELETE_SECONDS):
                pass
        if again:
            self._list.touch()
        return len(again)

    def _forget_name(self, staff_id: StaffId) -> None:
        self._stored.people.remove(staff_id)
        self._stored.lost_contacts.forget([staff_id])

    def _delete(self, staff_id: StaffId, until: float, seconds: float) -> bool:
        """Delete what came until then; tell whether that is all of it."""
        end = time.monotonic() + seconds
        while self._stored.staff.delete_some(staff_id, until):
            if time.monotonic() > end:
                return False
            time.sleep(REST_SECONDS)
        if not self._stored.sealed.forget(staff_id, until):
            return False
        self._stored.deleted.replace([staff_id])
        self._stored.latest.remove_unstamped(staff_id)
        self._stored.border.forget(staff_id)
        return True

    def _count(self, staff_id: StaffId) -> int:
        with time_limit(COUNT_SECONDS), leaving_out():
            return self._stored.sealed.count(TimeRange(staff_id, 0, MAX_UNIX_SECONDS))

    def _everybody(self) -> list[StaffId]:
        """Return all people of whom the database has anything."""
        shown, _ = self._stored.latest.every_version(None)
        named = self._stored.people.read(0).teams
        lost = self._stored.lost_contacts.known()
        sealed = self._stored.sealed.staff_ids()
        stored = self._stored.detections.staff_ids()
        return list(dict.fromkeys([*stored, *sealed, *shown, *named, *lost]))


# What lets go of people in memory, given who they are.
Forget = Callable[[Callable[[StaffId], bool]], object]


class Forgetful:
    """Lets go of what this service holds of the forgotten, each time that the list was written."""

    def __init__(self, erasure_list: ErasureList, spools: Spools, caches: Sequence[Forget]) -> None:
        self._list = erasure_list
        self._spools = spools
        self._caches = caches
        self._seen = NOBODY

    def look(self) -> None:
        """Look at the list; what fails of the spools is tried again at the next look."""
        erasures = self._list.current()
        self._spools.forget(erasures)
        if erasures is self._seen:
            return
        for forget in self._caches:
            forget(lambda staff_id: erasures.until(staff_id) > 0)
        self._seen = erasures
