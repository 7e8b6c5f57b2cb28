"""Giving the past detections of a beacon, by all its ids, the place that it has now."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from common.beacon import Beacon
from common.revisions import CHECK_SECONDS
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.client import time_limit
from ingest.storage.directory.beacons import READ_TIMEOUT_SECONDS, Beacons
from ingest.storage.directory.directory import UNKNOWN, Place
from ingest.storage.directory.past_places import PastPlaces
from ingest.storage.sealed.damage import leaving_out
from ingest.storage.sealed.past_places import Corrected, Elsewhere

# What the database may take besides the wait; together below the 30 s that the gateway gives it.
TIMEOUT_SECONDS = 15
# How long one call rewrites before it answers with its progress, and what came meanwhile.
MOVE_SECONDS, LATER_SECONDS = 5.0, 1.0
# How many detections are rewritten with one command, and the rest that others get before the next.
GROUP = 500
REST_SECONDS = 0.02
LOOK_SECONDS = 0.5

# By each id of a beacon the places that its detections keep, first the one that the others get.
Stay = dict[str, list[Place]]


class Correction(NamedTuple):
    """How many detections had another place, and how many still have (None: it is complete)."""

    corrected: int
    remaining: int | None


class Corrections:
    """Rewrites stored detections; `write_seconds` is how long one write may take.

    Damaged blocks stay as they are. It keeps nothing between two calls, since what remains is found
    by its place: any service goes on with what another one left.
    """

    def __init__(self, past_places: PastPlaces, beacons: Beacons, write_seconds: float) -> None:
        self._past_places = past_places
        self._beacons = beacons
        self._write_seconds = write_seconds

    def foresee(
        self, mac: str, aliases: Sequence[str] | None, place: Place
    ) -> list[tuple[StaffId, int]]:
        """Return whose detections a correction would change, and how many, most first.

        Those of the beacon as it is; with aliases as it would be with these, and with those of
        other beacons that come along.
        """
        ids = {mac, *(aliases or ())}
        whole = {mac} if aliases is None else {*aliases}
        for beacon in self._beacons.find(list(ids)).values():
            if beacon.mac in whole:
                ids |= {*beacon.ids}
        with leaving_out():
            return self._past_places.people_elsewhere(list(ids), place)

    def correct(self, beacon: Beacon, name: str) -> Correction:
        """Rewrite detections of a beacon for some seconds; call it again while some remain.

        Each keeps its old place and the correction's name, by which `undo` takes it back.

        Call it after the beacon was put into the directory. A later edit of it wins: what was
        stored with its place stays so. What waits in a spool keeps the place that it came with.
        Raises StoreUnavailable: some may be rewritten; call it again, which does the rest.
        """
        # By each id those that stay: it may become another beacon's, or one of its own, meanwhile.
        places = {name: [Place(beacon.level, beacon.location)] for name in beacon.ids}
        # Until then a service may store the old place: it learns of the new one after the check and
        # its two reads; what it took in just before is stored, and perhaps stamped again, later.
        wait = CHECK_SECONDS + 2 * READ_TIMEOUT_SECONDS + 2 * self._write_seconds
        settled = time.monotonic() + wait
        with time_limit(wait + TIMEOUT_SECONDS), leaving_out():
            corrected, done = self._move(places, name, MOVE_SECONDS)
            if done:
                while time.monotonic() < settled:
                    time.sleep(LOOK_SECONDS)
                    self._note_edit(places)
                later, done = self._move(places, name, LATER_SECONDS)
                corrected += later
            if done:
                return Correction(corrected, None)
            remaining = [
                self._past_places.count_elsewhere(mac, stay) for mac, stay in places.items()
            ]
        return Correction(corrected, sum(remaining))

    def undo(self, ids: Sequence[str], name: str) -> Correction:
        """Give detections of these ids back what a correction took; call it again as above.

        What was corrected again since stays: the last correction of a detection can be undone.
        """
        total = 0
        until = time.monotonic() + MOVE_SECONDS
        with time_limit(MOVE_SECONDS + TIMEOUT_SECONDS), leaving_out():
            for given_back in self._give_back(ids, name):
                total += given_back
                if time.monotonic() > until:
                    break
                time.sleep(REST_SECONDS)
            remaining = sum(self._past_places.count_corrected(mac, name) for mac in ids)
            return Correction(total, remaining or None)

    def _give_back(self, ids: Sequence[str], name: str) -> Iterator[int]:
        """Give some detections back their places, and yield how many, until it is all."""
        for mac in ids:
            for detections in self._past_places.corrected(mac, name, GROUP):
                yield self._past_places.give_back(detections, mac, name)
        corrected, sealed = Corrected(ids, name), self._past_places.sealed
        while some := sealed.find(corrected):
            for blocks in some:
                yield sealed.give_back(blocks, corrected)

    def _move(self, places: Stay, name: str, seconds: float) -> tuple[int, bool]:
        """Move detections to the first of the places; return how many, and whether that is all."""
        total = 0
        until = time.monotonic() + seconds
        for mac, stay in places.items():
            while detections := self._past_places.elsewhere(mac, stay, GROUP):
                # After the look: a place that is there was edited before.
                self._note_edit(places)
                with time_limit(self._write_seconds):
                    total += self._past_places.move(detections, mac, stay, name)
                if time.monotonic() > until:
                    return total, False
                time.sleep(REST_SECONDS)
            elsewhere, sealed = Elsewhere([mac], stay), self._past_places.sealed
            while some := sealed.find(elsewhere):
                for blocks in some:
                    self._note_edit(places)
                    with time_limit(self._write_seconds):
                        total += sealed.move(blocks, elsewhere, stay[0], name)
                    if time.monotonic() > until:
                        return total, False
                    time.sleep(REST_SECONDS)
        return total, True

    def _note_edit(self, places: Stay) -> None:
        """Add the place that each id has now, if it was edited since, to those that stay."""
        known = self._beacons.find(list(places))
        for name, stay in places.items():
            beacon = known.get(name)
            place = Place(beacon.level, beacon.location) if beacon else UNKNOWN
            if place not in stay:
                stay.append(place)
