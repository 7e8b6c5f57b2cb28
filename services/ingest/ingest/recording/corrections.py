"""Giving the past detections of a beacon the place that it has now."""

import time
from typing import NamedTuple

from common.beacon import Beacon
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.client import time_limit
from ingest.storage.directory.beacons import READ_TIMEOUT_SECONDS, Beacons
from ingest.storage.directory.directory import CHECK_SECONDS, UNKNOWN, Place
from ingest.storage.directory.past_places import PastPlaces

# What the database may take besides the wait; together below the 30 s that the gateway gives it.
TIMEOUT_SECONDS = 15
# How long one call rewrites before it answers with its progress, and what came meanwhile.
MOVE_SECONDS, LATER_SECONDS = 5.0, 1.0
# How many detections are rewritten with one command, and the rest that others get before the next.
GROUP = 500
REST_SECONDS = 0.02
LOOK_SECONDS = 0.5


class Correction(NamedTuple):
    """How many detections had another place, and how many still have (None: it is complete)."""

    corrected: int
    remaining: int | None


class Corrections:
    """Rewrites stored detections; `write_seconds` is how long one write may take.

    It keeps nothing between two calls, since what remains is found by its place: any service goes
    on with what another one left.
    """

    def __init__(self, past_places: PastPlaces, beacons: Beacons, write_seconds: float) -> None:
        self._past_places = past_places
        self._beacons = beacons
        self._write_seconds = write_seconds

    def foresee(self, mac: str, place: Place) -> list[tuple[StaffId, int]]:
        """Return whose detections a correction would change, and how many, most first."""
        return self._past_places.people_elsewhere(mac, place)

    def correct(self, beacon: Beacon, name: str) -> Correction:
        """Rewrite detections of a beacon for some seconds; call it again while some remain.

        Each keeps its old place and the correction's name, by which `undo` takes it back.

        Call it after the beacon was put into the directory. A later edit of it wins: what was
        stored with its place stays so. What waits in a spool keeps the place that it came with.
        Raises StoreUnavailable: some may be rewritten; call it again, which does the rest.
        """
        mac, places = beacon.mac, [Place(beacon.level, beacon.location)]
        # Until then a service may store the old place: it learns of the new one after the check and
        # its two reads; what it took in just before is stored, and perhaps stamped again, later.
        wait = CHECK_SECONDS + 2 * READ_TIMEOUT_SECONDS + 2 * self._write_seconds
        settled = time.monotonic() + wait
        with time_limit(wait + TIMEOUT_SECONDS):
            corrected, done = self._move(mac, places, name, MOVE_SECONDS)
            if done:
                while time.monotonic() < settled:
                    time.sleep(LOOK_SECONDS)
                    self._note_edit(mac, places)
                later, done = self._move(mac, places, name, LATER_SECONDS)
                corrected += later
            remaining = None if done else self._past_places.count_elsewhere(mac, places)
        return Correction(corrected, remaining)

    def undo(self, mac: str, name: str) -> Correction:
        """Give detections back what a correction took, for some seconds; call it again as above.

        What was corrected again since stays: the last correction of a detection can be undone.
        """
        total = 0
        until = time.monotonic() + MOVE_SECONDS
        with time_limit(MOVE_SECONDS + TIMEOUT_SECONDS):
            for detections in self._past_places.corrected(mac, name, GROUP):
                total += self._past_places.give_back(detections, mac, name)
                if time.monotonic() > until:
                    break
                time.sleep(REST_SECONDS)
            return Correction(total, self._past_places.count_corrected(mac, name) or None)

    def _move(self, mac: str, places: list[Place], name: str, seconds: float) -> tuple[int, bool]:
        """Move detections to the first of the places; return how many, and whether that is all."""
        total = 0
        until = time.monotonic() + seconds
        while detections := self._past_places.elsewhere(mac, places, GROUP):
            self._note_edit(mac, places)  # after the look: a place that is there was edited before
            with time_limit(self._write_seconds):
                total += self._past_places.move(detections, mac, places, name)
            if time.monotonic() > until:
                return total, False
            time.sleep(REST_SECONDS)
        return total, True

    def _note_edit(self, mac: str, places: list[Place]) -> None:
        """Add the place that the beacon has now, if it was edited since, to those that stay."""
        beacon = self._beacons.find(mac)
        place = Place(beacon.level, beacon.location) if beacon else UNKNOWN
        if place not in places:
            places.append(place)
