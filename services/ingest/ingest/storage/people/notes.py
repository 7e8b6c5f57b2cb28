"""Brings the collection `latest` up to date with what was stored, in the background.

So a detection costs one commit, not two. MongoDB groups what came in by person, and of each person
his newest detections are written once. Who reads does not wait for it: he adds what is not noted.
"""

import logging
import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from itertools import islice
from typing import Any

from pymongo.client_session import ClientSession
from pymongo.database import Database
from pymongo.read_concern import ReadConcern

from common import schema
from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.client import time_limit
from ingest.storage.database.driver import There, find_there, reading
from ingest.storage.database.indexes import BY_STAMP
from ingest.storage.detections.arrivals import BATCH, Arrivals, Group
from ingest.storage.detections.documents import Document, has_staff_and_time, whole
from ingest.storage.detections.inserts import Inserts
from ingest.storage.detections.stamps import STAMP, number, second_of, settled, stamp, start_of
from ingest.storage.people.latest import Latest
from ingest.storage.people.latest_updates import SHOWN, change, newest_first
from ingest.storage.people.note_positions import (
    NOWHERE_YET,
    NotePosition,
    NotePositions,
    NotOurTurn,
    Proof,
)
from ingest.tasks.repeated import Repeated, Rest

log = logging.getLogger(__name__)

# How often what is settled is noted, when no reader has much to add.
NOTE_SECONDS = 10.0
# How much a reader may add until he asks for it; how soon after each other they are heard.
MUCH, HURRY_SECONDS = 1000, 1.0
# How many detections are grouped at once, and how long that may take. Who is too slow for it groups
# fewer, down to those of one second, in more time.
PIECE, LEAST = 20_000, 100
PATIENCE_SECONDS, LONGEST_SECONDS = 2.0, 60.0
# Stamps so long after the present are of a clock that was ahead; how many are renewed at once.
AHEAD_SECONDS, RENEWED = 60, 500
# While a shard is away: how many detections of the others are looked at, and how long it may take.
MAX_THERE, THERE_SECONDS = 2000, 0.3
# How long before the newest stamp that is noted to begin when the position is away.
BEFORE_SECONDS = 60
_FIELDS = dict.fromkeys(("staff_id", STAMP, "heard", *SHOWN), 1)


class Last(Enum):
    """Up to where to note."""

    SETTLED = "what is settled: once is enough"
    WHOLE = "seconds that are over"
    ANY = "all of it"


class TooMuch(StoreUnavailable):
    """The database answers, but a shard, or all of it, not in the time that it was given."""


class Unnoted:
    """What is stored and not noted, as of a moment."""

    def __init__(
        self, arrivals: Arrivals, session: ClientSession, position: NotePosition, most: int
    ) -> None:
        """Look for it, with `most` stamps at most. Raises StoreUnavailable."""
        self._arrivals = arrivals
        self._session = session
        self.read_at = session.operation_time
        self.cluster_time = number(self.read_at)  # before the look
        if not self.cluster_time:
            raise StoreUnavailable("the database has just started")
        # A copy, of a server whose clock was ahead: all of it may have to be noted.
        self.is_ahead = position.at > self.cluster_time
        self.position = NOWHERE_YET._replace(name=position.name) if self.is_ahead else position
        newer = arrivals.after(self.position.at, session, most)
        self.is_all = newer.is_all
        self.seconds = newer.seconds
        if not self.is_all:  # the last may have more: it is left; when it is alone it has no name
            last, second = self.seconds.popitem()
            if not self.seconds:
                self.seconds[last] = second._replace(name=secrets.randbits(64))
        noted = self.position.seconds
        self.wanted = [n for n, one in self.seconds.items() if noted.get(n) != one.name]

    def __len__(self) -> int:
        """Return how many detections these are."""
        return sum(self.seconds[second].rows for second in self.wanted)

    def people(self, seconds: list[int]) -> Iterator[Group]:
        """Yield whose detections these are in some of the seconds. Raises StoreUnavailable."""
        if seconds:
            yield from self._arrivals.people(self.position.at, seconds, self._session)

    def pieces(self, seconds: list[int], most: int) -> Iterator[list[int]]:
        """Yield some of the seconds in pieces of so many detections, or of one second."""
        piece: list[int] = []
        rows = 0
        for second in seconds:
            rows += self.seconds[second].rows
            if piece and rows > most:
                yield piece
                piece, rows = [], self.seconds[second].rows
            piece.append(second)
        if piece:
            yield piece


class Notes:
    """Notes in `latest` what was stored."""

    def __init__(self, database: Database[dict[str, Any]], latest: Latest) -> None:
        self._staff = database[schema.STAFF.name].with_options(read_concern=ReadConcern("majority"))
        self._inserts = Inserts(database[schema.STAFF.name])
        self._arrivals = Arrivals(database)
        self._positions = NotePositions(database)
        self._latest = latest
        self._proof = Proof()
        self._piece, self._patience_seconds = PIECE, PATIENCE_SECONDS
        self._at = self._at_there = 0  # up to where it is noted; while a shard is away, of others
        self._behind = 0, time.monotonic()  # by how many seconds, and when that was found
        self._rounds = Repeated(
            "notes",
            self._round,
            "it is not noted who was heard",
            HURRY_SECONDS,
            fair=True,  # on a machine on which it takes long others get as much time
        )

    def start(self) -> None:
        """Begin, in a thread, if that was not done."""
        self._rounds.start(Rest(0, NOTE_SECONDS))

    def close(self) -> None:
        """End soon."""
        self._rounds.close()

    @property
    def behind_seconds(self) -> int:
        """Tell how old the oldest detection is that is not noted, or that nobody could look for."""
        seconds, measured_at = self._behind
        return int(seconds + time.monotonic() - measured_at)

    @contextmanager
    def unnoted(self, most: int, seconds: float) -> Iterator[Unnoted]:
        """Look for what is not noted, for so long, and give it.

        Raises StoreUnavailable; TooMuch when the database answers, but not in time.
        """
        # What is asked in a session is told by who knows of all before: by no deposed primary.
        with reading(self._staff) as session:
            with time_limit(seconds):
                position = self._positions.read(session)
            try:
                with time_limit(seconds):
                    unnoted = Unnoted(self._arrivals, session, position, most)
                self._proof.asked(unnoted.cluster_time)
                self._at, self._at_there = unnoted.position.at, 0
                second = second_of(unnoted.cluster_time)
                self._behind = (
                    max(0, second - min(unnoted.wanted, default=second)),
                    time.monotonic(),
                )
                yield unnoted
            except NotOurTurn:
                raise
            except StoreUnavailable as error:
                raise TooMuch(str(error)) from None

    def hurry(self) -> None:
        """Have it noted soon: there is much."""
        self._rounds.wake()
        self.start()  # under a server that begins nothing else

    def bring_up(self, last: Last = Last.ANY) -> bool:
        """Note what is stored, as far as it is wanted; tell whether that is all of it.

        Raises StoreUnavailable: some is noted. Raises NotOurTurn: another service does it.
        """
        with self.unnoted(4 * self._piece, self._patience_seconds) as unnoted:
            proved = self._proof.before(unnoted.cluster_time)
            if max(unnoted.seconds, default=0) > second_of(unnoted.cluster_time) + AHEAD_SECONDS:
                self._mend(unnoted.cluster_time)
                return self.bring_up(last)
            end = {Last.ANY: sys.maxsize, Last.WHOLE: start_of(second_of(unnoted.cluster_time))}
            until = end.get(last, proved)
            wanted = [second for second in unnoted.wanted if start_of(second) < until]
            pieces = list(unnoted.pieces(wanted, self._piece))
            reached = proved if unnoted.is_all else min(proved, start_of(max(unnoted.seconds) + 1))
            position = unnoted.position
            turn_seconds = 2 * self._patience_seconds
            if pieces:
                position = self._positions.write(position, turn_seconds)
            for count, piece in enumerate(pieces, start=1):
                self._note(unnoted, piece)
                is_last = count == len(pieces)
                at = reached if is_last else min(proved, start_of(piece[-1] + 1))
                names = {second: unnoted.seconds[second].name for second in piece}
                position = self._positions.write(
                    position.advanced(at, names), 0 if is_last else turn_seconds
                )
            is_further = unnoted.is_ahead or any(start_of(n) < reached for n in unnoted.seconds)
            if not pieces and is_further:
                self._positions.write(position.advanced(reached, {}), 0)
            return unnoted.is_all

    def arrived_there(self) -> tuple[dict[StaffId, list[Document]], bool]:
        """Return the newest that is not noted of whose shards answer, and whether it is all.

        With a dead shard it takes all the time that it is given.
        """
        there = self._find_there(newest=True)
        return _by_person(there.rows), there.all_answered and len(there.rows) < MAX_THERE

    def _find_there(self, *, newest: bool = False) -> There:
        floor = self._at_there or self._at or self._guessed()
        query = {STAMP: {"$gt": stamp(floor)}}
        find = {"filter": query, "sort": {STAMP: -1 if newest else 1}, "projection": _FIELDS}
        return find_there(self._staff, MAX_THERE, find, BY_STAMP)

    def _note_there(self) -> bool:
        """Note of whose shards answer; tell whether one does not. Raises StoreUnavailable."""
        with time_limit(THERE_SECONDS):
            there = self._find_there()
        if there.all_answered:
            return False
        with time_limit(THERE_SECONDS):
            self._show(
                Group(staff_id, shown, max(row[STAMP] for row in shown))
                for staff_id, shown in _by_person(there.rows).items()
            )
        at = settled(number(there.at))
        if len(there.rows) == MAX_THERE:
            at = min(at, number(there.rows[-1][STAMP]) - 1)
        self._at_there = max(self._at_there, at)
        return True

    def _guessed(self) -> int:
        """Return where to begin when the position was never read."""
        newest, at = self._latest.newest_stamps_there()
        if not at:
            raise StoreUnavailable("the database has just started")
        known = min(max(newest.values(), default=0), number(at))
        return max(0, known - start_of(BEFORE_SECONDS))

    def _note(self, unnoted: Unnoted, seconds: list[int]) -> None:
        with time_limit(self._patience_seconds):
            self._show(unnoted.people(seconds))

    def _show(self, people: Iterator[Group]) -> None:
        while batch := list(islice(people, BATCH)):
            recorded = self._latest.show(change(*group) for group in batch)
            if recorded.failed:
                raise StoreUnavailable(str(recorded.failed))

    def _mend(self, cluster_time: int) -> None:
        """Stamp anew what a copy has of a server whose clock was ahead: as if it came now."""
        # Before the rows are: else, if it ends here, nobody would.
        self._latest.cut_stamps(cluster_time)
        while rows := self._arrivals.ahead(cluster_time + start_of(AHEAD_SECONDS), RENEWED):
            log.warning("%d detections are from a clock that was ahead: stamped anew", len(rows))
            self._inserts.renew(rows)

    def _round(self) -> Rest:
        try:
            is_all = self.bring_up(Last.WHOLE if self._rounds.is_woken else Last.SETTLED)
        except NotOurTurn:
            return Rest(HURRY_SECONDS, NOTE_SECONDS)
        except StoreUnavailable:
            self._after_failure()
            raise
        self._piece = min(PIECE, 2 * self._piece)
        self._patience_seconds = max(PATIENCE_SECONDS, self._patience_seconds / 2)
        return Rest(HURRY_SECONDS, NOTE_SECONDS if is_all else 0)

    def _after_failure(self) -> None:
        try:
            if self._note_there():
                return
        except StoreUnavailable:
            pass  # nothing answers, or not in this time either
        self._piece = max(LEAST, self._piece // 2)
        self._patience_seconds = min(LONGEST_SECONDS, 2 * self._patience_seconds)


def _by_person(documents: list[Document]) -> dict[StaffId, list[Document]]:
    """Return the newest of each, newest first."""
    groups: defaultdict[StaffId, list[Document]] = defaultdict(list)
    for row in documents:
        if has_staff_and_time(row):
            complete = whole(row)
            groups[complete["staff_id"]].append(complete | {STAMP: row[STAMP]})
    return {staff_id: newest_first(rows, "_id") for staff_id, rows in groups.items()}
