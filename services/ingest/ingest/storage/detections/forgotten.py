"""Deleting what is stored of somebody, a few hundred detections at a time."""

from datetime import UTC, datetime

import pymongo
from pymongo.collection import Collection
from pymongo.write_concern import WriteConcern

from ingest.rules.request_parameters import StaffId
from ingest.storage.database.driver import domain_errors
from ingest.storage.detections.documents import Document

# What is deleted with one command: 20 ms of mongod, while others insert.
PIECE = 500
# Of one piece, where much that is newer has to be passed over.
TIMEOUT_SECONDS = 10


class Forgotten:
    """Deletes from the collection `staff` by person. Raises StoreUnavailable."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff.with_options(write_concern=WriteConcern("majority"))

    def delete_some(self, staff_id: StaffId, until: float) -> int:
        """Delete some of what came until a unix second, or nobody knows when; return how many."""
        came = {"$not": {"$gt": datetime.fromtimestamp(until, UTC)}}
        of_person = {"staff_id": staff_id}
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            rows = self._staff.find(of_person | {"received_at": came}, {"_id": 1}).limit(PIECE)
            ids = [row["_id"] for row in rows.batch_size(PIECE + 1)]
            if not ids:
                return 0
            return self._staff.delete_many(of_person | {"_id": {"$in": ids}}).deleted_count
