"""The collection `telemetry`: what the beacons of the directory last told of themselves.

A reading that a kill loses comes again with the next advertisement: it is no detection. So it waits
in memory, and few commands write all of it once a minute.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import groupby, islice
from typing import Any, NamedTuple

import pymongo
from pymongo.database import Database

from common import schema
from common.beacon import Beacon
from ingest.errors import StoreUnavailable
from ingest.rules.batteries import DAY_SECONDS, KINDS, SERIES_DAYS, Reading
from ingest.storage.database.client import time_limit
from ingest.storage.database.driver import domain_errors, readable, write
from ingest.storage.directory.beacons import Beacons
from ingest.tasks.repeated import Repeated, Rest
from ingest.turns import in_turns

WRITE_SECONDS, HURRY_SECONDS, RETRY_SECONDS = 59.0, 1.0, 10.0
# How many readings wait, of all beacons; from half of them on they are written soon.
MAX_READINGS = 4096
# How many beacons are written with one command, and decoded at once, 60 kB each.
GROUP, READ_AT_ONCE = 200, 25
TIMEOUT_SECONDS, CLOSE_SECONDS, READ_SECONDS = 2.0, 1.0, 15.0

Document = dict[str, Any]

log = logging.getLogger(__name__)


class Told(NamedTuple):
    """What one beacon told: the newest reading of each name, and those of the battery by day."""

    mac: str
    latest: dict[str, Reading]
    series: dict[str, list[Reading]]


class Telemetry:
    """Owns the collection, which lies on one shard: a document of bounded size for each beacon.

    Each field is written with `$max` over {at, value}: so the newest wins, whichever service writes
    first, and a repeat changes nothing. A day of the battery has the same place as the day
    `SERIES_DAYS` before: the newer takes it.
    """

    def __init__(self, database: Database[Document], beacons: Beacons) -> None:
        self._stored = database[schema.TELEMETRY.name]
        self._beacons = beacons
        self._waiting: dict[tuple[str, str], Reading] = {}  # by beacon and field
        self._noting, self._writing = threading.Lock(), threading.Lock()
        self._rounds = Repeated(
            "telemetry", self._round, "what beacons told is not written", RETRY_SECONDS
        )

    def note(self, mac: str, at: int, readings: Mapping[str, float]) -> None:
        """Have it written within a minute what a beacon of the directory told; unix seconds."""
        fields = {}
        for name, value in readings.items():
            fields[mac, f"latest.{name}"] = Reading(at, value)
            if name in KINDS:
                day = at // DAY_SECONDS % SERIES_DAYS
                fields[mac, f"days.{name}.{day}"] = Reading(at, value)
        self._hold(fields)
        self._rounds.start(Rest(0, WRITE_SECONDS))

    def write(self) -> None:
        """Write what waits. Raises StoreUnavailable: it waits on."""
        with self._writing:
            with self._noting:
                readings, self._waiting = self._waiting, {}
            if not readings:
                return
            try:
                with time_limit(TIMEOUT_SECONDS):
                    self._write(readings)
            except StoreUnavailable:
                self._hold(readings)
                raise

    def read(self) -> Iterator[Told]:
        """Yield what each beacon told. Raises StoreUnavailable."""
        with domain_errors(), pymongo.timeout(READ_SECONDS):
            documents = self._stored.find().batch_size(READ_AT_ONCE)
            yield from readable(_told, in_turns(documents, READ_AT_ONCE))

    def forget(self, mac: str) -> None:
        """Remove what a beacon told that is in the directory no more. Raises StoreUnavailable."""
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            self._stored.delete_one({"_id": mac})

    def adopt(self, beacons: Iterable[Beacon]) -> None:
        """Keep as of these beacons what was told by their aliases while these were beacons.

        Raises StoreUnavailable: call it again.
        """
        owners = {alias: beacon.mac for beacon in beacons for alias in beacon.aliases}
        if not owners:
            return
        with domain_errors(), pymongo.timeout(READ_SECONDS):
            for document in self._stored.find({"_id": {"$in": list(owners)}}):
                alias = document.pop("_id")
                owner = {"_id": owners[alias]}
                self._stored.update_one(owner, {"$max": dict(_flat(document))}, upsert=True)
                self._stored.delete_one({"_id": alias})

    def close(self) -> None:
        """Write what waits, if the database takes it now, and end."""
        self._rounds.close()
        try:
            with time_limit(CLOSE_SECONDS):
                self.write()
        except StoreUnavailable as error:
            log.warning("what beacons told in the last minute is lost: %s", error)

    def _hold(self, readings: Mapping[tuple[str, str], Reading]) -> None:
        with self._noting:
            for field, reading in readings.items():
                held = self._waiting.get(field)
                if held is None and len(self._waiting) >= MAX_READINGS:
                    continue
                self._waiting[field] = max(held, reading) if held else reading
            is_much = len(self._waiting) > MAX_READINGS // 2
        if is_much:
            self._rounds.wake()

    def _round(self) -> Rest:
        self.write()
        return Rest(HURRY_SECONDS, WRITE_SECONDS)

    def _write(self, readings: Mapping[tuple[str, str], Reading]) -> None:
        beacons = groupby(sorted(readings.items()), key=lambda entry: entry[0][0])
        while group := {
            mac: {field: reading._asdict() for (_, field), reading in entries}
            for mac, entries in islice(beacons, GROUP)
        }:
            updates = [
                {"q": {"_id": mac}, "u": {"$max": fields}, "upsert": True}
                for mac, fields in group.items()
            ]
            written = write(self._stored, "update", {"updates": updates})
            if written.failed:
                raise StoreUnavailable(str(written.failed))
            self._forget_strangers(group.keys())

    def _forget_strangers(self, macs: Set[str]) -> None:
        """Remove what was written of beacons that were taken out meanwhile.

        Who takes one out does so before he removes what it told: one of both sees what the other
        did. What became another's id meanwhile is that one's.
        """
        known = self._beacons.find(list(macs))
        if strangers := macs - known.keys():
            with domain_errors():
                self._stored.delete_many({"_id": {"$in": list(strangers)}})
        self.adopt(beacon for name, beacon in known.items() if name != beacon.mac)


def _flat(fields: Document, path: str = "") -> Iterator[tuple[str, Document]]:
    """Yield the readings of a document by their paths, as `note` names them; nothing else."""
    for name, value in fields.items():
        if not isinstance(value, dict):
            continue
        if value.keys() == set(Reading._fields):
            yield path + name, value
        else:
            yield from _flat(value, f"{path}{name}.")


def _told(document: Document) -> Told:
    latest = {name: Reading(**reading) for name, reading in document.get("latest", {}).items()}
    days = document.get("days", {})
    series = {
        name: [Reading(**reading) for reading in days[name].values()]
        for name in KINDS
        if name in days
    }
    return Told(document["_id"], latest, series)
