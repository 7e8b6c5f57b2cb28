"""Until the lead's context is on main: its interface over today's store. Not to be merged."""

import datetime
from typing import Any, NamedTuple

from bson import ObjectId
from flask import current_app

from ingest.api._shared import SharedResult as SharedResult
from ingest.context import DATABASE, Store, get_store
from ingest.recording import corrections as old_corrections
from ingest.recording.recorder import PartlyUnavailable as PartlyStored  # noqa: F401
from ingest.storage import change_stream as cs
from ingest.storage import status as old_status
from ingest.storage import visits as old_visits
from ingest.storage.change_stream import CursorExpired  # noqa: F401
from ingest.storage.latest import Version  # noqa: F401


class Detection(NamedTuple):
    id: str
    staff_id: Any
    mac: str
    rssi: int
    timestamp: int
    received_at: float
    level: str
    location: str

    # so that the old `settled` works
    def __getitem__(self, key: Any) -> Any:
        return getattr(self, key) if isinstance(key, str) else tuple.__getitem__(self, key)


def detection(found: Any, **more: Any) -> Detection:
    found = found | more
    r = found.get("received_at")
    return Detection(
        str(found["_id"] if "_id" in found else found["id"]),
        found.get("staff_id"),
        found["mac"],
        found["rssi"],
        found["timestamp"],
        r.replace(tzinfo=datetime.UTC).timestamp() if r else 0.0,
        found["level"],
        found["location"],
    )


class Position(NamedTuple):
    timestamp: int
    id: str


class Page(NamedTuple):
    detections: list[Detection]
    next: Position | None


class Entry(NamedTuple):
    staff_id: Any
    version: int
    recent: list[Detection]


class Visit(NamedTuple):
    mac: str
    timestamp: int
    staff_id: Any


class UnknownBeacon(NamedTuple):
    mac: str
    count: int
    first_heard: int
    last_heard: int
    staff: list[Any]


class Change(NamedTuple):
    kind: str
    detection: Detection


class Changes(NamedTuple):
    found: list[Change]
    next: str


class Shard(NamedTuple):
    name: str
    documents: int
    bytes: int


class Minute(NamedTuple):
    timestamp: int
    count: int


class _Detections:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.longer_than = store.reports.longer_than
        self.has = store.reports.has
        self.ping = store.detections.ping

    def page(self, wanted: Any, after: Any, limit: int) -> Page:
        old = after and old_visits.Position(after.timestamp, ObjectId(after.id))
        page = self.store.reports.page(wanted, old, limit)
        return Page(
            [detection(one) for one in page.detections],
            page.next and Position(page.next.timestamp, str(page.next.id)),
        )

    def already_stored(self, documents: list[Any]) -> list[bool]:
        there = self.store.reports.existing([one["_id"] for one in documents])
        found = []
        for one in documents:
            found.append(one["_id"] in there)
            there.add(one["_id"])
        return found


class _Visits:
    def __init__(self, store: Store) -> None:
        self.store = store

    def last_visits(self, beacons: Any) -> dict[str, Visit]:
        found = self.store.reports.last_visits(beacons)
        return {m: Visit(m, one["timestamp"], one["staff_id"]) for m, one in found.items()}

    def unknown_beacons(self, known: Any, since: int) -> list[UnknownBeacon]:
        return [
            UnknownBeacon(o["_id"], o["count"], o["first_heard"], o["last_heard"], o["staff"])
            for o in self.store.reports.unknown(known, since)
        ]


class _Latest:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.versions = store.latest.versions

    def everyone(self) -> Any:
        for one in self.store.latest.everyone():
            if one["recent"]:
                recent = [detection(r, staff_id=one["_id"]) for r in one["recent"]]
                yield Entry(one["_id"], one["version"], recent)


class _Stream:
    def __init__(self, store: Store) -> None:
        self.store = store

    def read(self, start: Any, limit: int, wait: float) -> Changes:
        read = self.store.feed.read(start, limit, wait)
        return Changes([Change(k, detection(d)) for k, d in read.found], read.next)

    after = staticmethod(cs.after)
    since = staticmethod(cs.since)


class _Cluster:
    def __init__(self, store: Store) -> None:
        self.staff = store.client[DATABASE]["staff"]

    def shards(self) -> list[Shard]:
        return [Shard(**one) for one in old_status.shards(self.staff)]

    def minutes(self, now: float) -> list[Minute]:
        return [Minute(**one) for one in old_status.minutes(self.staff, now)]


class _Corrections:
    def __init__(self, store: Store) -> None:
        self.store = store

    def correct(self, beacon: Any) -> int:
        return old_corrections.correct(self.store, beacon)


class Context:
    def __init__(self, store: Store) -> None:
        self.detections = _Detections(store)
        self.visits = _Visits(store)
        self.latest = _Latest(store)
        self.change_stream = _Stream(store)
        self.beacons = store.beacons
        self.directory = store.directory
        self.recorder = store.recorder
        self.corrections = _Corrections(store)
        self.cluster = _Cluster(store)
        self.directory_snapshot = store.beacons_known
        self.level_rule = current_app.extensions["levels"]
        self.service_name = current_app.config["SERVICE"]
        self.started_at = STARTED


import time  # noqa: E402

STARTED = int(time.time())


def get_context() -> Context:
    store = get_store()
    found = current_app.extensions.get("interim")
    if found is None or found.detections.store is not store:
        found = current_app.extensions["interim"] = Context(store)
    found.recorder = store.recorder
    return found
