"""The directory of beacons, cached in the process: which beacon an id names, where it hangs."""

import contextlib
import logging
import math
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from common.beacon import Beacon
from common.revisions import CHECK_SECONDS
from ingest.batcher import Batcher
from ingest.errors import StoreUnavailable
from ingest.rules.positions import Position
from ingest.storage.detections.documents import UNKNOWN as UNKNOWN_TEXT
from ingest.storage.directory.beacons import Beacons

log = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where a beacon hangs: the level and the name of the spot."""

    level: str
    location: str


# The place of a beacon that nobody has registered.
UNKNOWN = Place(UNKNOWN_TEXT, UNKNOWN_TEXT)


class Snapshot(NamedTuple):
    """The directory as it was read; `tag` changes with its content."""

    revision: int
    tag: str
    beacons: list[Beacon]  # in its order
    by_id: dict[str, Beacon]  # by every id that a beacon has
    places: dict[str, Place]  # likewise

    def position_of(self, mac: str) -> Position | None:
        """Return where a beacon hangs on the plan of its level, in metres."""
        beacon = self.by_id.get(mac)
        if beacon is None or beacon.x is None or beacon.y is None:
            return None
        return beacon.x, beacon.y

    def positions(self) -> dict[Place, Position]:
        """Return where places are: of several beacons at one the first that has a position."""
        positions: dict[Place, Position] = {}
        for beacon in self.beacons:
            if beacon.x is not None and beacon.y is not None:
                positions.setdefault(Place(beacon.level, beacon.location), (beacon.x, beacon.y))
        return positions


class Directory:
    """Keeps a copy of the beacons: read by id they are scatter-gather on shards."""

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
        self._pool = ThreadPoolExecutor(1, "directory")
        self._reads: Batcher[str, Snapshot] = Batcher(self._read, self._pool)

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()

    def cached(self) -> Snapshot | None:
        """Return the directory from memory alone, None when it was never read."""
        return self._snapshot

    def fresh(self) -> Snapshot | None:
        """Return the directory at once, None when it has to be asked whether it has changed."""
        snapshot = self._snapshot
        if snapshot and (self._clock() < self._check_at or self._reads.busy):
            return snapshot
        return None

    def note_revision(self, revision: int) -> Snapshot | None:
        """Return the directory, if it still has the revision that was read just now."""
        snapshot = self._snapshot
        is_fresh = self._clock() - self._read_at < self._refresh_seconds
        if snapshot is None or revision != snapshot.revision or not is_fresh:
            return None
        self._check_at = self._clock() + min(CHECK_SECONDS, self._refresh_seconds)
        return snapshot

    def current(self) -> Snapshot:
        """Return the directory, another service's writes of 2 s ago included.

        While it is read, or when it cannot be, the old copy serves on.
        Raises StoreUnavailable: it was never read.
        """
        return self.fresh() or self._reads.call("when due")

    def reload(self) -> None:
        """Read again what this service has just written."""
        with contextlib.suppress(
            StoreUnavailable
        ):  # the write is done; the next reader tries again
            self._reads.call("now")

    def _read(self, calls: list[str]) -> list[Snapshot | Exception]:
        """Read the directory once for all who wait: `when due`, or `now` after a write of ours."""
        if "now" in calls:
            self._read_at = self._check_at = -math.inf
        snapshot = self._snapshot
        if "now" in calls or snapshot is None or self._clock() >= self._check_at:
            try:
                snapshot = self._snapshot = self._read_if_changed()
            except StoreUnavailable as error:
                if snapshot is None:
                    raise
                log.warning("directory not refreshed, the old copy serves on: %s", error)
                if "now" in calls:  # it was written: the next reader tries again
                    return [snapshot] * len(calls)
            self._check_at = self._clock() + min(CHECK_SECONDS, self._refresh_seconds)
        return [snapshot] * len(calls)

    def _read_if_changed(self) -> Snapshot:
        revision = self._beacons.revision()  # before the beacons: a later write is seen next time
        old = self._snapshot
        fresh = self._clock() - self._read_at < self._refresh_seconds
        if old is not None and fresh and revision == old.revision:
            return old
        beacons = self._beacons.read()
        self._read_at = self._clock()
        tag = f"{zlib.crc32(repr(beacons).encode()):08x}"
        by_id: dict[str, Beacon] = {}
        places: dict[str, Place] = {}
        for beacon in beacons:
            by_id |= dict.fromkeys(beacon.ids, beacon)
            places |= dict.fromkeys(beacon.ids, Place(beacon.level, beacon.location))
        return Snapshot(revision, tag, beacons, by_id, places)
