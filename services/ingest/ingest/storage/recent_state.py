"""What names a state of everybody's detections, and from which time on it differs from another.

By the stamps alone, so that nothing has to be noted for it.
"""

from typing import NamedTuple

from bson import Timestamp

from ingest.rules.request_parameters import MAX_UNIX_SECONDS
from ingest.storage.arrivals import Arrivals, Second, Stamps
from ingest.storage.client import time_limit
from ingest.storage.stamps import second_of, settled, start_of

# How many stamps may be new; of more it is not told what changed. And how long that may take to
# tell: a dead shard takes all of it.
MOST_STAMPS, NEW_SECONDS = 100_000, 0.8
NOTHING = MAX_UNIX_SECONDS + 1


class RecentState(NamedTuple):
    """The newest stamp, and the seconds of stamps after a floor: those that are not settled.

    The second of the newest is one of them: when that stamp is gone, the database was restored.
    """

    newest: int
    seconds: dict[int, Second]
    floor: int
    read_at: Timestamp | None  # rows have to be read as of it

    def is_gone(self, stamps: Stamps) -> bool:
        """Tell whether anything of it is not there any more: it has a later stamp, or none."""
        rows = {second: one.rows for second, one in stamps.seconds.items()}
        fewer = (rows.get(second, 0) < one.rows for second, one in self.seconds.items())
        return any(fewer) or (self.newest > 0 and not stamps.has_known)


def read(arrivals: Arrivals, before: RecentState | None, start: int) -> tuple[RecentState, int]:
    """Return the state, and the lowest timestamp from `start` on that is new since another.

    NOTHING: none is. 0: that is not known. StoreUnavailable: a shard does not answer.
    """
    with time_limit(NEW_SECONDS), arrivals.reading() as session:
        newest, told = arrivals.newest(session)
        floor = min(settled(told), start_of(second_of(newest)))
        from_floor = min(floor, before.floor) if before else floor
        stamps = arrivals.after(from_floor, session, MOST_STAMPS, before.newest if before else 0)
        state = RecentState(max(newest, stamps.newest), {}, floor, session.operation_time)
        if not stamps.is_all:
            return state._replace(newest=newest), 0
        seconds = stamps.seconds
        unsettled = {second: one for second, one in seconds.items() if start_of(second) >= floor}
        state = state._replace(seconds=unsettled)
        if before is None or before.is_gone(stamps):
            return state, 0
        changed = [n for n, one in seconds.items() if before.seconds.get(n) != one]
        first = arrivals.first_time(from_floor, changed, start, session) if changed else None
        return state, NOTHING if first is None else first
