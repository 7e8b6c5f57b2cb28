"""Who visited a place: from its detections in a range of time, by the index BY_BEACON.

What somebody's phone stamped with a wrong clock counts by ours: of those people alone the
detections themselves are read, as the index does not have it. The database joins rows to pieces of
visits; of blocks the times are read here.
"""

from array import array
from collections.abc import Generator, Iterable, Iterator
from heapq import merge
from itertools import chain, groupby, islice
from typing import NamedTuple

import pymongo
from pymongo import DESCENDING
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from ingest.rules.request_parameters import MAX_FUTURE_SECONDS, StaffId
from ingest.rules.retention import FOR_EVER, Retention
from ingest.storage.database.driver import domain_errors, snapshot
from ingest.storage.database.indexes import BY_BEACON, BY_TRUE_TIME
from ingest.storage.detections.documents import UNKNOWN, Document, staff_id
from ingest.storage.sealed import by_place
from ingest.storage.sealed.blocks import Block
from ingest.storage.sealed.by_place import SealedPlaces

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


Who = tuple[StaffId, str]  # and at which level
Piece = tuple[int, int, int]  # of a visit: its beginning, its end and how many detections


class TooMany(Exception):
    """A place has more than MAX_DETECTIONS in a range; from `start` on it has not."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class Visits:
    """Reads rows and blocks by place."""

    def __init__(self, staff: Collection[Document], retention: Retention = FOR_EVER) -> None:
        self._retention = retention
        # What a majority has is never rolled back: a visit that was told once was one.
        self._staff = staff.with_options(read_concern=ReadConcern("majority"))
        self._sealed = SealedPlaces(staff)

    def read(
        self, location: str, level: str | None, start: int, end: int, gap: int
    ) -> Iterator[Visit]:
        """Yield the visits between two unix seconds, both included; in no useful order.

        Without a level those of all levels that have a place of this name, each level's apart.

        A visit ends with a silence of more than `gap` seconds. All detections that carry the place
        count, also of a beacon that has since moved or left the directory. Raises TooMany at the
        end. Raises StoreUnavailable, DamagedBlock.
        """
        start = max(start, self._retention.floor())
        at: Document = {"location": location} | ({} if level is None else {"level": level})
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            newest = self._newest_rows(at, start, end)
            with snapshot(self._staff) as session:
                times = self._times_of_blocks(at, start, end, session)
                rows = self._rows([*newest, *_pieces(gap)], session)
                if (yield from _joined(rows, times, gap)) > MAX_DETECTIONS:
                    each = (int(row["timestamp"]) for row in self._rows([*newest, _TIME], session))
                    every = merge(each, times.newest_first(), reverse=True)
                    raise TooMany(next(islice(every, MAX_DETECTIONS, None)) + 1)

    def _rows(self, steps: list[Document], session: ClientSession) -> Iterable[Document]:
        return self._staff.aggregate(steps, hint=BY_BEACON, batchSize=BATCH, session=session)

    def _newest_rows(self, at: Document, start: int, end: int) -> list[Document]:
        """Return the steps to the newest rows of a range, one more than is told."""
        within = {"$gte": start, "$lt": end + 1}
        off = self._with_wrong_clocks(at, start, within)
        # One step in the index for each beacon; with them its order is that of time.
        query: Document = {**at, "timestamp": within}
        query["mac"] = {"$in": self._staff.distinct("mac", {"mac": {"$gte": ""}, **query})}
        if "level" not in at:  # by name: a range of levels would not come in the order of time
            query["level"] = {"$in": self._staff.distinct("level", query)}
        by_ours: Document = {
            "level": {"$gte": ""},
            **at,
            "heard": within,
        }  # the index begins with it
        by_ours |= {"timestamp": {"$gte": floor}} if (floor := self._retention.floor()) else {}
        return self._corrected(query, by_ours, off) if off else [{"$match": query}, *_newest()]

    def _times_of_blocks(
        self, at: Document, start: int, end: int, session: ClientSession
    ) -> "_Times":
        """Return the newest of what blocks have in a range."""
        place = {"mac": {"$gte": ""}, "level": {"$gte": ""}, **at}  # the index begins with it
        query = {"places": {"$elemMatch": place}, "until": {"$gte": start}, "since": {"$lte": end}}
        floor = self._retention.floor()
        times = _Times(start)
        for person, block, indexes in self._sealed.newest_first(
            query, by_place.BY_BEACON, lambda place: at.items() <= place.items(), session
        ):
            if block.document["until"] < times.start:
                break  # there are enough that are newer
            kept = [index for index in indexes if block.times[index] >= floor]
            times.add(person, block, kept, end)
        return times

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


_TIME: Document = {"$project": {"_id": 0, "timestamp": 1}}
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


class _Times:
    """When people were heard at each level of a place, by our clock: the newest, and some more."""

    def __init__(self, start: int) -> None:
        self.start = start  # nothing older counts
        self.of: dict[Who, array[int]] = {}
        self._count = 0

    def add(self, person: StaffId, block: Block, indexes: Iterable[int], end: int) -> None:
        """Add those of some indexes that are not after a time."""
        heard = block.document.get("heard", {})
        for index in indexes:
            at = heard.get(str(index), block.times[index]) if heard else block.times[index]
            if self.start <= at <= end:
                level = block.places[block.at[index]]["level"]
                self.of.setdefault((person, level), array("q")).append(at)
                self._count += 1
        if self._count > 2 * MAX_DETECTIONS:
            self._cut()

    def newest_first(self) -> list[int]:
        """Return all, whoever it was."""
        return sorted(chain.from_iterable(self.of.values()), reverse=True)

    def _cut(self) -> None:
        self.start = self.newest_first()[MAX_DETECTIONS]
        for who, times in self.of.items():
            self.of[who] = array("q", (at for at in times if at >= self.start))
        self._count = sum(map(len, self.of.values()))


def _joined(rows: Iterable[Document], times: _Times, gap: int) -> Generator[Visit, None, int]:
    """Yield the visits that pieces of rows and times of blocks make; return of how many."""
    read = 0
    of_rows = dict.fromkeys(times.of)  # those that are left
    for who, of_person in groupby(rows, _who):
        of_rows.pop(who, None)
        pieces = ((int(row["first"]), int(row["last"]), int(row["count"])) for row in of_person)
        read += yield from _visits(who, merge(pieces, _each(times, who)), gap)
    for who in of_rows:
        read += yield from _visits(who, _each(times, who), gap)
    return read


def _visits(who: Who, pieces: Iterable[Piece], gap: int) -> Generator[Visit, None, int]:
    visit: Visit | None = None
    read = 0
    for first, last, count in pieces:
        read += count
        if visit and first - visit.end <= gap:
            end = max(visit.end, last)
            visit = visit._replace(end=end, detections=visit.detections + count)
            continue
        if visit:
            yield visit
        visit = Visit(*who, first, last, count) if who[0] != UNKNOWN else None
    if visit:
        yield visit
    return read


def _who(row: Document) -> Who:
    return staff_id(row["_id"].get("who")), row["_id"]["level"]


def _each(times: _Times, who: Who) -> Iterator[Piece]:
    return ((at, at, 1) for at in sorted(times.of.get(who, ())))
