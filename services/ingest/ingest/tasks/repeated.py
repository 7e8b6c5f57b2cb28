"""Work that is done again and again, in the background, until the service ends.

Each kind has a thread of its own: a round may wait for the database as long as that takes, and the
others must not wait for it.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from ingest.errors import StoreUnavailable

log = logging.getLogger(__name__)


class Rest(NamedTuple):
    """How many seconds to rest after a round: at least, and how many more if nobody wakes it."""

    least: float
    more: float = 0.0


AT_ONCE = Rest(0)
# After what nobody foresaw, an older database's documents for one: each time is logged.
UNFORESEEN = Rest(1, 29)


class Repeated:
    """Does rounds of a kind of work, with a rest after each.

    `work` returns its rest, or None when all is done. Where it raises StoreUnavailable, `failure`
    is logged once, not for as long as the database is away, and it goes on after `retry_seconds`. A
    `fair` one rests at least as long as its round took, so that others have their turn.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Rest | None],
        failure: str,
        retry_seconds: float,
        *,
        fair: bool = False,
        wanted: threading.Event | None = None,
    ) -> None:
        self._work = work
        self._failure = failure
        self._retry_seconds = retry_seconds
        self._fair = fair
        self._first = AT_ONCE
        self._is_failing = False
        self._wanted = wanted or threading.Event()
        self._closed = threading.Event()
        self._starting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.is_woken = False  # whether somebody woke it for this round

    def start(self, first: Rest = AT_ONCE) -> None:
        """Begin after a first rest, if it has not begun yet."""
        with self._starting:
            if not self._thread.ident:
                self._first = first
                self._thread.start()

    def wake(self) -> None:
        """Have the next round begin soon."""
        self._wanted.set()

    def close(self) -> None:
        """End soon: no further round begins."""
        self._closed.set()
        self._wanted.set()

    def join(self) -> None:
        """Wait for the end of the round under way."""
        self._thread.join()

    def is_closed_after(self, seconds: float) -> bool:
        """Rest within a round; tell whether it is to end."""
        return self._closed.wait(seconds)

    def tell(self, error: StoreUnavailable) -> None:
        """Log the failure once, until a round succeeds."""
        if not self._is_failing:
            log.warning("%s: %s", self._failure, error)
        self._is_failing = True

    def _run(self) -> None:
        rest: Rest | None = self._first
        took = 0.0
        while rest is not None and not self._closed.wait(max(rest.least, took)):
            self.is_woken = self._wanted.wait(rest.more)
            self._wanted.clear()
            if self._closed.is_set():
                return
            began = time.monotonic()
            rest = self._round()
            took = time.monotonic() - began if self._fair else 0.0

    def _round(self) -> Rest | None:
        try:
            rest = self._work()
        except StoreUnavailable as error:
            self.tell(error)
            return Rest(self._retry_seconds)
        except Exception:  # the thread goes on
            log.exception(self._failure)
            return UNFORESEEN
        self._is_failing = False
        return rest
