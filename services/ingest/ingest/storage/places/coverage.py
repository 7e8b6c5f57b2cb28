"""What rows and blocks tell by beacon: last visits, and beacons that nobody knows."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pymongo
from pymongo import DESCENDING
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.errors import OperationFailure

from common import schema
from common.beacon import Beacon
from common.beacon_id import UNRESOLVED
from ingest.rules.request_parameters import RIGHT_SECONDS, StaffId
from ingest.rules.retention import FOR_EVER, Retention
from ingest.storage.database.driver import BAD_VALUE, domain_errors, snapshot
from ingest.storage.database.indexes import BY_BEACON, BY_TRUE_TIME
from ingest.storage.detections.documents import HEARD, Document, detection, staff_id, unix_seconds
from ingest.storage.sealed import by_place
from ingest.storage.sealed.by_place import SealedPlaces
from ingest.storage.sealed.last_heard import SealedBeacons

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
    """Reads rows and blocks by beacon."""

    def __init__(self, staff: Collection[Document], retention: Retention = FOR_EVER) -> None:
        self._staff = staff
        self._beacons = SealedBeacons(staff)
        self._places = SealedPlaces(staff)
        self._retention = retention

    def last_visits(
        self,
        beacons: Iterable[Beacon],
        staff_ids: Sequence[StaffId] | None = None,
        since: int = 0,
    ) -> dict[str, LastVisit]:
        """Return by its own id when and by whom a beacon was last heard where it hangs now.

        By these people if they are given: then only the shards that they are on are asked. If they
        are few, a time (unix seconds) must bound how far back they are looked for. One
        command with one small index scan a beacon: a group over all detections takes 25 times as
        long with 57 beacons and 50,000 detections. What wrong clocks stamped is looked for beside
        it: after what was newest by an index of its own, and after what a clock ahead stamped.
        Raises StoreUnavailable, DamagedBlock.
        """
        by_id = {name: beacon for beacon in beacons for name in beacon.ids}
        floor = self._retention.floor()
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            of_all = dict.fromkeys(by_id.values(), since)
            parts = [_last_visit(beacon, staff_ids, since) for beacon in of_all]
            newest = [detection(row) for row in self._joined(parts, staff_ids)]
            ahead = [visit for visit in newest if visit.timestamp - visit.heard_at > RIGHT_SECONDS]
            later = [_came_later(by_id[visit.mac], staff_ids, visit.heard_at) for visit in ahead]
            if self._knows_wrong_clocks(staff_ids):
                heard = {by_id[visit.mac]: visit.heard_at for visit in newest}
                heard = of_all | heard if since else heard
                later += [_heard_later(beacon, staff_ids, at) for beacon, at in heard.items()]
            visits = [*newest, *(detection(row) for row in self._joined(later, staff_ids))]
            with snapshot(self._staff) as session:
                sealed = self._beacons.last_heard(list(of_all), staff_ids, since, floor, session)
        last = {beacon.mac: LastVisit(*heard) for beacon, heard in sealed.items()}
        for visit in visits:
            mac, kept = by_id[visit.mac].mac, visit.timestamp >= floor and visit.heard_at >= since
            if kept and (mac not in last or visit.heard_at >= last[mac].timestamp):
                last[mac] = LastVisit(visit.heard_at, visit.staff_id)
        return last

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
        at_once = max(1, min(MAX_PARTS, MAX_NAMED // max(1, len(staff_ids or ()))))
        for first in range(0, len(parts), at_once):
            group = parts[first : first + at_once]
            joined = [{"$unionWith": {"coll": self._staff.name, "pipeline": p}} for p in group]
            yield from self._staff.aggregate([*group[0], *joined[1:]])

    def _others(self, mac: Document, since: int, session: ClientSession) -> list[Document]:
        """Count what cannot be told by the places of whole blocks, for each beacon.

        That is what blocks have that begin before; and of what is a row too, how much is too much.
        """
        counted: dict[str, Document] = {}
        begun = _blocks_with(mac, since) | {"first": {"$lt": since}, "last": {"$gte": since}}
        for person, block, indexes in self._places.newest_first(
            begun, by_place.BY_BEACON, lambda place: _matches(place["mac"], mac), session
        ):
            for index in indexes:
                if (at := block.times[index]) >= since:
                    name = block.places[block.at[index]]["mac"]
                    times = {"first_heard": at, "last_heard": at}
                    known = counted.setdefault(name, {"_id": name, "count": 0, "staff": []} | times)
                    known["count"] += 1
                    known["first_heard"] = min(known["first_heard"], at)
                    known["last_heard"] = max(known["last_heard"], at)
                    if person not in known["staff"]:
                        known["staff"].append(person)
        twice: Counter[str] = Counter()
        for found in self._places.that_are_rows(_whole_with(mac, since), mac, since, session):
            twice.update(
                found.block.places[found.block.at[index]]["mac"] for index in found.indexes
            )
        return [
            *counted.values(),
            *({"_id": name, "count": -count, "staff": []} for name, count in twice.items()),
        ]

    def unknown_beacons(self, known: Iterable[str], since: int) -> list[UnknownBeacon]:
        """Return those heard since a time that are not `known`.

        Ids that name nobody for longer than an hour are left out: each rotation would add one.
        Those that most people heard come first, of these what was heard most often: of addresses
        that change each is heard by few, and many once. At most MAX_UNKNOWN and one more, which
        tells that there are more.
        """
        mac = {"$nin": list(known), "$not": _UNRESOLVED}
        since = max(since, self._retention.floor())
        of_rows: list[Document] = [
            {"$match": {"mac": mac, "timestamp": {"$gte": since}}},
            {"$group": {"_id": "$mac"} | _counted(1, "$timestamp", "$timestamp")},
        ]
        of_blocks = [
            {"$match": _whole_with(mac, since)},
            {"$unwind": "$places"},
            {"$match": {"places.mac": mac}},
            {"$group": {"_id": "$places.mac"} | _COUNTED_OF_PLACES},
        ]
        with pymongo.timeout(SCAN_TIMEOUT_SECONDS), snapshot(self._staff) as session:
            of_others = self._others(mac, since, session)
            sealed = [of_blocks, _each(of_others)] if of_others else [of_blocks]
            joined = [
                {"$unionWith": {"coll": schema.SEALED.name, "pipeline": steps}} for steps in sealed
            ]
            steps = [*of_rows, *joined, *_summed(), *_FIRST_UNKNOWN]
            found = list(self._staff.aggregate(steps, hint=BY_BEACON, session=session))
        return [
            UnknownBeacon(
                mac=row["_id"],
                count=int(row["count"]),
                first_heard=unix_seconds(row["first_heard"]),
                last_heard=unix_seconds(row["last_heard"]),
                staff=[staff_id(person) for person in row["staff"]],
            )
            for row in found
            if isinstance(row["_id"], str)
        ]


def _blocks_with(mac: Document, since: int) -> Document:
    return {"places": {"$elemMatch": {"mac": mac}}, "until": {"$gte": since}}


def _whole_with(mac: Document, since: int) -> Document:
    return _blocks_with(mac, since) | {"first": {"$gte": since}}


def _matches(mac: str, unknown: Document) -> bool:
    return mac not in unknown["$nin"] and not unknown["$not"].match(mac)


def _counted(count: Any, first: str, last: Any) -> Document:
    """Return what a group has of each beacon."""
    return {
        "count": {"$sum": count},
        "first_heard": {"$min": first},
        "last_heard": {"$max": last},
        "staff": {"$addToSet": "$staff_id"},
    }


_LAST = {"$ifNull": ["$places.last", "$places.heard"]}
_COUNTED_OF_PLACES = _counted("$places.count", "$places.first", _LAST)


def _summed() -> list[Document]:
    """Return what makes one of the groups of each beacon, with how many people heard it."""
    everybody = {"$reduce": {"input": "$staff", "initialValue": [], "in": _BOTH}}
    summed = _counted("$count", "$first_heard", "$last_heard") | {"staff": {"$push": "$staff"}}
    return [
        {"$group": {"_id": "$_id"} | summed},
        {"$set": {"staff": everybody}},
        {"$set": {"people": {"$size": "$staff"}}},
    ]


_BOTH = {"$setUnion": ["$$value", "$$this"]}
_FIRST_UNKNOWN: list[Document] = [
    {"$sort": dict.fromkeys(("people", "count", "last_heard"), DESCENDING) | {"_id": 1}},
    {"$limit": MAX_UNKNOWN + 1},
]


def _each(rows: list[Document]) -> list[Document]:
    """Return what yields documents that are no collection's: `$documents` takes an administrator.

    It takes a collection that is not empty.
    """
    return [
        {"$limit": 1},
        {"$project": {"rows": {"$literal": rows}}},
        {"$unwind": "$rows"},
        {"$replaceWith": "$rows"},
    ]


def _last_visit(beacon: Beacon, staff_ids: Sequence[StaffId] | None, since: int) -> list[Document]:
    within = {"timestamp": {"$gte": since}} if since else {}
    return [
        {"$match": _at_its_place(beacon, staff_ids) | within},
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
    place = {"mac": {"$in": list(beacon.ids)}, "level": beacon.level, "location": beacon.location}
    return place | _by(staff_ids)


def _by(staff_ids: Sequence[StaffId] | None) -> Document:
    """Return what has only the shards asked that these people are on."""
    return {} if staff_ids is None else {"staff_id": {"$in": staff_ids}}
