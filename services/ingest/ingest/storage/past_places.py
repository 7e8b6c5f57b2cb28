"""The places in detections of one beacon that are stored already."""

from collections.abc import Sequence
from typing import Any

from bson import ObjectId
from pymongo.collection import Collection

from ingest.storage.directory import Place
from ingest.storage.documents import Document
from ingest.storage.driver import domain_errors
from ingest.storage.stamps import RENEWED


class PastPlaces:
    """Finds and rewrites the detections of a beacon; all of it by the index BY_BEACON."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff

    def elsewhere(self, mac: str, places: Sequence[Place], limit: int) -> list[ObjectId]:
        """Return some of the detections of a beacon that have none of these places."""
        with domain_errors():
            found = self._staff.find(_elsewhere(mac, places), {"_id": 1}).limit(limit)
            return [one["_id"] for one in found]

    def count_elsewhere(self, mac: str, places: Sequence[Place]) -> int:
        """Return how many there are of these, by counting the others: that reads less."""
        with domain_errors():
            there = [self._staff.count_documents({"mac": mac} | one._asdict()) for one in places]
            return max(0, self._staff.count_documents({"mac": mac}) - sum(there))

    def move(self, found: list[ObjectId], mac: str, places: Sequence[Place]) -> int:
        """Give those of `found` that still have none of the places the first; return how many.

        Each is stamped in the step that commits it, so no stamp has to be doubted.
        """
        query = {"_id": {"$in": found}} | _elsewhere(mac, places)
        with domain_errors():
            update = {"$set": places[0]._asdict()} | RENEWED
            return self._staff.update_many(query, update).modified_count


def _elsewhere(mac: str, places: Sequence[Place]) -> dict[str, Any]:
    # `$nor` would say the same, but reads all of the beacon's index.
    others = [[{name: {"$ne": value}} for name, value in one._asdict().items()] for one in places]
    return {"mac": mac, "$and": [{"$or": other} for other in others]}
