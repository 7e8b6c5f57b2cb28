"""Giving the past detections of a beacon the place that it has now."""

import time

import pymongo

from ingest.context import Store
from ingest.storage.beacons import READ_TIMEOUT_SECONDS, Beacon
from ingest.storage.directory import CHECK_SECONDS
from ingest.storage.latest import RECENT

# Below the time that the gateway gives a write to the directory.
TIMEOUT_SECONDS = 20


def correct(store: Store, beacon: Beacon) -> int:
    """Rewrite the detections of a beacon; return how many had another place.

    StoreUnavailable: some may be rewritten; call it again, which does the rest. What waits in a
    spool keeps the place that it came with.
    """
    with pymongo.timeout(TIMEOUT_SECONDS):
        corrected = _pass(store, beacon, everyone=True)
        # Until then detections with the old place come in: a service learns of the new one after
        # the check and its two reads, and what it took in just before is stored even later.
        time.sleep(CHECK_SECONDS + 2 * READ_TIMEOUT_SECONDS + store.insert_seconds)
        return corrected + _pass(store, beacon, everyone=False)


def _pass(store: Store, beacon: Beacon, *, everyone: bool) -> int:
    """Rewrite detections, and then make the readers read them again.

    `everyone` who heard the beacon, also those without a change: an earlier call may have ended
    between the two steps.
    """
    changed = {who: store.reports.move(who, beacon) for who in store.reports.heard_by(beacon.mac)}
    for who, count in changed.items():
        if count or everyone:
            store.latest.rewrite({who: store.detections.newest(who, RECENT)})
    return sum(changed.values())
