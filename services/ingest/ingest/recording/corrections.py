"""Giving the past detections of a beacon the place that it has now."""

import time

from ingest.storage.beacons import READ_TIMEOUT_SECONDS, Beacon
from ingest.storage.client import time_limit
from ingest.storage.detections import Detections
from ingest.storage.directory import CHECK_SECONDS
from ingest.storage.latest import RECENT, Latest

# Below the time that the gateway gives a write to the directory.
TIMEOUT_SECONDS = 20


class Corrections:
    """Rewrites stored detections; `insert_seconds` is how long storing one may take."""

    def __init__(self, detections: Detections, latest: Latest, insert_seconds: float) -> None:
        self._detections = detections
        self._latest = latest
        self._insert_seconds = insert_seconds

    def correct(self, beacon: Beacon) -> int:
        """Rewrite the detections of a beacon; return how many had another place.

        StoreUnavailable: some may be rewritten; call it again, which does the rest. What waits in
        a spool keeps the place that it came with.
        """
        with time_limit(TIMEOUT_SECONDS):
            corrected = self._pass(beacon, everyone=True)
            # Until then detections with the old place come in: a service learns of the new one
            # after the check and its two reads, and what it took in just before is stored later.
            time.sleep(CHECK_SECONDS + 2 * READ_TIMEOUT_SECONDS + self._insert_seconds)
            return corrected + self._pass(beacon, everyone=False)

    def _pass(self, beacon: Beacon, *, everyone: bool) -> int:
        """Rewrite detections, and then make the readers read them again.

        `everyone` who heard the beacon, also those without a change: an earlier call may have
        ended between the two steps.
        """
        total = 0
        for who in self._detections.heard_by(beacon.mac):
            moved = self._detections.move(who, beacon.mac, beacon.level, beacon.location)
            if moved or everyone:
                self._latest.rewrite({who: self._detections.newest(who, RECENT)})
            total += moved
        return total
