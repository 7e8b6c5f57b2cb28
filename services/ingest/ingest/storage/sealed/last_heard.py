"""When beacons were last heard where they hang now, of all that is in blocks."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pymongo import DESCENDING
from pymongo.client_session import ClientSession
from pymongo.collection import Collection

from common import schema
from common.beacon import Beacon
from ingest.rules.request_parameters import RIGHT_SECONDS, StaffId
from ingest.storage.detections.documents import Document, staff_id
from ingest.storage.sealed import by_place
from ingest.storage.sealed.by_place import SealedPlaces

# MongoDB takes 1000 stages in a pipeline.
PARTS_AT_ONCE = 100


class LastHeard(NamedTuple):
    """When and by whom a beacon was last heard; unix seconds by our clock."""

    heard_at: int
    staff_id: StaffId


class _Newest(NamedTuple):
    """What is newest of a beacon by what the documents tell of their places."""

    beacon: Beacon
    last: LastHeard
    is_sure: bool  # else the detection may be due, or of another time by its own clock


class SealedBeacons:
    """Reads the collection `sealed` by beacon where it hangs now."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff
        self._sealed = staff.database[schema.SEALED.name]
        self._places = SealedPlaces(staff)

    def last_heard(
        self,
        beacons: Sequence[Beacon],
        staff_ids: Sequence[StaffId] | None,
        since: int,
        floor: int,
        session: ClientSession,
    ) -> dict[Beacon, LastHeard]:
        """Return when and by whom beacons were last heard, by these people if they are given.

        Not before `since` by our clock, nor what is due before `floor`. Blocks tell it of each
        place; one is opened only where what it tells there may be a row that is elsewhere, due, or
        of a wrong clock. `session`: a snapshot. Raises DamagedBlock.
        """
        by: Document = {} if staff_ids is None else {"staff_id": {"$in": staff_ids}}
        by |= {"last": {"$gte": floor}} if floor else {}
        newest: dict[Beacon, _Newest] = {}
        highest = [_highest(beacon, by, since) for beacon in beacons]
        for of in self._read(beacons, highest, floor, session):
            newest[of.beacon] = of
        # Blocks that were begun later may have been there earlier.
        later = [_newest(of.beacon, by, of.last.heard_at + 1) for of in newest.values()]
        for of in self._read(beacons, later, floor, session):
            newest[of.beacon] = max(of, newest[of.beacon], key=lambda of: of.last.heard_at)
        unsure = {of.beacon for of in newest.values() if not of.is_sure}
        unsure |= self._elsewhere(list(newest.values()), session)
        last_heard = {of.beacon: of.last for of in newest.values() if of.beacon not in unsure}
        for beacon in unsure:
            if last := self._opened(beacon, by, since, floor, session):
                last_heard[beacon] = last
        return {beacon: last for beacon, last in last_heard.items() if last.heard_at >= since}

    def _read(
        self,
        beacons: Sequence[Beacon],
        parts: Sequence[list[Document]],
        floor: int,
        session: ClientSession,
    ) -> Iterator[_Newest]:
        """Yield what parts of a pipeline find, each of a beacon."""
        by_mac = {beacon.mac: beacon for beacon in beacons}
        for first in range(0, len(parts), PARTS_AT_ONCE):
            steps, *others = parts[first : first + PARTS_AT_ONCE]
            joined = [{"$unionWith": {"coll": self._sealed.name, "pipeline": p}} for p in others]
            rows = self._sealed.aggregate(
                [*steps, *joined], hint=by_place.BY_BEACON, session=session
            )
            for row in rows:
                last = LastHeard(row["heard_at"], staff_id(row["staff_id"]))
                is_sure = row["first"] >= floor and "heard" not in row
                yield _Newest(by_mac[row["beacon"]], last, is_sure)

    def _elsewhere(self, newest: Sequence[_Newest], session: ClientSession) -> set[Beacon]:
        """Return the beacons of which the newest may be a row, that has another place."""
        by_id = {name: of.beacon for of in newest for name in of.beacon.ids}
        queries = iter([_row_elsewhere(of) for of in newest])
        elsewhere: set[Beacon] = set()
        while some := list(islice(queries, PARTS_AT_ONCE)):
            rows = self._staff.find({"$or": some}, {"mac": 1}, session=session)
            elsewhere |= {by_id[row["mac"]] for row in rows}
        return elsewhere

    def _opened(
        self, beacon: Beacon, by: Document, since: int, floor: int, session: ClientSession
    ) -> LastHeard | None:
        """Return the newest of a beacon from the detections themselves."""
        place, last = _place(beacon), None
        for person, block, indexes in self._places.newest_first(
            {"places": {"$elemMatch": place}, "until": {"$gte": since}} | by,
            by_place.BY_BEACON,
            lambda known: known["mac"] in beacon.ids and _is_at(known, beacon),
            session,
        ):
            if last and block.document["until"] <= last.heard_at:
                break
            kept = [index for index in indexes if block.times[index] >= floor]
            for sealed in block.detections(kept):
                if last is None or sealed.heard_at > last.heard_at:
                    last = LastHeard(sealed.heard_at, person)
        return last


def _place(beacon: Beacon) -> Document:
    ids = {"$in": list(beacon.ids)}
    return {"mac": ids, "level": beacon.level, "location": beacon.location}


def _is_at(place: Document, beacon: Beacon) -> bool:
    return (place["level"], place["location"]) == (beacon.level, beacon.location)


def _highest(beacon: Beacon, by: Document, since: int) -> list[Document]:
    """Return what finds the block of the highest `until` that has a beacon at its place."""
    first: list[Document] = [{"$sort": {"until": DESCENDING}}, {"$limit": 1}]
    return [_match(beacon, by, since), *first, _told(beacon)]


def _newest(beacon: Beacon, by: Document, since: int) -> list[Document]:
    """Return what finds the newest at its place, in blocks whose `until` is not before a time."""
    first: list[Document] = [{"$sort": {"heard_at": DESCENDING}}, {"$limit": 1}]
    return [_match(beacon, by, since), _told(beacon), *first]


def _match(beacon: Beacon, by: Document, since: int) -> Document:
    return {"$match": {"places": {"$elemMatch": _place(beacon)}, "until": {"$gte": since}} | by}


def _told(beacon: Beacon) -> Document:
    is_there = [
        {"$in": ["$$this.mac", {"$literal": list(beacon.ids)}]},
        {"$eq": ["$$this.level", {"$literal": beacon.level}]},
        {"$eq": ["$$this.location", {"$literal": beacon.location}]},
    ]
    there = {"$filter": {"input": "$places", "as": "this", "cond": {"$and": is_there}}}
    heard_at = {"$max": {"$map": {"input": there, "as": "this", "in": "$$this.heard"}}}
    told = {"staff_id": 1, "first": 1, "heard": 1, "heard_at": heard_at}
    return {"$project": {"_id": 0, "beacon": {"$literal": beacon.mac}} | told}


def _row_elsewhere(newest: _Newest) -> Document:
    beacon, (heard_at, person) = newest.beacon, newest.last
    return {
        "staff_id": person,
        # By its own clock it is of no other time, but for what is taken for right.
        "timestamp": {"$gte": heard_at, "$lt": heard_at + RIGHT_SECONDS + 1},
        "mac": {"$in": list(beacon.ids)},
        "$or": [{"level": {"$ne": beacon.level}}, {"location": {"$ne": beacon.location}}],
    }
