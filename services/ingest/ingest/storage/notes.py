"""Brings the collection `latest` up to date with what was stored: before a read, and now and then.

So a detection costs one commit, not two: of what comes in meanwhile each person is noted once. The
collection `notes` has one document, the position: all with a stamp that was settled at its `at`
(see `storage/stamps.py`) is noted, and of what is newer it lists what is. One shard's clock may lag
behind another's, but a question sets it ahead to what the asker knows. So `at` is a stamp that
somebody knew before each shard was asked.
"""

import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple

from pymongo.client_session import ClientSession
from pymongo.database import Database
from pymongo.errors import DuplicateKeyError
from pymongo.read_concern import ReadConcern

from ingest.errors import StoreUnavailable
from ingest.storage.client import time_limit
from ingest.storage.documents import Document, whole
from ingest.storage.driver import domain_errors, find_there
from ingest.storage.indexes import BY_STAMP
from ingest.storage.latest import Latest
from ingest.storage.latest_updates import SHOWN
from ingest.storage.stamps import STAMP, number, read, settled, stamp

log = logging.getLogger(__name__)

# How often `latest` is brought up to date when nobody reads it.
NOTE_SECONDS = 20.0
# How many detections are noted with one command; how many at most while a shard is away.
PIECE, MAX_THERE, MAX_PIECES_THERE = 500, 2000, 4
# How many the position lists, 13 bytes each: the rest is noted again each time, for some seconds.
MAX_LISTED = 20_000
# What it may take to find what is new while a shard is away, and another thread before.
NEW_SECONDS, TURN_SECONDS = 0.3, 0.8
# How long before the newest stamp that is noted to begin when the position is away.
BEFORE_SECONDS = 60
_ID = "staff"
_FIELDS = dict.fromkeys(("staff_id", STAMP, *SHOWN), 1)


class _Position(NamedTuple):
    at: int
    seen: int  # the newest stamp that was noted
    listed: frozenset[int]
    name: int  # of this write of it


class Notes:
    """Notes in `latest` what was stored."""

    def __init__(self, database: Database[dict[str, Any]], latest: Latest) -> None:
        majority = ReadConcern("majority")
        self._staff = database["staff"].with_options(read_concern=majority)
        self._positions = database["notes"].with_options(read_concern=majority)
        self._latest = latest
        self._turn = threading.Lock()  # also guards all below
        self._known: _Position | None = None
        self._there: _Position | None = None  # while a shard is away, of the others
        self._missed = False  # whether one was away since all was noted
        self._closed = threading.Event()

    def start(self) -> None:
        """Begin to do so now and then, in a thread."""
        threading.Thread(target=self._run, name="notes", daemon=True).start()

    def close(self) -> None:
        """End soon."""
        self._closed.set()

    def bring_up(self) -> None:
        """Note everything that was acknowledged before the call. StoreUnavailable."""
        with self._in_turn():
            # What is asked in a session is told by who knows of all before: by no deposed primary.
            with domain_errors(), self._staff.database.client.start_session() as session:
                position = self._read_position(session)
                asked_at = session.operation_time
                known = max(position.at, number(asked_at) if asked_at else 0)
                pieces = self._pieces(settled(position.at), session)
                self._known = self._advance(position, known, pieces, self._write_position)
            self._there, self._missed = None, False

    def bring_up_there(self) -> bool:
        """Do so for people whose shards answer; tell whether it is all. StoreUnavailable.

        With a dead shard it takes all the time that it is given.
        """
        with self._in_turn():
            position = self._there or self._known or self._guessed()
            pieces = self._pieces_there(settled(position.at))
            self._there = self._advance(position, position.seen, pieces, lambda one: one)
            return not self._missed

    def _advance(
        self,
        position: _Position,
        asked_at: int,
        pieces: Iterable[tuple[list[Document], bool]],
        kept: Callable[[_Position], _Position],
    ) -> _Position:
        """Note what is after a position, piece by piece; return the position then.

        `asked_at`: a stamp that was known before the pieces were asked for.
        """
        listed_before = position.listed
        listed: dict[int, int] = {}
        for found, is_all in pieces:
            keyed = {_key(one): one for one in found}
            new = [
                one for key, one in keyed.items() if key not in listed_before and key not in listed
            ]
            self._note(new)
            stamps = {key: number(one[STAMP]) for key, one in keyed.items()}
            listed = dict([*(listed | stamps).items()][-MAX_LISTED:])
            seen = max(position.seen, *stamps.values(), 0)
            at = max(position.at, asked_at if is_all else min(asked_at, _last(found)))
            unsettled = frozenset(key for key, one in listed.items() if one > settled(at))
            if new or unsettled != position.listed:  # else nothing of it would be read again
                position = kept(position._replace(at=at, seen=seen, listed=unsettled))
        return position

    def _note(self, found: list[Document]) -> None:
        for first in range(0, len(found), PIECE):
            some = found[first : first + PIECE]
            failed = self._latest.record_changes(whole(one) | {STAMP: one[STAMP]} for one in some)
            if failed:
                raise StoreUnavailable(str(failed))

    def _pieces(self, floor: int, session: ClientSession) -> Iterator[tuple[list[Document], bool]]:
        """Yield what is stamped after `floor`, by the stamps, and whether that was the last."""
        while True:
            found = self._found(floor, session)
            is_all = len(found) < PIECE
            yield found, is_all
            if is_all:
                return
            floor = max(_last(found), floor + 1)  # a copy may have one stamp for all

    def _found(self, floor: int, session: ClientSession) -> list[Document]:
        cursor = self._staff.find({STAMP: {"$gt": stamp(floor)}}, _FIELDS, session=session)
        with domain_errors():
            return read(cursor.sort(STAMP).limit(PIECE).batch_size(PIECE + 1), BY_STAMP)

    def _pieces_there(self, floor: int) -> Iterator[tuple[list[Document], bool]]:
        for _ in range(MAX_PIECES_THERE):
            with time_limit(NEW_SECONDS):
                found, all_answered = self._found_there(floor)
            is_all = len(found) < MAX_THERE
            self._missed |= not all_answered
            yield found, is_all
            if is_all:
                return
            floor = max(_last(found), floor + 1)
        self._missed = True

    def _found_there(self, floor: int) -> tuple[list[Document], bool]:
        query = {STAMP: {"$gt": stamp(floor)}}
        find = {"filter": query, "sort": {STAMP: 1}, "projection": _FIELDS}
        there = find_there(self._staff, MAX_THERE, find)
        return there.found, there.all_answered

    def _guessed(self) -> _Position:
        """Return where to begin when the position may be on the shard that is away."""
        self._missed = True
        with time_limit(NEW_SECONDS):
            newest = self._latest.newest_stamp_there()
        return _Position(max(0, newest - (BEFORE_SECONDS << 32)), newest, frozenset(), 0)

    def _read_position(self, session: ClientSession) -> _Position:
        with domain_errors():
            found = self._positions.find_one({"_id": _ID}, session=session)
        if found is None:
            return _Position(0, 0, frozenset(), 0)
        return _Position(found["at"], found["seen"], frozenset(found["listed"]), found["name"])

    def _write_position(self, position: _Position) -> _Position:
        """Write a position, unless another service did so meanwhile: then that stands."""
        named = position._replace(name=random.getrandbits(62))  # nobody gains by guessing it
        values = named._asdict() | {"listed": list(named.listed)}
        with domain_errors():
            try:
                where = {"_id": _ID, "name": position.name}
                self._positions.update_one(where, {"$set": values}, upsert=not position.name)
            except DuplicateKeyError:
                pass  # another service was the first
        return named

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=TURN_SECONDS):
            raise StoreUnavailable("another thread has much to note")
        try:
            yield
        finally:
            self._turn.release()

    def _run(self) -> None:
        is_told = False
        while not self._closed.wait(NOTE_SECONDS):
            try:
                self.bring_up()
                is_told = False
            except StoreUnavailable as error:
                if not is_told:  # once, not for as long as the database is away
                    log.warning("it is not noted who was heard: %s", error)
                is_told = True
            except Exception:  # whatever the database holds, the thread goes on
                log.exception("it is not noted who was heard")


def _last(found: list[Document]) -> int:
    """Return after which stamp to go on: two shards may have stamped at once."""
    return number(found[-1][STAMP]) - 1


def _key(found: Document) -> int:
    named = f"{found['_id']} {number(found[STAMP])}".encode()
    return int.from_bytes(blake2b(named, digest_size=8).digest(), "big", signed=True)
