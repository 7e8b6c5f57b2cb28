"""What else the collection `staff` can tell: pages of a history, last visits, unknown beacons."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pymongo
from bson import ObjectId
from pymongo import DESCENDING
from pymongo.collection import Collection

from ingest.errors import store_errors
from ingest.rules.parameters import StaffId, TimeRange
from ingest.storage.beacons import Beacon

Document = dict[str, Any]
# The index that covers what is asked by beacon (`Detections.create` makes it).
BY_BEACON = "mac_1_level_1_location_1_timestamp_-1_staff_id_1"
# Reading everything about every unknown beacon may take a moment.
SCAN_TIMEOUT_SECONDS = 5
MAX_UNKNOWN = 200
_SHOWN = {"staff_id": 0, "received_at": 0}
# MongoDB takes 1000 stages in a pipeline.
MAX_PARTS = 100


class Position(NamedTuple):
    """Where a page ends: the last detection on it. Nothing is before it twice or after it never."""

    timestamp: int
    id: ObjectId


class Page(NamedTuple):
    """Some detections, newest first, and where the next page goes on (None: there is no more)."""

    detections: list[Document]
    next: Position | None


class Reports:
    """Reads the collection `staff` for the API."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff

    def page(self, wanted: TimeRange, after: Position | None, limit: int) -> Page:
        """Return the newest detections in a range, those after a position if given.

        In the order (timestamp, _id), which no index has: the index gives the seconds in order,
        and where a page begins or ends within a second, that second is read whole.
        """
        with store_errors():
            found: list[Document] = []
            end = wanted.end
            if after and wanted.start <= after.timestamp <= end:
                found = self._second(wanted.staff_id, after.timestamp, limit + 1, after.id)
                end = after.timestamp - 1
            elif after:
                end = min(end, after.timestamp - 1)
            missing = limit + 1 - len(found)
            if missing > 0:
                older = self._older(wanted._replace(end=end), missing)
                if len(older) == missing:  # the last second may have more than these
                    last = older[-1]["timestamp"]
                    older = [one for one in older if one["timestamp"] > last]
                    missing -= len(older)
                    older += self._second(wanted.staff_id, last, missing)
                found += older
        more = len(found) > limit
        del found[limit:]
        return Page(found, Position(found[-1]["timestamp"], found[-1]["_id"]) if more else None)

    def longer_than(self, wanted: TimeRange, count: int) -> bool:
        """Tell whether a range holds more detections than that."""
        times = {"$gte": wanted.start, "$lte": wanted.end}
        query = {"staff_id": wanted.staff_id, "timestamp": times}
        with store_errors():
            found = self._staff.find(query, {"_id": 0, "timestamp": 1})
            return any(found.sort("timestamp", DESCENDING).skip(count).limit(1))

    def has(self, staff_id: StaffId) -> bool:
        """Tell whether anything was ever stored of a staff member."""
        with store_errors():
            return self._staff.find_one({"staff_id": staff_id}, {"_id": 1}) is not None

    def _older(self, wanted: TimeRange, limit: int) -> list[Document]:
        times = {"$gte": wanted.start, "$lte": wanted.end}
        query = {"staff_id": wanted.staff_id, "timestamp": times}
        found = list(self._staff.find(query, _SHOWN).sort("timestamp", DESCENDING).limit(limit))
        # Within a second the index has an order of its own; a second cut off is read again.
        return sorted(found, key=lambda one: (one["timestamp"], one["_id"]), reverse=True)

    def _second(
        self, staff_id: StaffId, timestamp: int, limit: int, below: ObjectId | None = None
    ) -> list[Document]:
        query: Document = {"staff_id": staff_id, "timestamp": timestamp}
        if below:
            query["_id"] = {"$lt": below}
        return list(self._staff.find(query, _SHOWN).sort("_id", DESCENDING).limit(limit))

    def existing(self, ids: Iterable[ObjectId]) -> set[ObjectId]:
        """Return which of these detections are stored."""
        with store_errors():
            found = self._staff.find({"_id": {"$in": list(ids)}}, {"_id": 1})
            return {one["_id"] for one in found}

    def last_visits(self, beacons: Iterable[Beacon]) -> dict[str, Document]:
        """Return by MAC when and by whom a beacon was last heard at the place where it hangs now.

        One command with one small index scan a beacon: 57 beacons and 50,000 detections took
        3 ms, a group over them 80 ms.
        """
        parts = [_last_visit(beacon) for beacon in beacons]
        found: dict[str, Document] = {}
        with store_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            for first in range(0, len(parts), MAX_PARTS):
                here = parts[first : first + MAX_PARTS]
                joined = [{"$unionWith": {"coll": self._staff.name, "pipeline": p}} for p in here]
                pipeline = [*here[0], *joined[1:]]
                found |= {one["mac"]: one for one in self._staff.aggregate(pipeline)}
        return found

    def heard_by(self, mac: str) -> list[StaffId]:
        """Return who ever heard a beacon."""
        pipeline: list[Document] = [{"$match": {"mac": mac}}, {"$group": {"_id": "$staff_id"}}]
        with store_errors():
            return [one["_id"] for one in self._staff.aggregate(pipeline, hint=BY_BEACON)]

    def move(self, staff_id: StaffId, beacon: Beacon) -> int:
        """Give one staff member's detections of a beacon its place; return how many had another."""
        place = {"level": beacon.level, "location": beacon.location}
        elsewhere = [{name: {"$ne": value}} for name, value in place.items()]
        query = {"staff_id": staff_id, "mac": beacon.mac, "$or": elsewhere}
        with store_errors():
            return self._staff.update_many(query, {"$set": place}).modified_count

    def unknown(self, known: Iterable[str], since: int) -> list[Document]:
        """Return what was heard that is not in the directory, last heard first, at most 200."""
        pipeline: list[Document] = [
            {"$match": {"mac": {"$nin": list(known)}, "timestamp": {"$gte": since}}},
            {
                "$group": {
                    "_id": "$mac",
                    "count": {"$sum": 1},
                    "first_heard": {"$min": "$timestamp"},
                    "last_heard": {"$max": "$timestamp"},
                    "staff": {"$addToSet": "$staff_id"},
                }
            },
            {"$sort": {"last_heard": DESCENDING, "_id": 1}},
            {"$limit": MAX_UNKNOWN + 1},
        ]
        with store_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            return list(self._staff.aggregate(pipeline, hint=BY_BEACON))


def _last_visit(beacon: Beacon) -> list[Document]:
    place = {"mac": beacon.mac, "level": beacon.level, "location": beacon.location}
    return [
        {"$match": place},
        {"$sort": {"timestamp": DESCENDING}},
        {"$limit": 1},
        {"$project": {"_id": 0, "mac": 1, "timestamp": 1, "staff_id": 1}},
    ]
