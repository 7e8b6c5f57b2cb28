"""What names a state of everybody's detections, and from which time on it differs from another.

By the stamps alone, so that nothing has to be noted for it.
"""

from typing import NamedTuple

from bson import Timestamp

from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import MAX_UNIX_SECONDS
from ingest.storage.database.client import time_limit
from ingest.storage.detections.arrivals import Arrivals, Second, Stamps
from ingest.storage.detections.stamps import second_of, settled, start_of

# How many stamps may be new, and how long it may take to tell what changed by them: after that all
# is read again. A dead shard takes all of that time.
MOST_STAMPS, NEW_SECONDS = 50_000, 0.8
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

    NOTHING: none is. 0: that is not known, as after a backlog. Raises StoreUnavailable when a shard
    does not answer.
    """
    with time_limit(NEW_SECONDS), arrivals.reading() as session:
        newest, cluster_time = arrivals.newest(session)
        floor = min(settled(cluster_time), start_of(second_of(newest)))
        from_floor = min(floor, before.floor) if before else floor
        state = RecentState(newest, {}, floor, session.operation_time)
        try:
            known = before.newest if before else 0
            stamps = arrivals.after(from_floor, session, MOST_STAMPS, known)
            if not stamps.is_all:
                return state, 0
            seconds = stamps.seconds
            unsettled = {n: one for n, one in seconds.items() if start_of(n) >= floor}
            newest = max(newest, stamps.newest)
            state = RecentState(newest, unsettled, floor, session.operation_time)
            if before is None or before.is_gone(stamps):
                return state, 0
            changed = [n for n, one in seconds.items() if before.seconds.get(n) != one]
            first = arrivals.first_time(from_floor, changed, start, session) if changed else None
        except StoreUnavailable:  # every shard has just answered: it is late, not away
            return state, 0
        return state, NOTHING if first is None else first
