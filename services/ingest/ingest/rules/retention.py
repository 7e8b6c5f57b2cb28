"""For how long detections are kept, and told."""

from collections.abc import Callable
from time import time

from ingest.rules.request_parameters import TimeRange

DAY_SECONDS, HOUR_SECONDS = 86_400, 3600


class Retention:
    """What is older than so many whole days is due: told to nobody, and deleted soon.

    The border moves once an hour, so that what is cached of a range holds as long. Nothing older
    is ever told; what is deleted is up to an hour younger.
    """

    def __init__(self, days: int, clock: Callable[[], float] = time) -> None:
        """`days`: 0 keeps everything."""
        self.days = days
        self._clock = clock

    def now(self) -> int:
        """Return the unix second by which that is told."""
        return int(self._clock())

    def floor(self) -> int:
        """Return the unix second before which everything is due; 0: nothing ever is."""
        if not self.days:
            return 0
        oldest = self._clock() - self.days * DAY_SECONDS
        return max(0, -int(-oldest // HOUR_SECONDS) * HOUR_SECONDS)

    def kept(self, wanted: TimeRange) -> TimeRange:
        """Return what is kept of a range: an empty one where all of it is due."""
        return wanted._replace(start=max(wanted.start, min(self.floor(), wanted.end + 1)))


FOR_EVER = Retention(0)
