"""The places in detections of one beacon that are stored already, in rows and in blocks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

import pymongo
from bson import ObjectId
from pymongo.collection import Collection

from ingest.rules.request_parameters import StaffId, by_staff_id
from ingest.storage.database.driver import domain_errors
from ingest.storage.database.indexes import BY_BEACON
from ingest.storage.detections.documents import Document, staff_id
from ingest.storage.detections.stamps import RENEWED
from ingest.storage.directory.directory import Place
from ingest.storage.sealed.past_places import WAS, Corrected, Elsewhere, SealedPastPlaces

# Reading all of a beacon's index may take a moment.
SCAN_TIMEOUT_SECONDS = 5


class PlacedDetection(NamedTuple):
    """A detection, and the place that it has, as it is stored."""

    id: ObjectId
    level: Any
    location: Any

    @property
    def place(self) -> Document:
        """Return level and location as a query or an update names them."""
        return {"level": self.level, "location": self.location}


class PastPlaces:
    """Finds and rewrites the detections of a beacon; what is found by its place by BY_BEACON.

    Those in blocks are rewritten by `sealed`; they are counted here.
    """

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff
        self.sealed = SealedPastPlaces(staff)

    def elsewhere(self, mac: str, places: Sequence[Place], limit: int) -> list[PlacedDetection]:
        """Return some of the rows of a beacon that have none of these places."""
        fields = {"level": 1, "location": 1}
        with domain_errors():
            rows = self._staff.find(_elsewhere(mac, places), fields).limit(limit)
            return [
                PlacedDetection(row["_id"], row.get("level"), row.get("location")) for row in rows
            ]

    def count_elsewhere(self, mac: str, places: Sequence[Place]) -> int:
        """Return how many there are of these, by counting the others: that reads less."""
        with domain_errors():
            there = [
                self._staff.count_documents({"mac": mac} | place._asdict()) for place in places
            ]
            rows = max(0, self._staff.count_documents({"mac": mac}) - sum(there))
        return rows + self.sealed.count(Elsewhere([mac], places)).total()

    def people_elsewhere(self, ids: Sequence[str], place: Place) -> list[tuple[StaffId, int]]:
        """Return whose detections of a beacon's ids have another place, how many, most first."""
        stages: list[Document] = [
            {"$match": _elsewhere({"$in": ids}, [place])},
            {"$group": {"_id": "$staff_id", "count": {"$sum": 1}}},
        ]
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            rows = self._staff.aggregate(stages, hint=BY_BEACON)
            counts = Counter({staff_id(row["_id"]): int(row["count"]) for row in rows})
            counts += self.sealed.count(Elsewhere(ids, [place]))
        return sorted(counts.items(), key=lambda counted: (-counted[1], by_staff_id(counted[0])))

    def move(
        self, detections: list[PlacedDetection], mac: str, places: Sequence[Place], correction: str
    ) -> int:
        """Give those of `detections` that still have none of the places the first; return how many.

        Each is stamped in the step that commits it, so no stamp has to be doubted.
        """
        total = 0
        for was, ids in _by_place(detections):
            query = {"_id": {"$in": ids}} | was | _elsewhere(mac, places)
            kept = {WAS: was | {"correction": correction}}
            with domain_errors():
                update = {"$set": places[0]._asdict() | kept} | RENEWED
                total += self._staff.update_many(query, update).modified_count
        return total

    def count_corrected(self, mac: str, correction: str) -> int:
        """Return how many detections have the place that a correction gave them."""
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            rows = self._staff.count_documents(_corrected(mac, correction))
            return rows + self.sealed.count(Corrected([mac], correction)).total()

    def corrected(self, mac: str, correction: str, size: int) -> Iterator[list[PlacedDetection]]:
        """Yield the rows that a correction changed last, in groups, with their old places."""
        with domain_errors():
            rows = self._staff.find(_corrected(mac, correction), {WAS: 1}).batch_size(size)
            detections = (
                PlacedDetection(row["_id"], row[WAS].get("level"), row[WAS].get("location"))
                for row in rows
            )
            while group := list(islice(detections, size)):
                yield group

    def give_back(self, detections: list[PlacedDetection], mac: str, correction: str) -> int:
        """Give those of `detections` that a correction changed last their old places; how many."""
        total = 0
        for was, ids in _by_place(detections):
            query = {"_id": {"$in": ids}} | _corrected(mac, correction)
            with domain_errors():
                update = {"$set": was, "$unset": {WAS: ""}} | RENEWED
                total += self._staff.update_many(query, update).modified_count
        return total


def _by_place(detections: Iterable[PlacedDetection]) -> Iterator[tuple[Document, list[ObjectId]]]:
    """Yield each place as it is stored, and whose it is: mostly there is one."""
    ordered = sorted(detections, key=lambda place: repr(place[1:]))
    for _, group in groupby(ordered, key=lambda place: repr(place[1:])):
        first, *others = group
        yield first.place, [first.id, *(other.id for other in others)]


def _corrected(mac: str, correction: str) -> Document:
    return {"mac": mac, f"{WAS}.correction": correction}


def _elsewhere(mac: str | Document, places: Sequence[Place]) -> dict[str, Any]:
    # `$nor` would say the same, but reads all of the beacon's index.
    others = [
        [{name: {"$ne": value}} for name, value in place._asdict().items()] for place in places
    ]
    return {"mac": mac, "$and": [{"$or": other} for other in others]}
