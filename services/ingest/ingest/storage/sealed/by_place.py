"""Blocks by their places: what counts there beside the rows of `staff`.

A row that a block has too is one detection, and the row counts, wherever it is. So rows and blocks
are read as they were at one moment: a row that is deleted between two reads would be missed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, count, islice
from typing import Any, NamedTuple

from pymongo import ASCENDING, DESCENDING
from pymongo.client_session import ClientSession
from pymongo.collection import Collection

from common import schema
from ingest.rules.request_parameters import StaffId
from ingest.storage.detections.documents import Detection, Document, detection, staff_id
from ingest.storage.sealed.blocks import Block
from ingest.storage.sealed.damage import opened
from ingest.storage.sealed.sealed import tiles_since

# How many blocks the driver holds at once: 13 KiB each, and 150 of one that is open.
BLOCKS_AT_ONCE = 32
# Of how many people rows are looked for at once.
PEOPLE_AT_ONCE = 100
HISTORY = schema.HISTORY.name
BY_BEACON, BY_TIME = schema.SEALED_BY_BEACON.name, schema.SEALED_BY_TIME.name
_NAMES = dict.fromkeys(("staff_id", "mac", "rssi", "timestamp"), 1)

Wanted = Callable[[Document], bool]
# By second and told id, how many rows.
Rows = Counter[tuple[int, str]]


class Found(NamedTuple):
    """A block, and the indexes of those of its detections that are wanted, and no rows."""

    staff_id: StaffId
    block: Block
    indexes: Sequence[int]


class SealedPlaces:
    """Reads the collection `sealed` by place and by beacon."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff
        self._sealed = staff.database[schema.SEALED.name]

    def newest_first(
        self, query: Document, index: str, is_wanted: Wanted, session: ClientSession
    ) -> Iterator[Found]:
        """Yield what is at the wanted places of the blocks of a query, the highest `until` first.

        `session`: a snapshot, in which the rows are read too. Raises DamagedBlock.
        """
        # In two steps: the database would put whole blocks in order, which are a hundred times
        # as large.
        steps: list[Document] = [
            {"$match": query},
            {"$project": {"staff_id": 1, "until": 1}},
            {"$sort": {"until": DESCENDING}},
        ]
        named = self._sealed.aggregate(steps, hint=index, session=session)
        while names := list(islice(named, BLOCKS_AT_ONCE)):
            ids = {"_id": {"$in": [name["_id"] for name in names]}}
            people = {"staff_id": {"$in": [name["staff_id"] for name in names]}}
            stored = list(self._sealed.find(ids | people, session=session))
            stored.sort(key=lambda block: int(block["until"]), reverse=True)
            wanted = [_wanted(block, is_wanted) for block in stored]
            rows = self.rows(stored, wanted, session)
            for document, places, of_block in zip(stored, wanted, rows, strict=True):
                for block in opened([document]):
                    found = without_rows(block, indexes_at(block, places), of_block)
                    yield Found(staff_id(document["staff_id"]), block, found)

    def that_are_rows(
        self, query: Document, macs: Document, start: int, session: ClientSession
    ) -> Iterator[Found]:
        """Yield what blocks of a query have since a time, of some beacons, that are rows too.

        Where little was sealed a moment ago that is little. Raises DamagedBlock.
        """
        span = {"first": {"$min": "$first"}, "last": {"$max": "$last"}}
        steps: list[Document] = [{"$match": query}, {"$group": {"_id": "$staff_id"} | span}]
        people = self._sealed.aggregate(steps, hint=BY_BEACON, session=session)
        while some := list(islice(people, PEOPLE_AT_ONCE)):
            spans = [
                {
                    "staff_id": person["_id"],
                    "timestamp": {"$gte": max(start, person["first"]), "$lt": person["last"] + 1},
                    "mac": macs,
                }
                for person in some
            ]
            rows = self._staff.find({"$or": spans}, _NAMES, session=session)
            rows = rows.sort([("staff_id", ASCENDING), ("timestamp", DESCENDING)])
            for block, of_block in self._by_block(map(detection, rows), session):
                indexes = range(len(block.times))
                left = {*without_rows(block, indexes, of_block)}
                taken = [index for index in indexes if index not in left]
                yield Found(staff_id(block.document["staff_id"]), block, taken)

    def _by_block(
        self, rows: Iterable[Detection], session: ClientSession
    ) -> Iterator[tuple[Block, Rows]]:
        """Yield the blocks of the times of rows, which come by person, the newest first."""
        block: Block | None = None
        of_block: Rows = Counter()
        person: StaffId | None = None
        floor = 0  # down to which time it is known which block has what of the person
        for row in rows:
            if row.staff_id != person or row.timestamp < floor:
                if block:
                    yield block, of_block
                person, of_block = row.staff_id, Counter()
                block, floor = self._block_of(person, row.timestamp, session)
            if block:
                of_block[row.timestamp, row.id] += 1
        if block:
            yield block, of_block

    def _block_of(
        self, person: StaffId, timestamp: int, session: ClientSession
    ) -> tuple[Block | None, int]:
        """Return the block of a time, None between two, and down to which time that is so."""
        query = tiles_since(person, timestamp)
        tile = self._sealed.find_one(query, sort=[("_id", ASCENDING)], session=session)
        if tile and tile["first"] <= timestamp:
            return next(opened([tile]), None), int(tile["first"])
        query = tiles_since(person, 0, timestamp)
        below = self._sealed.find_one(
            query, {"last": 1}, sort=[("_id", DESCENDING)], session=session
        )
        return None, int(below["last"]) + 1 if below else 0

    def rows(
        self,
        stored: Sequence[Document],
        wanted: Sequence[set[int]],
        session: ClientSession | None = None,
    ) -> list[Rows]:
        """Return for each of some blocks the rows of its person, time and wanted beacons."""
        pairs = list(zip(stored, wanted, strict=True))
        query = {
            "staff_id": {"$in": [block["staff_id"] for block in stored]},
            "timestamp": {
                "$gte": min(block["first"] for block in stored),
                "$lt": max(block["last"] for block in stored) + 1,
            },
            "mac": {"$in": list({block["places"][n]["mac"] for block, at in pairs for n in at})},
        }
        of_blocks: list[Rows] = [Counter() for _ in stored]
        rows = self._staff.find(query, _NAMES, hint=HISTORY, session=session)
        for row in map(detection, rows):
            for block, of_block in zip(stored, of_blocks, strict=True):
                is_within = block["first"] <= row.timestamp <= block["last"]
                if is_within and staff_id(block["staff_id"]) == row.staff_id:
                    of_block[row.timestamp, row.id] += 1
        return of_blocks


def indexes_at(block: Block, places: set[int]) -> list[int]:
    """Return the indexes of what a block has at some of its places."""
    return list(compress(count(), map(places.__contains__, block.at)))


def without_rows(block: Block, indexes: Sequence[int], rows: Rows) -> Sequence[int]:
    """Return those of some indexes of a block whose detections are no rows."""
    if not rows:  # as nearly always
        return indexes
    among = block.of_seconds({timestamp for timestamp, _ in rows})
    left, taken = rows.copy(), set()
    pairs: list[tuple[int, Any]] = list(zip(among, block.detections(among), strict=True))
    for index, sealed in reversed(pairs):
        if left[sealed.timestamp, sealed.id]:
            left[sealed.timestamp, sealed.id] -= 1
            taken.add(index)
    return [index for index in indexes if index not in taken]


def _wanted(block: Document, is_wanted: Wanted) -> set[int]:
    return {index for index, place in enumerate(block["places"]) if is_wanted(place)}
