"""Detections that are older than the collection `latest`: an upgraded or restored database."""

import datetime
import logging
import threading
from typing import Any

from ingest.errors import StoreUnavailable
from ingest.storage.detections import Detections
from ingest.storage.latest import RECENT, SHOWN, Latest

log = logging.getLogger(__name__)

# How many staff members are looked at in one go, and the rest before the next ones.
GROUP = 100
REST_SECONDS = 0.1
RETRY_SECONDS = 5.0


class Backfill:
    """Notes in `latest` what a service without it stored, once, beside everything else.

    Two services may do so at once, and while detections come in: to note one twice does no harm.
    """

    def __init__(self, detections: Detections, latest: Latest) -> None:
        self._detections = detections
        self._latest = latest
        self._closed = threading.Event()

    def start(self) -> None:
        """Begin in a thread, which goes on until all is noted."""
        threading.Thread(target=self._run, name="backfill", daemon=True).start()

    def close(self) -> None:
        """End soon; the next start goes on."""
        self._closed.set()

    def fill(self) -> int:
        """Note whoever is missing; return how many those were. Raises StoreUnavailable."""
        count = 0
        everybody = self._detections.staff_ids()
        for first in range(0, len(everybody), GROUP):
            some = everybody[first : first + GROUP]
            shown = self._latest.shown(some)
            missing: dict[Any, list[dict[str, Any]]] = {}
            for staff_id in some:
                there = shown.get(staff_id, set())
                if len(there) < RECENT:
                    newest = _whole(self._detections.newest(staff_id, RECENT))
                    if any(one["_id"] not in there for one in newest):
                        missing[staff_id] = newest
            failed = self._latest.bump(one for newest in missing.values() for one in newest)
            if failed:
                raise StoreUnavailable(str(failed))
            count += len(missing)
            if self._closed.wait(REST_SECONDS):
                break
        return count

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                count = self.fill()
            except StoreUnavailable as error:
                log.warning("older detections are not noted yet: %s", error)
                self._closed.wait(RETRY_SECONDS)
            else:
                if count:
                    log.info("noted %d staff members with older detections", count)
                return


def _whole(detections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what has all that is shown; the source system did not keep when it received one."""
    found = []
    for one in detections:
        if isinstance(one.get("timestamp"), int):
            heard = datetime.datetime.fromtimestamp(one["timestamp"], datetime.UTC)
            complete = {"received_at": heard} | one
            if complete.keys() >= set(SHOWN):
                found.append(complete)
    return found
