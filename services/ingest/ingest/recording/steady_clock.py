"""Whether this machine's clock can be believed by what deletes, or seals, what is old.

It is compared with how much time passed since the start, with the database's clock, with what is
stored, and with the phones' clocks.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import MAX_FUTURE_SECONDS
from ingest.rules.retention import DAY_SECONDS, HOUR_SECONDS

log = logging.getLogger(__name__)

DELETED, SEALED = "deleted", "sealed"  # what is not done meanwhile
MINUTE_SECONDS = 60
# Clocks that are further apart are not the same: a network and a busy machine take seconds.
APART_SECONDS = 5 * MINUTE_SECONDS
# So many phones of those that were heard in the last minutes, and more than half of them.
PHONES, HEARD_SECONDS = 3, 15 * MINUTE_SECONDS


class Witnesses(NamedTuple):
    """Who tells of the time besides this machine's clock."""

    database_now: Callable[[], int]  # unix seconds, 0 unknown; raises StoreUnavailable
    any_after: Callable[[int], bool]  # is stored; raises StoreUnavailable
    # Our clock less each phone's, in seconds, of those that were heard since a unix second.
    phones: Callable[[int], Sequence[int]]


class SteadyClock:
    """This machine's clock, and what speaks against it."""

    def __init__(
        self,
        witnesses: Witnesses | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.witnesses = witnesses
        self._clock, self._monotonic = clock, monotonic
        self._began, self._began_at = monotonic(), clock()
        self._told: dict[str, str] = {}

    def is_right(self, keeps_any: Callable[[], bool], consequence: str) -> bool:
        """Tell whether to believe it; log once that it is not.

        Nor for a day after the start where not `keeps_any`: all is so old. Raises StoreUnavailable.
        """
        if doubt := self.doubt():
            said = f"{doubt}: nothing is {consequence}"
        elif self._monotonic() - self._began <= DAY_SECONDS and not keeps_any():
            said = f"tells that all is old: nothing is {consequence} for a day"
        else:
            said = ""
        if said and not self._told.get(consequence):
            log.warning("the clock of this machine %s", said)
        self._told[consequence] = said
        return not said

    def warning(self) -> str:
        """Return the same for people: what speaks against it now, or why nothing is deleted."""
        try:
            doubt = self.doubt()
        except StoreUnavailable:
            doubt = ""
        return doubt or self._told.get(DELETED, "")

    def doubt(self) -> str:
        """Return what speaks against it, "" for nothing. Raises StoreUnavailable."""
        now = self._clock()
        was_set = now - self._began_at - (self._monotonic() - self._began)
        if abs(was_set) > HOUR_SECONDS:
            direction = "forward" if was_set > 0 else "back"
            return f"was set {direction} by {span(was_set)} since the service started"
        return _contradicted(now, self.witnesses) if self.witnesses else ""


def span(seconds: float) -> str:
    """Return a span in words that stay the same for a while."""
    seconds = abs(seconds)
    for name, unit in (("days", DAY_SECONDS), ("hours", HOUR_SECONDS)):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / MINUTE_SECONDS:.0f} minutes"


def _side(ahead: float) -> str:
    return "ahead of" if ahead > 0 else "behind"


def _contradicted(now: float, witnesses: Witnesses) -> str:
    ahead = now - (witnesses.database_now() or now)
    if abs(ahead) > APART_SECONDS:
        return f"is {span(ahead)} {_side(ahead)} the database's"
    skews = witnesses.phones(int(now) - HEARD_SECONDS)
    for side in (1, -1):
        others = sorted(skew for skew in skews if skew * side > APART_SECONDS)
        if len(others) >= PHONES and len(others) * 2 > len(skews):
            middle = others[len(others) // 2]
            return f"is {span(middle)} {_side(middle)} the clocks of most phones"
    if witnesses.any_after(int(now) + MAX_FUTURE_SECONDS + APART_SECONDS):
        return "is behind a time that is stored, or was ahead when that was stored"
    return ""
