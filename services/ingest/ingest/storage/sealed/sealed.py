"""The collection `sealed`: somebody's history in blocks, which with `staff` is all of it.

Blocks of a person are tiles in the order of time; whoever changes them has read them as they are. A
row of `staff` that a block has too is one detection, and the row counts: it may have been corrected
since. So a block is true from the moment at which it is there, whatever becomes of the rows. They
go last: only those that a block was read to have, and when all reads are over that began before it
was there. What tells a state of somebody's detections stays a row: the newest, by any clock and by
their stamps.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import chain, groupby, islice, takewhile
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from bson import ObjectId, Timestamp
from pymongo import ASCENDING, DESCENDING
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.errors import DuplicateKeyError, OperationFailure
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from common import schema
from ingest.rules.detection_identity import REUSED_SECONDS, next_id
from ingest.rules.request_parameters import FIRST_MILLISECONDS, StaffId, TimeRange
from ingest.rules.where import RECENT
from ingest.storage.database.driver import domain_errors, reading
from ingest.storage.detections import documents
from ingest.storage.detections.documents import (
    FIRST_OF_ID,
    LAST_OF_ID,
    Detection,
    Document,
    is_timeless,
)
from ingest.storage.detections.stamps import RENEWED, STAMP, number, settled
from ingest.storage.places.times_by_place import TimesAt, by_place, times_at
from ingest.storage.sealed import blocks
from ingest.storage.sealed.blocks import (
    MAX_DETECTIONS,
    Block,
    DamagedBlock,
    SealedDetection,
)
from ingest.storage.sealed.damage import opened, readable

# A read that began before a block was there is over by then: the gateway gives it 8 s, and each
# page of a file is a read of its own.
GRACE_SECONDS = 120
# How many blocks, and how many rows, the driver holds at once: 13 KiB and 600 bytes each.
BLOCKS_AT_ONCE, ROWS_AT_ONCE = 8, 500
# How many rows of the time of a block are looked at, and sealed if they come late, at once.
MAX_LATE = 2 * MAX_DETECTIONS
# How many rows of one second are put in order here; of more, the database does so.
MAX_SECOND = 4096
# Instead of a time: of the document that counts how often somebody's blocks were changed.
HEAD = "head"
# A newest block that has fewer is made anew with what follows.
FEW = MAX_DETECTIONS // 2
# How long a name without a time may be asked for, and an hour for clocks.
NAMED_SECONDS = REUSED_SECONDS + 3600

# What is kept of an id, in MongoDB's words.
_KEPT = "kept"
_DIGITS = {"$convert": {"input": "$_id", "to": "string", "onError": "", "onNull": ""}}
_KEPT_OF_ID = {
    "$concat": [
        {"$substrBytes": [_DIGITS, 0, 2 * FIRST_OF_ID]},
        {"$substrBytes": [_DIGITS, 24 - 2 * LAST_OF_ID, 2 * LAST_OF_ID]},
    ]
}

_TIME = attrgetter("timestamp")
_ORDER = attrgetter("timestamp", "id")


class _Timed(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def timestamp(self) -> int: ...


_Read = TypeVar("_Read", bound=_Timed)


class _Kept(NamedTuple):
    """Which rows of a person stay rows, whatever blocks have."""

    newest: int  # the timestamp of the last of the newest
    stamp: int  # what is stamped later stays
    shown: frozenset[Any]  # the `_id`s of those that `latest` shows

    def has(self, row: Document) -> bool:
        is_new = row["timestamp"] >= self.newest or number(row.get(STAMP)) > self.stamp
        return is_new or row["_id"] in self.shown


class _Clock(NamedTuple):
    """Tells the database's time, also to who was frozen since he was told."""

    told: int
    at: float  # by `time.monotonic`; infinite: it stands still

    @classmethod
    def running(cls, now: int) -> "_Clock":
        return cls(now, time.monotonic())

    @classmethod
    def still(cls, now: int) -> "_Clock":
        return cls(now, math.inf)

    def now(self) -> int:
        return self.told + int(max(0.0, time.monotonic() - self.at))


class Settled(NamedTuple):
    """What one piece of settling did."""

    late: int  # detections that a block has now
    deleted: int  # rows


class Sealed:
    """Reads histories of rows and blocks; makes blocks of rows, and deletes those rows."""

    def __init__(self, staff: Collection[Document]) -> None:
        # What a majority has is never rolled back: a row goes when its block is there for good.
        durable = ReadConcern("majority")
        self._staff = staff.with_options(read_concern=durable)
        self._sealed = staff.database[schema.SEALED.name].with_options(read_concern=durable)
        self._latest = staff.database[schema.LATEST.name].with_options(read_concern=durable)

    def newest_first(
        self, wanted: TimeRange, as_of: Timestamp | None = None, most: int = ROWS_AT_ONCE
    ) -> Iterator[Detection]:
        """Yield the detections of a range, the newest first; of one second the highest id.

        `as_of`: with all that the database had then; `most`: how many are likely to be read.
        Raises StoreUnavailable, DamagedBlock.
        """
        with reading(self._staff, as_of) as session:
            rows = _Rows(self._rows(wanted, session, most))
            for block in self._blocks(wanted, session, most):
                yield from rows.down_to(block.last + 1)
                within = block.newest_first(wanted.staff_id, wanted.start, wanted.end)
                yield from joined(rows.down_to(block.first), iter(within))
            yield from rows.down_to(0)

    def reaches(self, wanted: TimeRange, as_of: Timestamp | None = None) -> bool:
        """Tell whether a range has anything in blocks, without opening one.

        Raises StoreUnavailable.
        """
        with reading(self._staff, as_of) as session:
            oldest = self._tile(wanted.staff_id, wanted.start, session, {"first": 1})
            return bool(oldest and oldest["first"] <= wanted.end)

    def times_by_place(
        self, wanted: TimeRange, limit: int, as_of: Timestamp | None = None
    ) -> list[TimesAt]:
        """Return the newest detections of a range, at most `limit`, as times of each place.

        No object is made for each. Raises StoreUnavailable, DamagedBlock.
        """
        times = _Times(limit)
        with reading(self._staff, as_of) as session:
            sealed = self._blocks(wanted, session, limit)
            newest = next(sealed, None)
            start = max(wanted.start, newest.last + 1) if newest else wanted.start
            if start <= wanted.end:
                recent = by_place(_between(wanted._replace(start=start)), limit)
                for row in self._staff.aggregate(recent, session=session, batchSize=limit):
                    times.add(times_at(row))
            if newest and times.left:
                older = wanted._replace(end=min(wanted.end, newest.last))
                rows = _Rows(self._rows(older, session, ROWS_AT_ONCE))
                for block in chain([newest], sealed):
                    times.add_each(rows.down_to(block.last + 1))
                    if rows.reach(block.first):
                        within = block.newest_first(wanted.staff_id, wanted.start, wanted.end)
                        times.add_each(joined(rows.down_to(block.first), iter(within)))
                    else:
                        times.add_block(block, wanted)
                    if not times.left:
                        break
                times.add_each(rows.down_to(0))
        return times.at_places()

    def count(self, wanted: TimeRange, as_of: Timestamp | None = None) -> int:
        """Count the detections of a range. Raises StoreUnavailable, DamagedBlock."""
        with reading(self._staff, as_of) as session:
            within = tiles_since(wanted.staff_id, wanted.start) | {
                "first": {"$gte": wanted.start},
                "last": {"$lte": wanted.end},
            }
            stages: list[Document] = [
                {"$match": within},
                {"$group": {"_id": None, "count": {"$sum": "$count"}}},
            ]
            whole = next(iter(self._sealed.aggregate(stages, session=session)), None)
            count = whole["count"] if whole else 0
            for edge in {wanted.start, wanted.end}:
                block = self._tile(wanted.staff_id, edge, session)
                if block and block["first"] <= edge and not _is_within(block, wanted):
                    is_twice = edge == wanted.end and block["first"] <= wanted.start
                    of_block = opened([] if is_twice else [block])
                    count += sum(len(known.span(*wanted[1:])) for known in of_block)
            return count + self._count_rows(wanted, session)

    def _count_rows(self, wanted: TimeRange, session: ClientSession) -> int:
        """Count the rows of a range that no block has; those between blocks are not read."""
        count, rest = 0, wanted
        while oldest := self._staff.find_one(
            _between(rest), {"timestamp": 1}, sort=[("timestamp", ASCENDING)], session=session
        ):
            stored = self._tile(wanted.staff_id, int(oldest["timestamp"]), session)
            if not stored:
                return count + self._staff.count_documents(_between(rest), session=session)
            if oldest["timestamp"] < stored["first"]:
                between = _between(rest._replace(end=min(rest.end, stored["first"] - 1)))
                count += self._staff.count_documents(between, session=session)
            count += self._count_beside(stored, rest, session)
            rest = rest._replace(start=stored["last"] + 1)
        return count

    def _count_beside(self, stored: Document, wanted: TimeRange, session: ClientSession) -> int:
        """Count the rows of the time of a block that it lacks."""
        start, end = max(wanted.start, stored["first"]), min(wanted.end, stored["last"])
        among = _between(TimeRange(wanted.staff_id, start, end))
        rows = iter(self._staff.find(among, session=session).batch_size(ROWS_AT_ONCE))
        names = (blocks.of_row(row).id for row in rows)
        if (first := next(names, None)) is None:  # as nearly always: the block is not opened
            return 0
        left = Counter(known.id for block in opened([stored]) for known in block.detections())
        count = 0
        for name in chain([first], names):
            if left[name]:
                left[name] -= 1
            else:
                count += 1
        return count

    def seal(self, staff_id: StaffId, before: int, now: int) -> int:
        """Make blocks of what is after all blocks, and older than a time; return of how many.

        A piece of it: 0 says that all is done, or that another service does it. Times in unix
        seconds; `now`: by the database. Raises StoreUnavailable.
        """
        clock = _Clock.running(now)
        with domain_errors():
            version = self._version(staff_id)
            newest = self._newest(staff_id)
            end = min(before, self._kept(staff_id).newest) - 1
            most = MAX_DETECTIONS + 1
            fresh = self._oldest(staff_id, newest["last"] + 1 if newest else 0, end, most)
            while _is_one_second(fresh):  # of a clock that stands still: they stay rows
                newest = None
                fresh = self._oldest(staff_id, fresh[0]["timestamp"] + 1, end, most)
            rows = list(takewhile(lambda row: not _may_be_asked_for(row, now), fresh))
            if not rows:
                return 0
            few = readable(newest) if newest and newest["count"] < FEW else None
            known = few.detections() if few else []
            piece = _piece([*known, *sorted(map(blocks.of_row, rows), key=_ORDER)])
            if len(piece) <= len(known):
                known = []
                piece = _piece(sorted(map(blocks.of_row, rows), key=_ORDER))
            gone = [newest] if newest and known else []
            made = [blocks.sealed(staff_id, piece)]
            return len(piece) - len(known) if self._change(version, made, gone, clock) else 0

    def settle(self, staff_id: StaffId, now: int) -> Iterator[Settled]:
        """Delete rows that blocks have since GRACE_SECONDS, as they are; take in what came late.

        A piece of it at a time: the blocks whose time has rows, the oldest first. A block that
        lacks some of them, or has them otherwise, is made anew, and those rows go the next time.
        `now`: by the database, in unix seconds. Raises StoreUnavailable.
        """
        clock = _Clock.running(now)
        start = 0
        while True:
            with reading(self._staff) as session:
                version = self._version(staff_id)
                oldest = self._oldest(staff_id, start, now, 1)
                stored = self._tile(staff_id, int(oldest[0]["timestamp"])) if oldest else None
                if not stored:
                    break
                rows = _between(TimeRange(staff_id, start, stored["last"]))
                start = stored["last"] + 1
                if stored["sealed_at"] > now - GRACE_SECONDS:
                    yield Settled(0, 0)
                    continue
                if not (block := readable(stored)):
                    continue  # its rows stay
                own = block.detections()
                found = self._staff.find(rows, session=session)
                every = iter(found.sort("timestamp", ASCENDING).batch_size(ROWS_AT_ONCE))
                kept, present = self._kept(staff_id), {detection.content for detection in own}
                parted = -1  # the second that the group before ends with: it may have no bound
                while group := list(islice(every, MAX_LATE)):
                    contents = [blocks.of_row(row).content for row in group]
                    are_once = len(set(contents)) == len(contents)
                    if not (are_once and present.issuperset(contents)):  # as nearly never
                        whole_seconds = [row for row in group if int(row["timestamp"]) != parted]
                        late = self._take_in(block, own, whole_seconds, version, clock)
                        if late is not None:
                            yield Settled(late, 0)
                            break  # the other rows are of blocks that are there now
                    parted = int(group[-1]["timestamp"])
                    same = [
                        row
                        for row, content in zip(group, contents, strict=True)
                        if content in present and not kept.has(row)
                    ]
                    free = self._without_followed(same)
                    for first in range(0, len(free), ROWS_AT_ONCE):
                        yield Settled(0, self._delete(free[first : first + ROWS_AT_ONCE]))
                    if not free:  # one second may have a million that stay rows
                        yield Settled(0, 0)

    def delete_blocks(self, staff_id: StaffId, ids: Sequence[Document]) -> None:
        """Delete some blocks of a person, whose rows are deleted; with the last one all of it.

        Raises StoreUnavailable.
        """
        with domain_errors():
            self._sealed.delete_many({"_id": {"$in": list(ids)}, "staff_id": staff_id})
            version = self._version(staff_id)
            if not self._newest(staff_id):  # who makes one now counts, and the head stays
                self._sealed.delete_one(_head(staff_id) | {"version": version})

    def staff_ids(self) -> list[StaffId]:
        """Return everybody of whom there are blocks. Raises StoreUnavailable."""
        with domain_errors():
            return documents.valid_staff_ids(self._sealed.distinct("staff_id"))

    def forget(self, staff_id: StaffId, until: float) -> bool:
        """Delete what blocks of a person have that came until then; its rows have to be gone.

        Who was about to make a block of those rows has read a version that is no more, or finds
        that the rows are gone. False: that is not all, once more is needed.
        Raises StoreUnavailable.
        """
        every = tiles_since(staff_id, 0)
        with domain_errors():
            self._sealed.update_one(_head(staff_id), {"$inc": {"version": 1}}, upsert=True)
            self._sealed.delete_many(every | {"sealed_at": {"$not": {"$gt": until}}})
            version = self._version(staff_id)
            # Nothing came before it was heard, by our clock.
            maybe = every | {"since": {"$not": {"$gt": until}}}
            for stored in self._sealed.find(maybe).batch_size(BLOCKS_AT_ONCE):
                kept: list[SealedDetection] = []
                with suppress(DamagedBlock):  # else nobody knows what is in it: it goes
                    present = Block(stored).detections()
                    kept = [detection for detection in present if detection.received_at > until]
                if not kept:
                    as_read = {name: stored[name] for name in ("_id", "staff_id", "sealed_at")}
                    self._sealed.delete_one(as_read)
                elif len(kept) < stored["count"]:
                    made = [blocks.sealed(staff_id, kept)]
                    self._change(version, made, [stored], _Clock.still(stored["sealed_at"]))
                    return False
            self.delete_blocks(staff_id, [])  # the head, where nothing is left
        return True

    def correct(
        self, staff_id: StaffId, names: Sequence[Any], corrected: Callable[[Block], Document | None]
    ) -> bool:
        """Put what is made of blocks, None where nothing is, in their places; by their `_id`s.

        The newest stamp is renewed with them: cached histories are of a state that has it, and who
        misses a stamp of that reads all again. False: somebody else changed this person's blocks
        meanwhile. Raises StoreUnavailable, DamagedBlock.
        """
        with domain_errors():
            version = self._version(staff_id)
            query = {"_id": {"$in": list(names)}, "staff_id": staff_id}
            known = opened(list(self._sealed.find(query)))
            pairs = [(block.document, made) for block in known if (made := corrected(block))]
            if not pairs or not version:
                return not pairs
            since = max(block["sealed_at"] for block, _ in pairs)
            old, new = [block for block, _ in pairs], [block for _, block in pairs]
            return self._change(version, new, old, _Clock.still(since), is_corrected=True)

    def _delete(self, rows: Sequence[Document]) -> int:
        """Delete rows; not those that were corrected since they were read."""
        at_places = [
            {"_id": {"$in": [row["_id"] for row in at_place]}} | _place(at_place[0])
            for at_place in _by_place(rows)
        ]
        query = {"_id": {"$in": [row["_id"] for row in rows]}, "staff_id": rows[0]["staff_id"]}
        return self._staff.delete_many(query | {"$or": at_places}, hint="_id_").deleted_count

    def _without_followed(self, rows: list[Document]) -> list[Document]:
        """Leave out those whose name leads on to another that is there (`next_id`)."""
        following = {ObjectId(next_id(row["_id"].binary)): row for row in rows if is_timeless(row)}
        if not following:
            return rows
        query = {"_id": {"$in": list(following)}, "staff_id": rows[0]["staff_id"]}
        stay = {following[row["_id"]]["_id"] for row in self._staff.find(query, {"_id": 1})}
        return [row for row in rows if row["_id"] not in stay]

    def _kept(self, staff_id: StaffId) -> _Kept:
        """Return what stays a row."""
        of_person = {"staff_id": staff_id, "timestamp": {"$gte": 0, "$lt": FIRST_MILLISECONDS}}
        times = self._staff.find(of_person, {"_id": 0, "timestamp": 1})
        newest = list(times.sort("timestamp", DESCENDING).limit(RECENT))
        stamped = self._staff.find_one(
            {"staff_id": staff_id}, {"_id": 0, STAMP: 1}, sort=[(STAMP, DESCENDING)]
        )
        stamp = (stamped or {}).get(STAMP)
        latest = self._latest.find_one({"_id": staff_id}, {"recent.id": 1}) or {}
        return _Kept(
            newest[-1]["timestamp"] if newest else 0,
            settled(number(stamp)) if isinstance(stamp, Timestamp) else 0,
            frozenset(shown["id"] for shown in latest.get("recent", ())),
        )

    def _take_in(
        self,
        block: Block,
        own: Sequence[SealedDetection],
        late: Sequence[Document],
        version: int,
        clock: _Clock,
    ) -> int | None:
        """Make a block anew with some rows of its time, if it lacks some, or has them otherwise.

        Return how many these are; 0: another service changed blocks meanwhile; None: it has them.
        """
        rows = [blocks.of_row(row) for row in late if not _may_be_asked_for(row, clock.now())]
        rows.sort(key=_ORDER, reverse=True)
        whole = list(joined(iter(rows), reversed(own)))[::-1]
        seconds = Counter(detection.timestamp for detection in whole)
        if max(seconds.values()) > FEW:  # they may not fit into a block: they stay rows
            rows = [row for row in rows if seconds[row.timestamp] <= FEW]
            whole = list(joined(iter(rows), reversed(own)))[::-1]
        new = _contents(whole) - _contents(own)
        if not new:
            return None
        staff_id = block.document["staff_id"]
        made = [blocks.sealed(staff_id, piece) for piece in _pieces(whole)]
        return new.total() if self._change(version, made, [block.document], clock) else 0

    def _change(
        self,
        version: int,
        made: Sequence[Document],
        gone: Sequence[Document],
        clock: _Clock,
        *,
        is_corrected: bool = False,
    ) -> bool:
        """Put blocks in the place of others, if nobody changed any of this person's meanwhile.

        Who was frozen for minutes would else put what he read in the place of what is newer.
        """
        staff_id = made[0]["staff_id"]
        head = _head(staff_id)
        client = self._sealed.database.client
        try:
            with (
                client.start_session() as session,
                session.start_transaction(write_concern=WriteConcern("majority")),
            ):
                if version:
                    as_read, counted = head | {"version": version}, {"$inc": {"version": 1}}
                    is_as_read = self._sealed.update_one(as_read, counted, session=session)
                    if not is_as_read.matched_count:
                        session.abort_transaction()
                        return False
                else:  # or again: then this person was forgotten, with what was read
                    newest = _between(TimeRange(staff_id, made[-1]["last"], made[-1]["last"]))
                    if not self._staff.find_one(newest, {"_id": 1}, session=session):
                        session.abort_transaction()
                        return False
                    self._sealed.insert_one(head | {"version": clock.now()}, session=session)
                sealed_at = clock.now()  # it is committed within a minute, or never
                if gone:
                    of_old = {"_id": {"$in": [block["_id"] for block in gone]}}
                    self._sealed.delete_many(of_old | {"staff_id": staff_id}, session=session)
                self._sealed.insert_many(
                    [block | {"sealed_at": sealed_at} for block in made], session=session
                )
                if is_corrected:
                    self._renew_newest(staff_id, session)
        except DuplicateKeyError:  # of the head
            return False
        except OperationFailure as error:
            if error.has_error_label("TransientTransactionError"):  # somebody else does so now
                return False
            raise
        return True

    def _renew_newest(self, staff_id: StaffId, session: ClientSession) -> None:
        """Stamp again what has the newest stamp of a person, which always is a row."""
        of_person = {"staff_id": staff_id, STAMP: {"$exists": True}}
        newest = self._staff.find_one(
            of_person, {"staff_id": 1}, sort=[(STAMP, DESCENDING)], session=session
        )
        if newest:
            self._staff.update_one(newest, RENEWED, session=session)

    def _version(self, staff_id: StaffId) -> int:
        """Return what names a state of somebody's blocks; 0: there was none yet."""
        head = self._sealed.find_one(_head(staff_id))
        return int(head["version"]) if head else 0

    def _newest(self, staff_id: StaffId, session: ClientSession | None = None) -> Document | None:
        return self._sealed.find_one(
            tiles_since(staff_id, 0), sort=[("_id", DESCENDING)], session=session
        )

    def _tile(
        self,
        staff_id: StaffId,
        time: int,
        session: ClientSession | None = None,
        fields: Document | None = None,
    ) -> Document | None:
        """Return the block of a time, or else the next one after it; all of it or some fields."""
        return self._sealed.find_one(
            tiles_since(staff_id, time), fields, sort=[("_id", ASCENDING)], session=session
        )

    def _blocks(self, wanted: TimeRange, session: ClientSession, most: int) -> Iterator[Block]:
        """Yield the blocks that reach into a range, the newest first.

        One that was parted behind the cursor comes again in pieces, which have nothing else but
        what came late: that has its rows still.
        """
        if wanted.start > wanted.end:
            return
        above = wanted.end + 1
        query = tiles_since(wanted.staff_id, wanted.start)
        if wanted.end < int(time.time()):  # of what is newer than the range there may be years
            newest = self._tile(wanted.staff_id, wanted.end, session)
            if newest:  # else the newest of all may grow beyond the range before it is read
                query = tiles_since(wanted.staff_id, wanted.start, wanted.end)
                if newest["first"] <= wanted.end:
                    above = newest["first"]
                    yield from opened([newest])
        present = self._sealed.find(query, session=session).sort("_id", DESCENDING)
        at_once = min(BLOCKS_AT_ONCE, 1 + most // MAX_DETECTIONS)
        for block in present.batch_size(at_once):
            if block["first"] < above and (block["last"] < above or above > wanted.end):
                above = block["first"]
                yield from opened([block])

    def _rows(self, wanted: TimeRange, session: ClientSession, most: int) -> Iterator[Detection]:
        """Yield the rows of a range, newest first, each second by what is told of their ids."""
        if wanted.start > wanted.end:
            return
        rows = self._staff.find(_between(wanted), session=session)
        every = rows.sort("timestamp", DESCENDING).batch_size(min(most + 1, ROWS_AT_ONCE))
        for timestamp, second in groupby(map(documents.detection, every), _TIME):
            some = list(islice(second, MAX_SECOND + 1))
            if len(some) <= MAX_SECOND:
                yield from sorted(some, key=_ORDER, reverse=True)
            else:
                yield from self._second(wanted.staff_id, timestamp, session)

    def _second(
        self, staff_id: StaffId, timestamp: int, session: ClientSession
    ) -> Iterator[Detection]:
        """Yield the rows of a second that has no bound: the database puts them in order."""
        second: Document = {"$match": _between(TimeRange(staff_id, timestamp, timestamp))}
        below: list[Document] = []
        while True:
            first = {"$sort": {_KEPT: DESCENDING}}, {"$limit": MAX_SECOND}
            stages = [second, {"$set": {_KEPT: _KEPT_OF_ID}}, *below, *first]
            rows = list(self._staff.aggregate(stages, session=session))
            # Of what the last one has in common with others there may be more.
            whole = [row for row in rows if row[_KEPT] != rows[-1][_KEPT]]
            if len(rows) < MAX_SECOND or not whole:
                whole = rows
            yield from sorted(map(documents.detection, whole), key=_ORDER, reverse=True)
            if len(rows) < MAX_SECOND:
                return
            below = [{"$match": {_KEPT: {"$lt": whole[-1][_KEPT]}}}]

    def _oldest(self, staff_id: StaffId, start: int, end: int, most: int) -> list[Document]:
        """Return the oldest rows of a range, so many at most, in their order, without stamps."""
        if start > end:
            return []
        query = _between(TimeRange(staff_id, start, end))
        rows = self._staff.find(query, {STAMP: 0}).sort("timestamp", ASCENDING).limit(most)
        return list(rows.batch_size(ROWS_AT_ONCE))


class _Rows:
    """Rows that are taken in pieces, the newest first."""

    def __init__(self, rows: Iterator[Detection]) -> None:
        self._rows = rows
        self._next: Detection | None = None

    def reach(self, floor: int) -> bool:
        """Tell whether the next one is of a time or newer."""
        self._next = self._next or next(self._rows, None)
        return self._next is not None and self._next.timestamp >= floor

    def down_to(self, floor: int) -> Iterator[Detection]:
        """Yield those of a time or newer."""
        while self.reach(floor) and (row := self._next):
            self._next = None
            yield row


class _Times:
    """Gathers times by place, so many at most."""

    def __init__(self, limit: int) -> None:
        self.left = limit
        self._at: dict[tuple[str, str], list[int]] = {}

    def add(self, times: TimesAt) -> None:
        self._of(times.level, times.location).extend(times.timestamps)
        self.left -= len(times.timestamps)

    def add_each(self, detections: Iterator[Detection]) -> None:
        for detection in islice(detections, self.left):
            self._of(detection.level, detection.location).append(detection.timestamp)
            self.left -= 1

    def add_block(self, block: Block, wanted: TimeRange) -> None:
        span = block.span(wanted.start, wanted.end)
        span = span[max(0, len(span) - self.left) :]
        lists = [self._of(place["level"], place["location"]) for place in block.places]
        times, at = block.times[span.start : span.stop], block.at[span.start : span.stop]
        for timestamp, index in zip(times, at, strict=True):
            lists[index].append(timestamp)
        self.left -= len(span)

    def at_places(self) -> list[TimesAt]:
        return [TimesAt(*place, times) for place, times in self._at.items() if times]

    def _of(self, level: str, location: str) -> list[int]:
        return self._at.setdefault((level, location), [])


def joined(rows: Iterator[_Read], sealed: Iterator[_Read]) -> Iterator[_Read]:
    """Yield rows and what a block has, both newest first: of what is there twice the row."""
    first = next(rows, None)
    if first is None:  # as nearly always
        yield from sealed
        return
    mine = ((False, row) for row in chain([first], rows))
    every = merge(mine, ((True, one) for one in sealed), key=_order_of, reverse=True)
    for _, same in groupby(every, _order_of):
        of_rows: list[_Read] = []
        of_blocks: list[_Read] = []
        for is_sealed, one in same:
            (of_blocks if is_sealed else of_rows).append(one)
        yield from of_rows
        yield from of_blocks[len(of_rows) :]


def _order_of(read: tuple[bool, _Timed]) -> Any:
    return _ORDER(read[1])


def _head(staff_id: StaffId) -> Document:
    return {"_id": {"staff_id": staff_id, "last": HEAD}, "staff_id": staff_id}


def tiles_since(staff_id: StaffId, start: int, end: int | str = "") -> Document:
    """Return what finds somebody's blocks that reach to a time or beyond, by `_id` alone.

    Those that reach to `end` are left out, if it is given: texts are larger than numbers.
    """
    names = ({"staff_id": staff_id, "last": last} for last in (start, end))
    return {"staff_id": staff_id, "_id": dict(zip(("$gte", "$lt"), names, strict=True))}


def _between(wanted: TimeRange) -> Document:
    times = {"$gte": wanted.start, "$lt": wanted.end + 1}  # an older database has fractions
    return {"staff_id": wanted.staff_id, "timestamp": times}


def _is_within(block: Document, wanted: TimeRange) -> bool:
    return bool(wanted.start <= block["first"] and block["last"] <= wanted.end)


def _may_be_asked_for(row: Document, now: int) -> bool:
    """Tell whether a repeat of a row, which has to find it, may still come at another time."""
    return row["timestamp"] > now - NAMED_SECONDS and is_timeless(row)


def _is_one_second(rows: Sequence[Document]) -> bool:
    """Tell whether these are more of one second than a block holds."""
    is_more = len(rows) > MAX_DETECTIONS
    return is_more and int(rows[0]["timestamp"]) == int(rows[-1]["timestamp"])


def _place(row: Document) -> Document:
    """Return what a correction changes of a row; None is also what is not there."""
    return {name: row.get(name) for name in ("level", "location", "was")}


def _by_place(rows: Iterable[Document]) -> Iterator[Sequence[Document]]:
    by_place: dict[str, list[Document]] = {}
    for row in rows:
        by_place.setdefault(repr(_place(row)), []).append(row)
    yield from by_place.values()


def _piece(detections: Sequence[SealedDetection]) -> Sequence[SealedDetection]:
    """Return the oldest that fit into a block: no second is parted between two."""
    if len(detections) <= MAX_DETECTIONS:
        return detections
    border = detections[MAX_DETECTIONS].timestamp
    count = MAX_DETECTIONS
    while count and detections[count - 1].timestamp == border:
        count -= 1
    return detections[:count]


def _pieces(detections: Sequence[SealedDetection]) -> Iterator[Sequence[SealedDetection]]:
    while detections:
        piece = _piece(detections)
        yield piece
        detections = detections[len(piece) :]


def _contents(detections: Iterable[SealedDetection]) -> Counter[Any]:
    return Counter(detection.content for detection in detections)
