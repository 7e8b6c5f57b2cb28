"""Brings the collection `latest` up to date with what was stored: before a read, and now and then.

So a detection costs one commit, not two: of what comes in meanwhile each person is noted once.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bson import Timestamp
from pymongo.client_session import ClientSession
from pymongo.database import Database
from pymongo.read_concern import ReadConcern

from ingest.errors import StoreUnavailable
from ingest.storage.client import time_limit
from ingest.storage.documents import Document, has_staff_and_time, whole
from ingest.storage.driver import domain_errors, find_there, reading
from ingest.storage.indexes import BY_STAMP
from ingest.storage.inserts import Inserts
from ingest.storage.latest import Latest
from ingest.storage.latest_updates import SHOWN
from ingest.storage.note_positions import (
    NOWHERE_YET,
    NotePosition,
    NotePositions,
    Proof,
    advance,
    last_stamp,
)
from ingest.storage.stamps import NEW, STAMP, number, read, settled, stamp

log = logging.getLogger(__name__)

# How often `latest` is brought up to date when nobody reads it.
NOTE_SECONDS = 20.0
# The same while much is still to be noted: a quarter of the time, and some 2000 a second.
REST_SECONDS = 2.0
# How many detections are noted with one command, and on a machine that is too slow for so many;
# how many at most while a shard is away.
PIECE, LEAST, MAX_THERE, MAX_PIECES_THERE = 500, 60, 2000, 4
# What it may take to find what is new while a shard is away, or to note it; another thread before;
# and this one when nobody waits for it, but others for their turn.
NEW_SECONDS, TURN_SECONDS, ALONE_SECONDS = 0.3, 0.8, 0.6
# How long before the newest stamp that is noted to begin when the position is away.
BEFORE_SECONDS = 60
_FIELDS = dict.fromkeys(("staff_id", STAMP, *SHOWN), 1)


class Notes:
    """Notes in `latest` what was stored."""

    def __init__(self, database: Database[dict[str, Any]], latest: Latest) -> None:
        self._staff = database["staff"].with_options(read_concern=ReadConcern("majority"))
        self._inserts = Inserts(database["staff"])
        self._positions = NotePositions(database)
        self._latest = latest
        self._turn = threading.Lock()  # also guards all below
        self._piece = PIECE
        self._is_further = False  # than before this turn
        self._known: NotePosition | None = None
        self._proof = Proof()
        self._there: NotePosition | None = None  # while a shard is away, of the others
        self._told_there = 0  # the last time that they told
        self._noted_at = NEW  # the database's time of the last note, or when it began to be read
        self._missed = False  # whether one was away since all was noted
        self._failed = False  # whether something was not noted of the others
        self._closed = threading.Event()

    def start(self) -> None:
        """Begin to do so now and then, in a thread."""
        threading.Thread(target=self._run, name="notes", daemon=True).start()

    def close(self) -> None:
        """End soon."""
        self._closed.set()

    def bring_up(self) -> Timestamp:
        """Note all that was acknowledged before; return the database's time. StoreUnavailable.

        What is read as of that time has all that is noted.
        """
        # What is asked in a session is told by who knows of all before: by no deposed primary.
        with self._in_turn(), reading(self._staff) as session:
            position = self._positions.read(session)
            self._noted_at = session.operation_time or NEW
            if not (told := number(self._noted_at)):
                raise StoreUnavailable("the database has just started")
            if position.at > told:  # a copy, of a server whose clock was ahead
                position = NOWHERE_YET._replace(name=position.name)
                self._latest.cut_stamps(told)
            proved = self._proof.before(told)
            pieces = self._pieces(position.at, session)
            try:
                self._known = advance(position, proved, pieces, self._note, self._keep)
            except StoreUnavailable:
                if not self._is_further:  # the next turn has to come further
                    self._piece = max(self._piece // 2, LEAST)
                raise
            self._piece = PIECE
            self._proof.asked(told)
            self._there, self._missed = None, False
            return self._noted_at

    def bring_up_there(self) -> bool:
        """Do so for people whose shards answer; tell whether it is all. StoreUnavailable.

        With a dead shard it takes all the time that it is given.
        """
        with self._in_turn():
            position = self._there or self._known or self._guessed()
            proved = settled(self._told_there)
            pieces = self._pieces_there(position.at)
            self._failed = False
            there = advance(position, proved, pieces, self._note_there, lambda one: one)
            if not self._failed:  # else the same is noted again
                self._there = there
            return not self._missed

    def _keep(self, position: NotePosition) -> NotePosition:
        self._known = self._positions.write(position)
        self._is_further = True
        return self._known

    def _note_there(self, found: list[Document]) -> None:
        for first in range(0, len(found), self._piece):
            try:
                with time_limit(NEW_SECONDS):
                    self._note(found[first : first + self._piece])
            except StoreUnavailable:  # the shard that is away has to take some, or it is slow
                self._failed = self._missed = True

    def _note(self, found: list[Document]) -> None:
        some = [whole(one) | {STAMP: one[STAMP]} for one in found if has_staff_and_time(one)]
        written = self._latest.record_changes(some)
        if written.failed:
            raise StoreUnavailable(str(written.failed))
        self._noted_at = max(self._noted_at, written.at)

    def _pieces(self, floor: int, session: ClientSession) -> Iterator[tuple[list[Document], bool]]:
        """Yield what is stamped after `floor`, by the stamps, and whether that was the last."""
        is_cut = False
        while True:
            found = self._found(floor, session)
            is_all = len(found) < self._piece
            if not is_all and self._piece < PIECE and found[0][STAMP] == found[-1][STAMP]:
                self._piece = PIECE  # a copy may have one stamp for many: nothing is left out
                continue
            told = number(session.operation_time)
            # They are in a copy, of a server whose clock was ahead: as if they were stored now.
            if ahead := [one for one in found if number(one[STAMP]) > told]:
                if not is_cut:  # before the rows are: else, if it ends here, nobody would
                    self._latest.cut_stamps(told)
                    is_cut = True
                log.warning(
                    "%d detections are from a clock that was ahead: stamped anew", len(ahead)
                )
                self._inserts.renew(ahead)
                self._is_further = True
                found, is_all = found[: -len(ahead)], False
            yield found, is_all
            if is_all:
                return
            if found:
                floor = max(last_stamp(found), floor + 1)  # a copy may have one stamp for all

    def _found(self, floor: int, session: ClientSession) -> list[Document]:
        cursor = self._staff.find({STAMP: {"$gt": stamp(floor)}}, _FIELDS, session=session)
        with domain_errors():
            return read(cursor.sort(STAMP).limit(self._piece).batch_size(PIECE + 1), BY_STAMP)

    def _pieces_there(self, floor: int) -> Iterator[tuple[list[Document], bool]]:
        for _ in range(MAX_PIECES_THERE):
            query = {STAMP: {"$gt": stamp(floor)}}
            find = {"filter": query, "sort": {STAMP: 1}, "projection": _FIELDS}
            with time_limit(NEW_SECONDS):
                there = find_there(self._staff, MAX_THERE, find, BY_STAMP)
            self._told_there = number(there.at)
            self._missed |= not there.all_answered
            is_all = len(there.found) < MAX_THERE
            yield there.found, is_all
            if is_all:
                return
            floor = max(last_stamp(there.found), floor + 1)
        self._missed = True

    def _guessed(self) -> NotePosition:
        """Return where to begin when the position may be on the shard that is away."""
        self._missed = True
        with time_limit(NEW_SECONDS):
            newest, at = self._latest.newest_stamps_there()
        if not at:
            raise StoreUnavailable("the database has just started")
        known = min(max(newest.values(), default=0), number(at))
        return NOWHERE_YET._replace(at=max(0, known - (BEFORE_SECONDS << 32)))

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=TURN_SECONDS):
            raise StoreUnavailable("another thread has much to note")
        self._is_further = False
        try:
            yield
        finally:
            self._turn.release()

    def _run(self) -> None:
        is_told = False
        pause = NOTE_SECONDS
        while not self._closed.wait(pause):
            pause, piece = NOTE_SECONDS, self._piece
            try:
                with time_limit(ALONE_SECONDS):
                    self.bring_up()
                is_told = False
            except StoreUnavailable as error:
                if self._is_further or self._piece < piece:
                    pause = REST_SECONDS  # it is much: others get their turn, and it goes on
                    continue
                if not is_told:  # once, not for as long as the database is away
                    log.warning("it is not noted who was heard: %s", error)
                is_told = True
            except Exception:  # whatever the database holds, the thread goes on
                log.exception("it is not noted who was heard")
