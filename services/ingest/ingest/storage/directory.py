"""The directory of beacons, cached in the process: where a MAC hangs."""

import logging
import math
import threading
import time
import zlib
from collections.abc import Callable
from typing import NamedTuple

from ingest.errors import StoreUnavailable
from ingest.storage.beacons import Beacon, Beacons

# How soon a service sees what another one wrote: one read of a small document tells.
CHECK_SECONDS = 2.0

log = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where a beacon hangs: the level and the name of the spot."""

    level: str
    location: str


UNKNOWN = Place("unknown", "unknown")


class Snapshot(NamedTuple):
    """The directory as it was read; `tag` changes with its content."""

    revision: int
    tag: str
    beacons: dict[str, Beacon]
    places: dict[str, Place]


class Directory:
    """Keeps a copy of the beacons: read by MAC they are scatter-gather on shards."""

    def __init__(
        self,
        beacons: Beacons,
        refresh_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._beacons = beacons
        self._refresh_seconds = refresh_seconds
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._read_at = self._check_at = -math.inf
        self._failed_at = -math.inf
        self._reading = threading.Lock()

    def locate(self, mac: str) -> Place:
        """Return the place of a beacon, `UNKNOWN` when nobody has registered it."""
        return self.current().places.get(mac, UNKNOWN)

    def at_hand(self, mac: str) -> Place | None:
        """Return the place from memory, None when the directory is due to be read."""
        snapshot = self._snapshot
        if snapshot is None or (self._clock() >= self._check_at and not self._reading.locked()):
            return None
        return snapshot.places.get(mac, UNKNOWN)

    def known(self, mac: str) -> Place | None:
        """Return the place from memory alone, None when the directory was never read."""
        return None if self._snapshot is None else self._snapshot.places.get(mac, UNKNOWN)

    def in_memory(self) -> Snapshot | None:
        """Return the whole directory from memory alone, None when it was never read."""
        return self._snapshot

    def current(self) -> Snapshot:
        """Return the whole directory, another service's writes of 2 s ago included."""
        snapshot = self._snapshot
        if snapshot is None or self._clock() >= self._check_at:
            snapshot = self._refresh()
        return snapshot

    def reload(self) -> None:
        """Read again what this service has just written."""
        with self._reading:
            self._read_at = self._check_at = -math.inf
            try:
                self._snapshot = self._read_if_changed()
            except StoreUnavailable as error:  # the write is done; the next reader tries again
                log.warning("directory written, but not read again: %s", error)

    def _refresh(self) -> Snapshot:
        """Read the directory once for all waiting threads; an old copy beats none."""
        if self._snapshot is not None and self._reading.locked():
            return self._snapshot
        began = self._clock()
        with self._reading:
            if self._snapshot is None and self._failed_at > began:  # each would wait for as long
                raise StoreUnavailable("directory not read while this request waited for it")
            if self._snapshot is not None and self._clock() < self._check_at:
                return self._snapshot
            try:
                self._snapshot = self._read_if_changed()
            except StoreUnavailable as error:
                self._failed_at = self._clock()
                if self._snapshot is None:
                    raise
                log.warning("directory not refreshed, the old copy serves on: %s", error)
            self._check_at = self._clock() + min(CHECK_SECONDS, self._refresh_seconds)
            return self._snapshot

    def _read_if_changed(self) -> Snapshot:
        revision = self._beacons.revision()  # before the beacons: a later write is seen next time
        old = self._snapshot
        fresh = self._clock() - self._read_at < self._refresh_seconds
        if old is not None and fresh and revision == old.revision:
            return old
        beacons = self._beacons.read()
        self._read_at = self._clock()
        tag = f"{zlib.crc32(repr(beacons).encode()):08x}"
        places = {beacon.mac: Place(beacon.level, beacon.location) for beacon in beacons}
        return Snapshot(revision, tag, {beacon.mac: beacon for beacon in beacons}, places)
