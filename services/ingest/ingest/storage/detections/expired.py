"""Detections that are due: found by their time, and deleted a few hundred at a time.

A block goes as a whole, when the newest of it is due by its own time and by our clock; what is due
of one that reaches beyond is told to nobody.
"""

from datetime import UTC, datetime
from typing import Any

from pymongo import ASCENDING
from pymongo.collection import Collection

from common import schema
from ingest.rules.request_parameters import FIRST_MILLISECONDS
from ingest.storage.database.driver import domain_errors
from ingest.storage.detections.documents import Document
from ingest.storage.sealed.sealed import Sealed

# What is deleted with one command: 20 ms of mongod, while others insert.
PIECE = 500
BLOCKS = 50


class Expired:
    """Looks into the collections `staff` and `sealed` by time, and deletes from them."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff
        self._blocks = staff.database[schema.SEALED.name]
        self._sealed = Sealed(staff)

    def keeps_any(self, floor: int, before: int = FIRST_MILLISECONDS) -> bool:
        """Tell whether anything is between two unix seconds. Raises StoreUnavailable.

        Of a block that reaches beyond, its oldest counts.
        """
        kept = {"timestamp": {"$gte": floor, "$lt": before}}
        block = {"until": {"$gte": floor}, "since": {"$lt": before}}
        with domain_errors():
            if self._staff.find_one(kept, {"_id": 1}):
                return True
            return self._blocks.find_one(block, {"_id": 1}) is not None

    def any_due(self, floor: int) -> bool:
        """Tell whether anything is older than a unix second. Raises StoreUnavailable."""
        with domain_errors():
            if any(self._staff.find_one({"timestamp": due}, {"_id": 1}) for due in _due(floor)):
                return True
            return self._blocks.find_one({"until": {"$lt": floor}}, {"_id": 1}) is not None

    def any_after(self, timestamp: int) -> bool:
        """Tell whether a detection of a later unix second is stored. Raises StoreUnavailable."""
        return self.keeps_any(timestamp + 1)

    def delete_some(self, floor: int) -> int:
        """Delete some of what is older than a unix second, the oldest first; return of how many.

        Another service may do the same: what it has deleted is not there. Raises StoreUnavailable.
        """
        deleted = 0
        with domain_errors():
            for due in _due(floor):
                rows = self._staff.find({"timestamp": due}, {"_id": 1})
                ids = [row["_id"] for row in rows.sort("timestamp", ASCENDING).limit(PIECE)]
                if ids:  # not by their times: one second may have a million
                    oldest = {"_id": {"$in": ids}, "timestamp": due}
                    deleted += self._staff.delete_many(oldest, hint="_id_").deleted_count
        return deleted + self._delete_blocks(floor)

    def _delete_blocks(self, floor: int) -> int:
        with domain_errors():
            fields = {"staff_id": 1, "count": 1}
            blocks = self._blocks.find({"until": {"$lt": floor}}, fields)
            due = list(blocks.sort("until", ASCENDING).limit(BLOCKS))
            for staff_id in {block["staff_id"] for block in due}:
                ids = [block["_id"] for block in due if block["staff_id"] == staff_id]
                self._sealed.delete_blocks(staff_id, ids)
        return sum(block["count"] for block in due)


def _due(floor: int) -> list[Document]:
    """Return which times are older than a unix second, in MongoDB's words."""
    # An older database may have milliseconds, or dates.
    borders: list[tuple[Any, Any]] = [
        (0, floor),
        (FIRST_MILLISECONDS, floor * 1000),
        (datetime(1970, 1, 1, tzinfo=UTC), datetime.fromtimestamp(floor, UTC)),
    ]
    return [{"$gte": first, "$lt": border} for first, border in borders]
