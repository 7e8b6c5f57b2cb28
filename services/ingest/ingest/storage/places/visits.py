"""Who visited a place: from its detections in a range of time, by the index BY_BEACON.

What somebody's phone stamped with a wrong clock counts by ours: of those people alone the
detections themselves are read, as the index does not have it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pymongo
from pymongo import DESCENDING
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from ingest.rules.request_parameters import MAX_FUTURE_SECONDS, StaffId
from ingest.storage.database.driver import domain_errors
from ingest.storage.database.indexes import BY_BEACON, BY_TRUE_TIME
from ingest.storage.detections.documents import UNKNOWN, Document, staff_id

# MongoDB reads no more of the index, and answers pieces of visits: half an hour of 110 people.
MAX_DETECTIONS = 50_000
SCAN_TIMEOUT_SECONDS = 5
# Pieces that the driver decodes at once: some 100 bytes each.
BATCH = 2000


class Visit(NamedTuple):
    """Somebody at a place without a longer silence: the first and the last time, unix seconds."""

    staff_id: StaffId
    level: str
    start: int
    end: int
    detections: int


class TooMany(Exception):
    """A place has more than MAX_DETECTIONS in a range; from `start` on it has not."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class Visits:
    """Reads the collection `staff` by place."""

    def __init__(self, staff: Collection[Document]) -> None:
        # What a majority has is never rolled back: a visit that was told once was one.
        self._staff = staff.with_options(read_concern=ReadConcern("majority"))

    def read(
        self, location: str, level: str | None, start: int, end: int, gap: int
    ) -> Iterator[Visit]:
        """Yield the visits between two unix seconds, both included; in no useful order.

        Without a level those of all levels that have a place of this name, each level's apart.

        A visit ends with a silence of more than `gap` seconds. All detections that carry the place
        count, also of a beacon that has since moved or left the directory. Raises TooMany at the
        end. Raises StoreUnavailable.
        """
        at: Document = {"location": location} | ({} if level is None else {"level": level})
        within = {"$gte": start, "$lt": end + 1}
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            off = self._with_wrong_clocks(at, start, within)
            # One step in the index for each beacon; with them its order is that of time.
            query = {**at, "timestamp": within}
            macs = self._staff.distinct("mac", {"mac": {"$gte": ""}, **query})
            if macs or off:
                query["mac"] = {"$in": macs}
                if level is None:  # by name: a range of levels would not come in the order of time
                    query["level"] = {"$in": self._staff.distinct("level", query)}
                by_ours = {"level": {"$gte": ""}, **at, "heard": within}  # the index begins with it
                right = [{"$match": query}, *_newest()]
                steps = self._corrected(query, by_ours, off) if off else right
                steps += _pieces(gap)
                yield from _joined(
                    self._staff.aggregate(steps, hint=BY_BEACON, batchSize=BATCH), gap
                )

    def _with_wrong_clocks(self, at: Document, start: int, within: Document) -> list[StaffId]:
        """Return who has detections there of a wrong clock, that are in the range by any clock."""
        query = {
            **at,
            "heard": {"$gte": start - MAX_FUTURE_SECONDS},
            "$or": [{"heard": within}, {"timestamp": within}],
        }
        steps: list[Document] = [{"$match": query}, {"$group": {"_id": "$staff_id"}}]
        return [row["_id"] for row in self._staff.aggregate(steps, hint=BY_TRUE_TIME)]

    def _corrected(self, query: Document, by_ours: Document, off: list[StaffId]) -> list[Document]:
        """Return the steps to the newest detections of a query, of these people by our clock."""
        right = [{"$match": query | {"staff_id": {"$in": off}, "heard": None}}]
        wrong = [{"$match": by_ours}, {"$set": {"timestamp": "$heard"}}]
        return [
            {"$match": query | {"staff_id": {"$nin": off}}},
            *_newest(),
            _FIELDS,
            *(
                {"$unionWith": {"coll": self._staff.name, "pipeline": [*steps, _FIELDS]}}
                for steps in (right, wrong)
            ),
            *_newest(),
        ]


_FIELDS: Document = {"$project": {"_id": 0, "level": 1, "staff_id": 1, "timestamp": 1}}


def _newest() -> list[Document]:
    return [{"$sort": {"timestamp": DESCENDING}}, {"$limit": MAX_DETECTIONS + 1}]


def _pieces(gap: int) -> list[Document]:
    """Return what the database does: it joins each person's detections of every `gap` seconds.

    These are surely of one visit, and far fewer; each person's come one after the other, in time.
    """
    slot = {"$floor": {"$divide": ["$timestamp", gap]}}
    return [
        {
            "$group": {
                "_id": {"who": "$staff_id", "level": "$level", "slot": slot},
                "first": {"$min": "$timestamp"},
                "last": {"$max": "$timestamp"},
                "count": {"$sum": 1},
            }
        },
        {"$sort": {"_id.who": 1, "_id.level": 1, "_id.slot": 1}},
    ]


def _joined(pieces: Iterator[dict[str, Any]], gap: int) -> Iterator[Visit]:
    visit: Visit | None = None
    read, oldest = 0, 0
    for piece in pieces:
        first, last = int(piece["first"]), int(piece["last"])
        read, oldest = read + piece["count"], min(oldest or first, first)
        person, level = staff_id(piece["_id"].get("who")), piece["_id"]["level"]
        if visit and visit[:2] == (person, level) and first - visit.end <= gap:
            visit = visit._replace(end=last, detections=visit.detections + piece["count"])
            continue
        if visit:
            yield visit
        visit = Visit(person, level, first, last, piece["count"]) if person != UNKNOWN else None
    if visit:
        yield visit
    if read > MAX_DETECTIONS:
        raise TooMany(oldest + 1)
