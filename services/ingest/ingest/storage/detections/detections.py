"""The collection `staff`: one document per detection, sharded on a hash of `staff_id`."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import bson
import pymongo
from bson import ObjectId, Timestamp
from pymongo import DESCENDING
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.cursor import Cursor
from pymongo.read_concern import ReadConcern

from ingest.rules.detection_identity import is_reused
from ingest.rules.request_parameters import FIRST_MILLISECONDS, StaffId, TimeRange
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
from ingest.storage.places.times_by_place import TimesAt, by_place, times_at
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
    """Reads detections."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff
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
        for document in documents:
            stored = times.setdefault(document["_id"], NOT_STORED)
            repeats.append(stored != NOT_STORED and not is_reused(stored, document["timestamp"]))
            times[document["_id"]] = document["timestamp"]
        return repeats

    def staff_ids(self) -> list[StaffId]:
        """Return everybody of whom anything is stored."""
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            return valid_staff_ids(self._staff.distinct("staff_id"))

    def has(self, staff_id: StaffId) -> bool:
        """Tell whether anything was ever stored of a staff member."""
        with domain_errors():
            return self._staff.find_one({"staff_id": staff_id}, {"_id": 1}) is not None

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
        for times in ({"$lt": FIRST_MILLISECONDS}, {"$gte": FIRST_MILLISECONDS}):
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

        `as_of`: with all that the database had then (see `driver.reading`).
        """
        projection = {"_id": 0, "timestamp": 1, "level": 1, "location": 1}
        with reading(self._staff, as_of) as session:
            rows = self._durable.find(_between(wanted), projection, session=session)
            rows = rows.sort("timestamp", DESCENDING).batch_size(BATCH)
            for row in in_turns(rows, BATCH):
                level, location = row.get("level"), row.get("location")
                timestamp = int(row["timestamp"])
                yield timestamp, text(level, UNKNOWN), text(location, UNKNOWN)

    def times_by_place(
        self, wanted: TimeRange, limit: int, as_of: Timestamp | None = None
    ) -> list[TimesAt]:
        """Return the newest detections of a range, at most `limit`, as `list_between` has them."""
        with reading(self._staff, as_of) as session:
            pipeline = by_place(_between(wanted), limit)
            rows = self._durable.aggregate(pipeline, session=session, batchSize=limit)
            return [times_at(row) for row in rows]

    def list_recent(
        self, start: int, end: int, as_of: Timestamp | None = None
    ) -> Iterator[RecentRow]:
        """Yield everybody's detections between two unix seconds, both included, newest first.

        `as_of` as in `list_between`.
        """
        fields = ("staff_id", "level", "location", "timestamp", "rssi", "mac")
        projection = {"_id": 0} | dict.fromkeys(fields, 1)
        with reading(self._staff, as_of) as session:
            times = {"$gte": start, "$lt": end + 1}
            rows = self._durable.find({"timestamp": times}, projection, session=session)
            rows = rows.sort("timestamp", DESCENDING).batch_size(BATCH)
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

        In the order (timestamp, _id), which no index has: the index gives the seconds in order,
        and where a page begins or ends within a second, that second is read whole.
        `as_of` as in `list_between`.
        """
        with reading(self._staff, as_of) as session, turn():
            rows: list[Document] = []
            end = wanted.end
            if after and wanted.start <= after.timestamp <= end:
                below = ObjectId(after.id)
                rows = self._second(wanted.staff_id, after.timestamp, limit + 1, session, below)
                end = after.timestamp - 1
            elif after:
                end = min(end, after.timestamp - 1)
            missing = limit + 1 - len(rows)
            if missing > 0:
                rows += self._older(wanted._replace(end=end), missing, session)
        page = [detection(row) for row in rows[:limit]]
        more = len(rows) > limit
        return Page(page, Position(page[-1].timestamp, page[-1].id) if more else None)

    def _older(self, wanted: TimeRange, limit: int, session: ClientSession) -> list[Document]:
        rows = self._durable.find(_between(wanted), session=session)
        rows = rows.sort("timestamp", DESCENDING).limit(limit)
        # Without a size the first answer has 101 of them, and the rest costs a second command.
        documents = sorted(rows.batch_size(limit + 1), key=_position, reverse=True)
        if len(documents) < limit:
            return documents
        last = int(documents[-1]["timestamp"])  # this second may have more than these
        documents = [row for row in documents if row["timestamp"] >= last + 1]
        return documents + self._second(wanted.staff_id, last, limit - len(documents), session)

    def _second(
        self,
        staff_id: StaffId,
        timestamp: int,
        limit: int,
        session: ClientSession,
        below: ObjectId | None = None,
    ) -> list[Document]:
        # Within a second the index has an order of its own; an older database has fractions.
        times = {"$gte": timestamp, "$lt": timestamp + 1}
        query: Document = {"staff_id": staff_id, "timestamp": times}
        if below:
            query["_id"] = {"$lt": below}
        rows = self._durable.find(query, session=session)
        return list(rows.sort("_id", DESCENDING).limit(limit))

    def count(self, wanted: TimeRange, as_of: Timestamp | None) -> int:
        """Count the detections of a range, in the index; `as_of` as in `list_between`."""
        return self._count(_between(wanted), as_of)

    def count_recent(self, start: int, end: int, as_of: Timestamp | None) -> int:
        """Count what `list_recent` yields; on shards also what one gave away a while ago."""
        return self._count({"timestamp": {"$gte": start, "$lt": end + 1}}, as_of)

    def _count(self, query: Document, as_of: Timestamp | None) -> int:
        read_concern: Document = {"level": "majority"}
        if as_of:
            read_concern["afterClusterTime"] = as_of
        with pymongo.timeout(COUNT_TIMEOUT_SECONDS):
            reply = command(self._staff, "count", {"query": query, "readConcern": read_concern})
        return int(reply["n"])


def _position(row: Document) -> tuple[int, ObjectId]:
    return int(row["timestamp"]), row["_id"]


def _between(wanted: TimeRange) -> dict[str, Any]:
    times = {"$gte": wanted.start, "$lt": wanted.end + 1}
    return {"staff_id": wanted.staff_id, "timestamp": times}
