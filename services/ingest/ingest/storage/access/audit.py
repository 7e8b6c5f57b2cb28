"""The collection `audit`: who did what. MongoDB lets a service add to it, and nothing else."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pymongo
from bson import ObjectId
from pymongo import DESCENDING
from pymongo.database import Database

from common import schema
from common.audit_events import OF_A_PERSON, Event
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.driver import domain_errors

TIMEOUT_SECONDS = 2.0
# Of all entries, and how many are decoded at once.
SCAN_TIMEOUT_SECONDS, PIECE = 60.0, 200

Document = dict[str, Any]


class Entry(NamedTuple):
    """Something that was done, or tried."""

    at: int  # unix seconds
    who: str  # the name of whoever did it
    kind: str  # and by what they are known
    what: Event
    of: str  # to whom or what; empty where that is who did it
    details: Mapping[str, str | int | float | bool | None]
    address: str


class Audit:
    """Owns the collection `audit`, which lies on one shard. Raises StoreUnavailable.

    An `_id` begins with its time: the index that each collection has is the order of the pages.
    """

    def __init__(self, database: Database[Document]) -> None:
        self._audit = database[schema.AUDIT.name]

    def add(self, entry: Entry) -> None:
        """Store an entry, durably."""
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            self._audit.insert_one({"_id": ObjectId()} | entry._asdict())

    def of_person(self, staff_id: StaffId) -> Iterator[Entry]:
        """Yield the entries that tell of a person, oldest first."""
        query = {"of": str(staff_id), "what": {"$in": OF_A_PERSON}}
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            for document in self._audit.find(query).sort("_id").batch_size(PIECE):
                del document["_id"]
                yield Entry(**document)

    def page(self, limit: int, before: str = "") -> list[tuple[str, Entry]]:
        """Return entries with their ids, newest first; those `before` an id."""
        older = {"_id": {"$lt": ObjectId(before)}} if before else {}
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            documents = self._audit.find(older).sort("_id", DESCENDING).limit(limit)
            return [(str(document.pop("_id")), Entry(**document)) for document in documents]
