"""What came in after a stamp: which seconds of stamps are others than before, and who is in them.

A second has a name, made of all the stamps in it. So whoever remembers the names of the seconds
that are not settled knows which of them he has to read again, and nothing needs to be listed.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import MINYEAR, datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import bson
from bson import Timestamp
from pymongo import DESCENDING
from pymongo.client_session import ClientSession
from pymongo.command_cursor import CommandCursor
from pymongo.cursor import Cursor
from pymongo.database import Database
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from common import schema
from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import FIRST_MILLISECONDS, StaffId
from ingest.rules.where import RECENT
from ingest.storage.database.driver import BAD_VALUE, domain_errors, reading
from ingest.storage.database.indexes import BY_STAMP
from ingest.storage.detections import documents
from ingest.storage.detections.documents import Document, has_staff_and_time, whole
from ingest.storage.detections.stamps import NEW, STAMP, number, second_of, stamp, start_of
from ingest.storage.people.latest_updates import NEVER, NEWEST_OF_EACH, newest_first

# People that the driver decodes at once: some 3 kB each.
BATCH = 50
# Stamps that are held at once: some 21 bytes each, twice while a message is taken apart.
STAMPS_AT_ONCE = 20_000
_STAMP_BYTES = len(bson.encode({STAMP: NEW}))
_AT = _STAMP_BYTES - 9  # where in them the stamp begins


class Second(NamedTuple):
    """What was stored in a second: how many detections, and what names all their stamps."""

    rows: int
    name: int


class Group(NamedTuple):
    """The newest detections of a staff member among those that were asked for."""

    staff_id: StaffId
    shown: list[Document]  # newest first, at most RECENT
    newest: Timestamp  # the latest stamp of all of them


class Stamps:
    """The stamps after a floor, told second by second: none of them is kept."""

    def __init__(self, batches: Iterable[bytes], most: int, known: int) -> None:
        """Look at so many at most, in order, and whether a known one is among them."""
        self.seconds: dict[int, Second] = {}  # the last lacks something when these are not all
        self.newest = 0
        self.has_known = False
        self.is_all = True
        left, digest = most, blake2b(digest_size=8)
        for encoded in batches:
            batch = _Batch(encoded[: left * _STAMP_BYTES])
            left -= len(batch)
            self.is_all = len(batch) * _STAMP_BYTES == len(encoded)
            self.has_known = self.has_known or batch.has(known)
            for second, text in batch.by_second():
                before = self.seconds.get(second)
                digest = digest if before else blake2b(digest_size=8)
                digest.update(text)
                rows = (before.rows if before else 0) + len(text) // _STAMP_BYTES
                self.seconds[second] = Second(rows, int.from_bytes(digest.digest(), "little"))
            self.newest = batch[len(batch) - 1] if len(batch) else self.newest
            if not self.is_all:
                return


class _Batch:
    """Some stamps as the database told them: never made objects of."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded

    def __len__(self) -> int:
        return len(self._encoded) // _STAMP_BYTES

    def __getitem__(self, position: int) -> int:
        begin = position * _STAMP_BYTES + _AT
        return int.from_bytes(self._encoded[begin : begin + 8], "little")

    def has(self, known: int) -> bool:
        index = bisect_left(self, known)
        return index < len(self) and self[index] == known

    def by_second(self) -> Iterator[tuple[int, bytes]]:
        first = 0
        while first < len(self):
            second = second_of(self[first])
            after = bisect_left(self, second + 1, first, key=second_of)
            yield second, self._encoded[first * _STAMP_BYTES : after * _STAMP_BYTES]
            first = after


class Arrivals:
    """Reads what came in."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        # What a majority has is never rolled back: what is noted of it stays true.
        self._staff = database[schema.STAFF.name].with_options(read_concern=ReadConcern("majority"))

    def reading(self) -> AbstractContextManager[ClientSession]:
        """Give a session, in which nothing is told by a primary that was deposed."""
        return reading(self._staff)

    def newest(self, session: ClientSession) -> tuple[int, int]:
        """Return the newest stamp, and the time that the database tells.

        Raises StoreUnavailable.
        """
        with domain_errors():
            row = self._staff.find_one(
                {}, {"_id": 0, STAMP: 1}, sort=[(STAMP, DESCENDING)], session=session
            )
        if not session.operation_time:
            raise StoreUnavailable("the database has just started")
        newest = (row or {}).get(STAMP)
        known = number(newest) if isinstance(newest, Timestamp) else 0
        return known, number(session.operation_time)

    def after(self, floor: int, session: ClientSession, most: int, known: int = 0) -> Stamps:
        """Return what the stamps after a floor tell, `most` at most. Raises StoreUnavailable."""

        def read(**hint: str) -> Stamps:
            batches: Cursor[Any] = self._staff.find_raw_batches(
                {STAMP: {"$gt": stamp(floor)}},
                {"_id": 0, STAMP: 1},
                sort=[(STAMP, 1)],
                limit=most + 1,
                batch_size=STAMPS_AT_ONCE,
                session=session,
                **hint,
            )
            with batches:
                return Stamps(batches, most, known)

        with domain_errors():
            try:
                return read(hint=BY_STAMP)
            except OperationFailure as error:
                if error.code != BAD_VALUE:
                    raise
                return read()

    def people(self, floor: int, seconds: Sequence[int], session: ClientSession) -> Iterator[Group]:
        """Yield who is in these seconds, as far as they are after the floor.

        Raises StoreUnavailable.
        """
        within = {"$match": _within(floor, seconds)}
        with domain_errors():
            for group in self._aggregate([within, *NEWEST_OF_EACH], session):
                staff_id, shown = documents.staff_id(group["_id"]), group["shown"]
                if staff_id == documents.UNKNOWN:
                    continue
                if not _is_plain(shown[0]):  # of an older database: its numbers have no order
                    shown = self._whole(group["_id"], session)
                if shown := [row for row in shown if has_staff_and_time(row)]:
                    yield Group(staff_id, shown, group["newest"])

    def first_time(
        self, floor: int, seconds: Sequence[int], start: int, session: ClientSession
    ) -> int | None:
        """Return the lowest timestamp from `start` on in these seconds, None without any."""
        within = _within(floor, seconds) | {"timestamp": {"$gte": start}}
        lowest = {"$group": {"_id": None, "first": {"$min": "$timestamp"}}}
        with domain_errors():
            for row in self._aggregate([{"$match": within}, lowest], session):
                return documents.unix_seconds(row["first"])
        return None

    def ahead(self, cluster_time: int, limit: int) -> list[Document]:
        """Return what names detections with stamps after a time. Raises StoreUnavailable."""
        with domain_errors():
            rows = self._staff.find({STAMP: {"$gt": stamp(cluster_time)}}, {"staff_id": 1})
            return list(rows.sort(STAMP, DESCENDING).limit(limit))

    def _aggregate(
        self, pipeline: list[dict[str, Any]], session: ClientSession
    ) -> CommandCursor[Document]:
        try:
            return self._staff.aggregate(pipeline, session=session, hint=BY_STAMP, batchSize=BATCH)
        except OperationFailure as error:
            if error.code != BAD_VALUE:  # the index is being made
                raise
            return self._staff.aggregate(pipeline, session=session, batchSize=BATCH)

    def _whole(self, staff_id: Any, session: ClientSession) -> list[Document]:
        """Return somebody's newest detections as `documents.document` would have stored them."""
        newest: list[Document] = []
        kinds: tuple[Document, ...] = (
            {"$lt": FIRST_MILLISECONDS},
            {"$gte": FIRST_MILLISECONDS},
            {"$gte": datetime(MINYEAR, 1, 1)},  # noqa: DTZ001  # MongoDB's have no zone
        )
        for times in kinds:
            query = {"staff_id": staff_id, "timestamp": times}
            rows = self._staff.find(query, session=session).sort("timestamp", DESCENDING)
            newest += [whole(row) | {STAMP: row.get(STAMP, NEVER)} for row in rows.limit(RECENT)]
        return newest_first(newest, "_id")


def _is_plain(row: Document) -> bool:
    timestamp = row.get("timestamp")
    return isinstance(timestamp, int | float) and timestamp < FIRST_MILLISECONDS


def _within(floor: int, seconds: Sequence[int]) -> Document:
    """Return what finds the stamps of some seconds, in order, that are after a floor."""
    ranges: list[list[int]] = []
    for second in seconds:
        if ranges and ranges[-1][1] == second:
            ranges[-1][1] = second + 1
        else:
            ranges.append([second, second + 1])
    conditions = [
        {STAMP: {"$gt": stamp(max(floor, start_of(first))), "$lt": stamp(start_of(last))}}
        for first, last in ranges
    ]
    return conditions[0] if len(conditions) == 1 else {"$or": conditions}
