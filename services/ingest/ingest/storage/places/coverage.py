"""What the collection `staff` tells by beacon: last visits, and beacons that nobody knows."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple

import pymongo
from pymongo import DESCENDING
from pymongo.collection import Collection
from pymongo.errors import OperationFailure

from common.beacon import Beacon
from common.beacon_id import UNRESOLVED
from ingest.rules.request_parameters import RIGHT_SECONDS, StaffId
from ingest.storage.database.driver import BAD_VALUE, domain_errors
from ingest.storage.database.indexes import BY_BEACON, BY_TRUE_TIME
from ingest.storage.detections.documents import HEARD, Document, detection, staff_id, unix_seconds

# Reading everything about every unknown beacon may take a moment.
SCAN_TIMEOUT_SECONDS = 5
MAX_UNKNOWN = 200
# MongoDB takes 1000 stages in a pipeline.
MAX_PARTS = 100
# How often people are named in one command, some 10 bytes each time.
MAX_NAMED = 50_000
_UNRESOLVED = re.compile(f"^{UNRESOLVED}")
_FIELDS = dict.fromkeys(("mac", "timestamp", "heard", "received_at", "staff_id"), 1)


class LastVisit(NamedTuple):
    """When and by whom a beacon was last heard; unix seconds, by the time it came at the latest."""

    mac: str
    timestamp: int
    staff_id: StaffId


@dataclass(frozen=True)
class UnknownBeacon:
    """A beacon that was heard but is not in the directory; unix seconds."""

    mac: str
    count: int
    first_heard: int
    last_heard: int
    staff: list[StaffId]


class Coverage:
    """Reads the collection `staff` by beacon."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff

    def last_visits(
        self, beacons: Iterable[Beacon], staff_ids: Sequence[StaffId] | None = None
    ) -> dict[str, LastVisit]:
        """Return by MAC when and by whom a beacon was last heard at the place where it hangs now.

        By these people if they are given: then only the shards that they are on are asked. One
        command with one small index scan a beacon: a group over all detections takes 25 times as
        long with 57 beacons and 50,000 detections. What wrong clocks stamped is looked for beside
        it: after what was newest by an index of its own, and after what a clock ahead stamped.
        """
        by_mac = {beacon.mac: beacon for beacon in beacons}
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            parts = [_last_visit(beacon, staff_ids) for beacon in by_mac.values()]
            newest = [detection(row) for row in self._joined(parts, staff_ids)]
            ahead = [visit for visit in newest if visit.timestamp - visit.heard_at > RIGHT_SECONDS]
            later = [_came_later(by_mac[visit.mac], staff_ids, visit.heard_at) for visit in ahead]
            if self._knows_wrong_clocks(staff_ids):
                later += [
                    _heard_later(by_mac[visit.mac], staff_ids, visit.heard_at) for visit in newest
                ]
            visits = [*newest, *(detection(row) for row in self._joined(later, staff_ids))]
        visits.sort(key=attrgetter("heard_at"))
        return {visit.mac: LastVisit(visit.mac, visit.heard_at, visit.staff_id) for visit in visits}

    def _knows_wrong_clocks(self, staff_ids: Sequence[StaffId] | None) -> bool:
        """Tell whether any clock was wrong; also not where the index is still being made."""
        wrong = {"heard": {"$exists": True}} | _by(staff_ids)
        try:
            return any(self._staff.aggregate([{"$match": wrong}, {"$limit": 1}], hint=BY_TRUE_TIME))
        except OperationFailure as error:
            if error.code != BAD_VALUE:
                raise
            return False

    def _joined(
        self, parts: list[list[Document]], staff_ids: Sequence[StaffId] | None
    ) -> Iterator[Document]:
        at_once = (
            MAX_PARTS if staff_ids is None else max(1, min(MAX_PARTS, MAX_NAMED // len(staff_ids)))
        )
        for first in range(0, len(parts), at_once):
            group = parts[first : first + at_once]
            joined = [{"$unionWith": {"coll": self._staff.name, "pipeline": p}} for p in group]
            yield from self._staff.aggregate([*group[0], *joined[1:]])

    def unknown_beacons(self, known: Iterable[str], since: int) -> list[UnknownBeacon]:
        """Return those heard since a time that are not `known`.

        Ids that name nobody for longer than an hour are left out: each rotation would add one.
        Those that most people heard come first, of these what was heard most often: of addresses
        that change each is heard by few, and many once. At most MAX_UNKNOWN and one more, which
        tells that there are more.
        """
        pipeline: list[dict[str, Any]] = [
            {
                "$match": {
                    "mac": {"$nin": list(known), "$not": _UNRESOLVED},
                    "timestamp": {"$gte": since},
                }
            },
            {
                "$group": {
                    "_id": "$mac",
                    "count": {"$sum": 1},
                    "first_heard": {"$min": "$timestamp"},
                    "last_heard": {"$max": "$timestamp"},
                    "staff": {"$addToSet": "$staff_id"},
                }
            },
            {"$set": {"people": {"$size": "$staff"}}},
            {"$sort": dict.fromkeys(("people", "count", "last_heard"), DESCENDING) | {"_id": 1}},
            {"$limit": MAX_UNKNOWN + 1},
        ]
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            rows = list(self._staff.aggregate(pipeline, hint=BY_BEACON))
        return [
            UnknownBeacon(
                mac=row["_id"],
                count=int(row["count"]),
                first_heard=unix_seconds(row["first_heard"]),
                last_heard=unix_seconds(row["last_heard"]),
                staff=[staff_id(person) for person in row["staff"]],
            )
            for row in rows
            if isinstance(row["_id"], str)
        ]


def _last_visit(beacon: Beacon, staff_ids: Sequence[StaffId] | None) -> list[Document]:
    return [
        {"$match": _at_its_place(beacon, staff_ids)},
        {"$sort": {"timestamp": DESCENDING}},
        {"$limit": 1},
        {"$project": _FIELDS},
    ]


def _came_later(beacon: Beacon, staff_ids: Sequence[StaffId] | None, at: int) -> list[Document]:
    """Return what finds the newest of what both its clock and ours have after a time."""
    after = datetime.fromtimestamp(at, UTC)
    later = {"timestamp": {"$gt": at}, "received_at": {"$gt": after}}
    return [
        {"$match": _at_its_place(beacon, staff_ids) | later},
        {"$set": {"heard": HEARD}},
        {"$sort": {"heard": DESCENDING}},
        {"$limit": 1},
        {"$project": _FIELDS},
    ]


def _heard_later(beacon: Beacon, staff_ids: Sequence[StaffId] | None, at: int) -> list[Document]:
    """Return what finds the newest of what wrong clocks stamped, after a time by ours."""
    return [
        {"$match": _at_its_place(beacon, staff_ids) | {"heard": {"$gt": at}}},
        {"$sort": {"heard": DESCENDING}},
        {"$limit": 1},
        {"$project": _FIELDS},
    ]


def _at_its_place(beacon: Beacon, staff_ids: Sequence[StaffId] | None) -> Document:
    place = {"mac": beacon.mac, "level": beacon.level, "location": beacon.location}
    return place | _by(staff_ids)


def _by(staff_ids: Sequence[StaffId] | None) -> Document:
    """Return what has only the shards asked that these people are on."""
    return {} if staff_ids is None else {"staff_id": {"$in": staff_ids}}
