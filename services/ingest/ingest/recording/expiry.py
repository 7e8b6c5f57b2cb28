"""Deletes detections that are due, piece by piece, with rests for those who insert and read.

What is due is so by our clock, and a clock may be wrong. So nothing is deleted by one against which
anything speaks (`steady_clock.py`), nor, for a day, by one to which everything is due but what came
since it may have become wrong.
"""

import logging

from ingest.recording.steady_clock import DELETED, SteadyClock
from ingest.rules.retention import DAY_SECONDS, Retention
from ingest.storage.detections.expired import Expired
from ingest.tasks.repeated import AT_ONCE, Repeated, Rest

log = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
# After all that is due is deleted: the border moves once an hour.
LOOK_SECONDS = 600.0


class Expiry:
    """Looks for what is due, in a thread; where all is kept there is none."""

    def __init__(
        self, retention: Retention, expired: Expired, clock: SteadyClock | None = None
    ) -> None:
        self._retention = retention
        self._expired = expired
        self._clock = clock or SteadyClock()
        self._count = 0
        failure = "what is due is not deleted"
        self._rounds = Repeated("expiry", self.delete_some, failure, RETRY_SECONDS, fair=True)

    def start(self) -> None:
        """Begin."""
        if self._retention.days:
            self._rounds.start()

    def close(self) -> None:
        """End soon."""
        self._rounds.close()

    def delete_some(self) -> Rest:
        """Delete a piece; return when to do so again. Raises StoreUnavailable."""
        floor = self._retention.floor()
        if not floor or not self._clock.is_right(lambda: self._is_plausible(floor), DELETED):
            return Rest(LOOK_SECONDS)
        if deleted := self._expired.delete_some(floor):
            self._count += deleted
            return AT_ONCE
        if self._count:
            log.info("%d detections were due, and are deleted", self._count)
            self._count = 0
        return Rest(LOOK_SECONDS)

    def _is_plausible(self, floor: int) -> bool:
        """Tell whether nothing is due, or something is kept that came a while ago.

        What came just now is no proof: a wrong clock stamps it.
        """
        age = min(DAY_SECONDS, self._retention.days * DAY_SECONDS // 2)
        before = self._retention.now() - age
        return self._expired.keeps_any(floor, before) or not self._expired.any_due(floor)
