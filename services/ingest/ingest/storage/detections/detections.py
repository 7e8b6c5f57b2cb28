"""The collection `staff`: one document per detection, sharded on a hash of `staff_id`."""

from collections import Counter
from collections.abc import Iterator
from itertools import dropwhile, groupby, islice, repeat
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import bson
import pymongo
from bson import ObjectId, Timestamp
from pymongo import DESCENDING
from pymongo.collection import Collection
from pymongo.cursor import Cursor
from pymongo.read_concern import ReadConcern

from ingest.rules.detection_identity import is_reused
from ingest.rules.request_parameters import FIRST_MILLISECONDS, StaffId, TimeRange
from ingest.rules.retention import FOR_EVER, Retention
from ingest.storage.database.driver import command, domain_errors, reading
from ingest.storage.detections.documents import (
    NO_MAC,
    UNKNOWN,
    Detection,
    Document,
    detection,
    staff_id,
    strength,
    text,
    unix_seconds,
    valid_staff_ids,
    whole,
)
from ingest.storage.places.times_by_place import TimesAt
from ingest.storage.sealed.recent import SealedRecent, beside
from ingest.storage.sealed.repeats import SealedRepeats
from ingest.storage.sealed.sealed import Sealed
from ingest.turns import in_turns, turn

# Documents that the driver decodes at once: some 600 bytes each.
BATCH = 500
# One step in an index for each staff member.
SCAN_TIMEOUT_SECONDS = 30
# A count takes mongod half a microsecond a row, on a starved machine ten times that.
COUNT_TIMEOUT_SECONDS = 10

NOT_STORED = -1

_ID_BYTES = len(bson.encode({"_id": ObjectId()}))

HistoryRow = tuple[int, str, str]  # timestamp, level, location


class RecentRow(NamedTuple):
    """A detection of the last minutes, as far as one who asks for everybody needs it."""

    staff_id: StaffId
    level: str
    location: str
    timestamp: int
    rssi: int | None
    mac: str


class Position(NamedTuple):
    """Where a page ends: its last detection. The next page has none before it, and no gap."""

    timestamp: int
    id: str


class Page(NamedTuple):
    """Some detections, newest first, and where the next page goes on (None: there is no more)."""

    detections: list[Detection]
    next: Position | None


class Detections:
    """Reads detections, but for those that are due."""

    def __init__(self, staff: Collection[Document], retention: Retention = FOR_EVER) -> None:
        self._staff = staff
        self._retention = retention
        self._sealed = Sealed(staff)
        self._repeats = SealedRepeats(staff)
        self._recent = SealedRecent(staff)
        # What a majority has is never rolled back: what is cached of it stays true.
        self._durable = staff.with_options(read_concern=ReadConcern("majority"))

    def already_stored(self, documents: list[Document]) -> list[bool]:
        """Tell for each document whether it, or one before it in the list, is its first copy.

        By its first name: of an id that was used anew, a repeat counts as new here.
        """
        ids = [document["_id"] for document in documents]
        with domain_errors():
            rows = self._staff.find({"_id": {"$in": ids}}, {"timestamp": 1})
            times = {row["_id"]: unix_seconds(row.get("timestamp")) for row in rows}
        repeats = []
        sealed = set(self._repeats.find(documents))
        for n, document in enumerate(documents):
            stored = times.setdefault(document["_id"], NOT_STORED)
            is_row = stored != NOT_STORED and not is_reused(stored, document["timestamp"])
            repeats.append(is_row or n in sealed)
            times[document["_id"]] = document["timestamp"]
        return repeats

    def staff_ids(self) -> list[StaffId]:
        """Return everybody of whom anything is stored."""
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            return valid_staff_ids(self._staff.distinct("staff_id"))

    def has(self, staff_id: StaffId) -> bool:
        """Tell whether anything is kept of a staff member."""
        kept = {"timestamp": {"$gte": floor}} if (floor := self._retention.floor()) else {}
        with domain_errors():
            return self._staff.find_one({"staff_id": staff_id} | kept, {"_id": 1}) is not None

    def gone(self, ids: set[ObjectId], as_of: Timestamp | None) -> set[ObjectId]:
        """Return those that are not stored any more; `as_of`: by then all of them were."""
        with reading(self._staff, as_of) as session:
            query, size = {"_id": {"$in": list(ids)}}, len(ids) + 1
            batches: Cursor[Any] = self._durable.find_raw_batches(
                query, {"_id": 1}, batch_size=size, session=session
            )
            encoded = b"".join(batches)
        if len(encoded) == len(ids) * _ID_BYTES:  # as nearly always: nothing is made of it
            return set()
        return ids - {row["_id"] for row in bson.decode_all(encoded)}

    def newest(
        self, staff_id: StaffId, limit: int, as_of: Timestamp | None = None
    ) -> list[Document]:
        """Return the newest documents of a staff member that a majority has, newest first.

        `as_of` as in `list_between`.
        """
        documents: list[Document] = []
        # An older database's milliseconds are large numbers, and need not be the newest.
        floor = self._retention.floor()
        for times in (
            {"$gte": floor, "$lt": FIRST_MILLISECONDS} if floor else {"$lt": FIRST_MILLISECONDS},
            {"$gte": max(FIRST_MILLISECONDS, floor * 1000)},
        ):
            query = {"staff_id": staff_id, "timestamp": times}
            with reading(self._staff, as_of) as session:
                rows = self._durable.find(query, session=session)
                rows = rows.sort("timestamp", DESCENDING).limit(limit)
                # What has no time cannot be the latest of anything.
                documents += [known for row in rows if (known := whole(row))["timestamp"]]
        return sorted(documents, key=itemgetter("timestamp"), reverse=True)[:limit]

    def list_between(
        self, wanted: TimeRange, as_of: Timestamp | None = None
    ) -> Iterator[HistoryRow]:
        """Yield timestamp, level and location of one staff member's detections, newest first.

        Of a second in the order of level and location, as `times_by_place` is put in order.
        `as_of`: with all that the database had then (see `driver.reading`).
        """
        kept = self._retention.kept(wanted)
        if self._sealed.reaches(kept, as_of):
            every = self._sealed.newest_first(kept, as_of)
            for timestamp, second in groupby(every, attrgetter("timestamp")):
                # A second has no bound, but its places are few.
                at_places = Counter((known.level, known.location) for known in second)
                for place in sorted(at_places):
                    yield from repeat((timestamp, *place), at_places[place])
            return
        projection = {"_id": 0, "timestamp": 1, "level": 1, "location": 1}
        with reading(self._staff, as_of) as session:
            rows = self._durable.find(self._between(wanted), projection, session=session)
            rows = rows.sort("timestamp", DESCENDING).batch_size(BATCH)
            for row in in_turns(rows, BATCH):
                level, location = row.get("level"), row.get("location")
                timestamp = int(row["timestamp"])
                yield timestamp, text(level, UNKNOWN), text(location, UNKNOWN)

    def times_by_place(
        self, wanted: TimeRange, limit: int, as_of: Timestamp | None = None
    ) -> list[TimesAt]:
        """Return the newest detections of a range, at most `limit`, as `list_between` has them."""
        return self._sealed.times_by_place(self._retention.kept(wanted), limit, as_of)

    def list_recent(
        self, start: int, end: int, as_of: Timestamp | None = None
    ) -> Iterator[RecentRow]:
        """Yield everybody's detections between two unix seconds, both included, newest first.

        `as_of` as in `list_between`.
        """
        fields = ("staff_id", "level", "location", "timestamp", "rssi", "mac")
        with reading(self._staff, as_of) as session:
            sealed = self._recent.newest_first(start, end, session)
            projection = {"_id": int(bool(sealed))} | dict.fromkeys(fields, 1)
            times = {"$gte": start, "$lt": end + 1}
            rows = self._durable.find({"timestamp": times}, projection, session=session)
            rows = rows.sort("timestamp", DESCENDING).batch_size(BATCH)
            if sealed:
                for known in beside(map(detection, in_turns(rows, BATCH)), sealed):
                    yield RecentRow(*(getattr(known, name) for name in RecentRow._fields))
                return
            for row in in_turns(rows, BATCH):
                yield RecentRow(
                    staff_id(row.get("staff_id")),
                    text(row.get("level"), UNKNOWN),
                    text(row.get("location"), UNKNOWN),
                    int(row["timestamp"]),
                    strength(row.get("rssi")),
                    text(row.get("mac"), NO_MAC),
                )

    def page(
        self,
        wanted: TimeRange,
        after: Position | None,
        limit: int,
        as_of: Timestamp | None = None,
    ) -> Page:
        """Return the newest detections in a range, those after a position if given.

        In the order of timestamp and id. What has the same of both is on one page, which may so
        have more than `limit`. `as_of` as in `list_between`.
        """
        wanted = self._retention.kept(wanted)
        if after:
            wanted = wanted._replace(end=min(wanted.end, after.timestamp))
        with turn():
            every = self._sealed.newest_first(wanted, as_of, limit + 1)
            if after:
                every = dropwhile(lambda one: Position(one.timestamp, one.id) >= after, every)
            page = list(islice(every, limit))
            following = next(every, None)
            while following and page and _position(following) == _position(page[-1]):
                page.append(following)
                following = next(every, None)
        return Page(page, _position(page[-1]) if page and following else None)

    def count(self, wanted: TimeRange, as_of: Timestamp | None) -> int:
        """Count the detections of a range; `as_of` as in `list_between`."""
        with pymongo.timeout(COUNT_TIMEOUT_SECONDS):
            return self._sealed.count(self._retention.kept(wanted), as_of)

    def count_recent(self, start: int, end: int, as_of: Timestamp | None) -> int:
        """Count what `list_recent` yields; on shards also what one gave away a while ago."""
        with reading(self._staff, as_of) as session:
            is_sealed = bool(self._recent.newest_first(start, end, session))
        if is_sealed:
            return sum(1 for _ in self.list_recent(start, end, as_of))
        return self._count({"timestamp": {"$gte": start, "$lt": end + 1}}, as_of)

    def _between(self, wanted: TimeRange) -> dict[str, Any]:
        kept = self._retention.kept(wanted)
        times = {"$gte": kept.start, "$lt": kept.end + 1}
        return {"staff_id": kept.staff_id, "timestamp": times}

    def _count(self, query: Document, as_of: Timestamp | None) -> int:
        read_concern: Document = {"level": "majority"}
        if as_of:
            read_concern["afterClusterTime"] = as_of
        with pymongo.timeout(COUNT_TIMEOUT_SECONDS):
            reply = command(self._staff, "count", {"query": query, "readConcern": read_concern})
        return int(reply["n"])


def _position(detection: Detection) -> Position:
    return Position(detection.timestamp, detection.id)
