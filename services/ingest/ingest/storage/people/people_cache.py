"""All people, cached in the process: who is of which team, and what they are called."""

import logging
import math
import threading
import time
from collections.abc import Callable

from common.revisions import CHECK_SECONDS
from ingest.errors import StoreUnavailable
from ingest.storage.people.people import People, Snapshot

log = logging.getLogger(__name__)


class PeopleCache:
    """Keeps a compressed copy of the collection `people`."""

    def __init__(self, people: People, check_reachable: Callable[[], None]) -> None:
        self._people = people
        self._check_reachable = check_reachable
        self._snapshot: Snapshot | None = None
        self._due = -math.inf
        self._reading = threading.Lock()

    def current(self) -> Snapshot:
        """Return all people, another service's writes of 2 s ago included.

        While they are read, or when they cannot be, the old copy serves on.
        Raises StoreUnavailable: they were never read.
        """
        snapshot = self._snapshot
        if snapshot and (time.monotonic() < self._due or self._reading.locked()):
            return snapshot
        with self._reading:
            if self._snapshot is None or time.monotonic() >= self._due:
                self._snapshot = self._read(self._snapshot)
            return self._snapshot

    def reload(self) -> None:
        """Read again what this service has just written."""
        with self._reading:
            if self._snapshot:
                self._snapshot = self._read(self._snapshot)

    def _read(self, old: Snapshot | None) -> Snapshot:
        try:
            self._check_reachable()
            revision = self._people.revision()  # before the people: a later write is seen next time
            new = old if old and old.revision == revision else self._people.read(revision)
        except StoreUnavailable as error:
            if old is None:
                raise
            log.warning("people not refreshed, the old copy serves on: %s", error)
            new = old
        self._due = time.monotonic() + CHECK_SECONDS
        return new
