"""Staff ids above 2^53, which an older release stored as numbers: JavaScript rounds them."""

from typing import Any

from pymongo.collection import Collection

from ingest.rules.request_parameters import MAX_EXACT
from ingest.storage.database.driver import domain_errors
from ingest.storage.detections.documents import Document
from ingest.storage.detections.stamps import RENEWED

# How many are found with one command.
GROUP = 500
_LARGE = {"$gt": MAX_EXACT, "$lte": 2**63 - 1}


class LargeIds:
    """Makes them texts. The name of a detection is the same: it hashes the id as a text."""

    def __init__(self, staff: Collection[Document], latest: Collection[dict[str, Any]]) -> None:
        self._staff = staff
        self._latest = latest

    def as_text(self) -> int:
        """Store each as text; return in how many detections. Raises StoreUnavailable.

        One by one, each named with its shard key: with the text it may be another shard's.
        """
        count = 0
        with domain_errors():
            while rows := list(
                self._staff.find({"staff_id": _LARGE}, {"staff_id": 1}).limit(GROUP)
            ):
                for row in rows:
                    text = str(int(row["staff_id"]))
                    self._staff.update_one(row, {"$set": {"staff_id": text}} | RENEWED)
                count += len(rows)
            # `storage/people/notes.py` notes them with their new stamps.
            self._latest.delete_many({"_id": _LARGE})
        return count
