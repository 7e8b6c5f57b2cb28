"""The collection `lost_contacts`: what became of people who are not heard any more."""

import contextlib
import math
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pymongo
from pymongo.database import Database
from pymongo.write_concern import WriteConcern

from common import schema
from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.driver import domain_errors, readable

STATES = ("acknowledged", "gone_home")
# Nobody is looked for after so long.
KEPT_SECONDS = 2 * 86400
WRITE_SECONDS = 2.0
# How soon a service sees what another one wrote, and how long a reader may wait for it.
CHECK_SECONDS, READ_SECONDS = 2.0, 0.3

Document = dict[str, Any]


class LostContact(NamedTuple):
    """What somebody said of a person, about a detection after which nothing was heard."""

    state: str  # one of STATES
    by: str
    at: int  # unix seconds
    timestamp: int  # of that detection


class LostContacts:
    """Owns the collection, which lies on one shard: a small document for each person."""

    def __init__(self, database: Database[Document]) -> None:
        self._stored = database[schema.LOST_CONTACTS.name].with_options(
            write_concern=WriteConcern("majority")
        )
        self._known: dict[StaffId, LostContact] = {}
        self._due = -math.inf
        self._reading = threading.Lock()

    def known(self) -> Mapping[StaffId, LostContact]:
        """Return all, by staff id; while the database is away, those that were read last."""
        if time.monotonic() >= self._due:
            with self._reading:
                if time.monotonic() >= self._due:
                    with contextlib.suppress(StoreUnavailable):
                        self._known = self._read()
                    self._due = time.monotonic() + CHECK_SECONDS
        return self._known

    def put(self, staff_id: StaffId, lost: LostContact) -> None:
        """Store it in the place of what was said of that person before. Raises StoreUnavailable."""
        with domain_errors(), pymongo.timeout(WRITE_SECONDS):
            self._stored.replace_one({"_id": staff_id}, lost._asdict(), upsert=True)
            self._stored.delete_many({"at": {"$lt": lost.at - KEPT_SECONDS}})
        with self._reading:  # what is being read may lack it
            self._due = -math.inf

    def forget(self, staff_ids: Iterable[StaffId]) -> None:
        """Remove what was said of people. Raises StoreUnavailable."""
        with domain_errors(), pymongo.timeout(WRITE_SECONDS):
            self._stored.delete_many({"_id": {"$in": list(staff_ids)}})

    def _read(self) -> dict[StaffId, LostContact]:
        with domain_errors(), pymongo.timeout(READ_SECONDS):
            return dict(readable(_item, self._stored.find()))


def _item(document: Document) -> tuple[StaffId, LostContact]:
    return document.pop("_id"), LostContact(**document)
