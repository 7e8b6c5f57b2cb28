"""Seals what is old, person by person, with rests for those who insert and read.

Each person has a turn some four times a day. All services take turns from one document: none does
what another has just done, and who starts again goes on where they are.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ingest.recording.steady_clock import SEALED, SteadyClock
from ingest.rules.request_parameters import StaffId
from ingest.rules.retention import HOUR_SECONDS
from ingest.storage.detections.expired import Expired
from ingest.storage.people.latest import Latest
from ingest.storage.sealed.border import Border
from ingest.storage.sealed.sealed import Sealed
from ingest.tasks.repeated import Repeated, Rest
from ingest.turns import turn

# In so long this service gives everybody a turn; in the first minutes after a start it has others
# to do.
LAP_SECONDS, FIRST_SECONDS = 6 * 3600.0, 600.0
RETRY_SECONDS = 30.0
# Between two pieces of a person, at least.
PIECE_REST_SECONDS = 0.3


class Piece(NamedTuple):
    """What one piece of work did."""

    sealed: int = 0  # detections that are new in blocks
    deleted: int = 0  # rows


class Sealer:
    """Seals the detections of one person after the other, a piece at a time."""

    def __init__(self, sealed: Sealed, border: Border) -> None:
        self._sealed = sealed
        self.border = border

    def all_of(self, staff_id: StaffId, before: int) -> Iterator[Piece]:
        """Delete rows that are sealed since a while, then seal what is older than a time.

        The border has to tell that time before. Raises StoreUnavailable.
        """
        yield from self.settled(staff_id)
        while count := self._sealed.seal(staff_id, before, self.border.now()):
            yield Piece(count)

    def settled(self, staff_id: StaffId) -> Iterator[Piece]:
        """Delete rows that are sealed since a while, and seal what came late for its block.

        Raises StoreUnavailable.
        """
        for late, deleted in self._sealed.settle(staff_id, self.border.now()):
            yield Piece(late, deleted)


class Sealing:
    """Gives everybody a turn, in a thread; where nothing is sealed there is none."""

    def __init__(
        self,
        hours: int,
        sealer: Sealer,
        latest: Latest,
        expired: Expired,
        clock: Callable[[], float] = time.time,
        steady: SteadyClock | None = None,
    ) -> None:
        """`hours`: 0 seals nothing."""
        self.hours = hours
        self._sealer = sealer
        self._latest = latest
        self._expired = expired
        self._clock, self.steady = clock, steady or SteadyClock(clock=clock)
        self._pieces: Iterator[Piece] | None = None
        failure = "nothing is sealed"
        self._rounds = Repeated("sealing", self.work, failure, RETRY_SECONDS, fair=True)

    def start(self) -> None:
        """Begin, after a while."""
        if self.hours:
            self._rounds.start(Rest(FIRST_SECONDS))

    def close(self) -> None:
        """End soon."""
        self._rounds.close()

    def work(self) -> Rest:
        """Do a piece of somebody's, who may be the next one; return when to go on.

        Raises StoreUnavailable: who was at turn has the next one in some hours.
        """
        if self._pieces is None:
            self._pieces = self._next_pieces()
        with turn():
            piece = next(self._pieces, None)
        if piece:
            return Rest(PIECE_REST_SECONDS)
        self._pieces = None
        return Rest(LAP_SECONDS / max(1, self._latest.count()))

    def _next_pieces(self) -> Iterator[Piece]:
        """Take the next turn; nothing where there is none."""
        border, seconds = self._sealer.border, self.hours * HOUR_SECONDS
        before = (min(int(self._clock()), border.now()) - seconds) // HOUR_SECONDS * HOUR_SECONDS
        if not self.steady.is_right(partial(self._expired.keeps_any, before), SEALED):
            return iter(())
        last = border.turn()
        staff_id = self._latest.next_after(last.staff_id)
        if staff_id is None:
            staff_id = self._latest.next_after(None)
        if staff_id is None or not border.advance(last, before, staff_id):
            return iter(())
        return self._sealer.all_of(staff_id, before)
