"""The directory of beacons, cached in the process: where a MAC hangs."""

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pymongo
from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from ingest.errors import StoreUnavailable

# With the insert's 2 s after it, still below the gateway's 3 s read timeout.
READ_TIMEOUT_SECONDS = 0.9

log = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where a beacon hangs: the level and the name of the spot."""

    level: str
    location: str


UNKNOWN = Place("unknown", "unknown")


class Directory:
    """Owns the collection `beacons`. Read by MAC is scatter-gather on shards, hence the cache."""

    def __init__(
        self,
        beacons: Collection[dict[str, Any]],
        refresh_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._beacons = beacons
        self._refresh_seconds = refresh_seconds
        self._clock = clock
        self._places: dict[str, Place] | None = None
        self._read_at = 0.0
        self._failed_at = -math.inf
        self._reading = threading.Lock()

    def locate(self, mac: str) -> Place:
        """Return the place of a beacon, `UNKNOWN` when nobody has registered it."""
        places = self._places
        if places is None or self._clock() - self._read_at >= self._refresh_seconds:
            places = self._refresh()
        return places.get(mac, UNKNOWN)

    def known(self, mac: str) -> Place | None:
        """Return the place from memory alone, None when the directory was never read."""
        return None if self._places is None else self._places.get(mac, UNKNOWN)

    def _refresh(self) -> dict[str, Place]:
        """Read the directory once for all waiting threads; an old copy beats none."""
        if self._places is not None and self._reading.locked():
            return self._places
        began = self._clock()
        with self._reading:
            if self._places is None and self._failed_at > began:  # each would wait for as long
                raise StoreUnavailable("directory not read while this request waited for it")
            if self._places is not None and self._clock() - self._read_at < self._refresh_seconds:
                return self._places
            try:
                places = self._read()
            except PyMongoError as error:
                if self._places is None:
                    self._failed_at = self._clock()
                    raise StoreUnavailable(f"directory not read: {error}") from error
                log.warning("directory not refreshed, the old copy serves on: %s", error)
                places = self._places
            self._places, self._read_at = places, self._clock()
            return places

    def _read(self) -> dict[str, Place]:
        fields = {"_id": 0, "mac": 1, "level": 1, "location": 1}
        with pymongo.timeout(READ_TIMEOUT_SECONDS):
            found = self._beacons.find({}, fields)
            return {beacon["mac"]: Place(beacon["level"], beacon["location"]) for beacon in found}
