"""The collection `staff`: one document per detection."""

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import pymongo
from bson import ObjectId
from pymongo import DESCENDING, IndexModel
from pymongo.collection import Collection
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from ingest.errors import StoreUnavailable
from ingest.rules.parameters import StaffId, TimeRange
from ingest.storage.driver import DUPLICATE_KEY, write_errors

# Documents that the driver decodes at once: some 600 bytes each.
BATCH = 2000
# Codes with which MongoDB refuses a document for what it is: bad value, failed to parse, type
# mismatch, invalid BSON, dollar-prefixed and empty field names, failed validation, too large.
REFUSED = frozenset({2, 9, 14, 22, 52, 56, 121, 10334})
NOWHERE = (None, None)
# One step in an index for each staff member.
SCAN_TIMEOUT_SECONDS = 30

Document = dict[str, Any]
_HASH = blake2b(digest_size=8)  # its copy takes half as long as a new one

INDEXES = [
    # A history, the last 15 minutes.
    IndexModel([("staff_id", 1), ("timestamp", DESCENDING), ("level", 1), ("location", 1)]),
    IndexModel([("timestamp", DESCENDING)]),
    # Covers who was where last, the unknown beacons, and what a correction has to change.
    IndexModel(
        [("mac", 1), ("level", 1), ("location", 1), ("timestamp", DESCENDING), ("staff_id", 1)]
    ),
]


# What a retry repeats: a text, and unix seconds (None when a retry may bring others).
# A tuple: a class of its own takes longer to make than all that is done with it.
IdempotencyKey = tuple[str, int | None]


def document(
    staff_id: StaffId,
    place: tuple[str | None, str | None],
    timestamp: int,
    rssi: int,
    mac: str,
    received_at: float,
    key: IdempotencyKey,
) -> Document:
    """Return what is stored of one sighting; times in unix seconds, rssi in dBm.

    `place` is level and location, `NOWHERE` while the directory cannot be read. `received_at` is
    stored as a date so that a TTL index can use it.
    """
    return {
        "_id": _name(staff_id, mac, key),
        "staff_id": staff_id,
        "level": place[0],
        "location": place[1],
        "timestamp": timestamp,
        "rssi": rssi,
        "mac": mac,
        "received_at": _date(received_at),
    }


def _name(staff_id: StaffId, mac: str, key: IdempotencyKey) -> ObjectId:
    """Name a detection by what it is, so that any retry meets its first copy.

    8 bytes hash the staff id (`_id` is unique per shard only), the beacon (one event may be a
    scan that heard several) and the key; 4 bytes of time before them keep the index local,
    where there is a time that every retry repeats.
    """
    text, seconds = key
    named = f"{staff_id}\0{mac}\0{text}".encode()
    if seconds is None:
        return ObjectId(blake2b(named, digest_size=12).digest())
    hashed = _HASH.copy()
    hashed.update(named)
    return ObjectId(seconds.to_bytes(4, "big") + hashed.digest())


@lru_cache(1)  # a batch has one
def _date(unix_seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(unix_seconds, datetime.UTC)


class Stored(NamedTuple):
    """What became of documents, by position: those in none of the three were stored."""

    repeated: set[int]
    refused: dict[int, str]
    failed: dict[int, str]  # on one shard, say; they may be stored or not


class Detections:
    """Owns the collection `staff`, sharded on a hash of `staff_id`."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff
        # What a majority has is never rolled back: what is kept of it stays true.
        self._durable = staff.with_options(read_concern=ReadConcern("majority"))

    def missing_indexes(self) -> list[IndexModel]:
        """Return which indexes are still to be made."""
        with _domain_errors():
            there = self._staff.index_information()
        return [index for index in INDEXES if index.document["name"] not in there]

    def create(self, indexes: list[IndexModel]) -> None:
        """Create indexes, which may take a while."""
        with _domain_errors():
            self._staff.create_indexes(indexes)

    def server_known(self) -> bool:
        """Tell, without asking it, whether the driver knows a server that takes writes."""
        return self._staff.database.client.topology_description.has_writable_server()

    def ping(self, timeout_seconds: float) -> None:
        """Return when every shard answers; StoreUnavailable when one does not in time.

        A router answers a `ping` alone, and what comes first by `_id` only with all shards.
        """
        with _domain_errors(), pymongo.timeout(timeout_seconds):
            self._staff.find_one({}, {"_id": 1}, sort=[("_id", 1)])

    def store(self, documents: list[Document]) -> Stored:
        """Store documents durably.

        StoreUnavailable: any of them may be stored or not. The same `_id` again does no harm.
        """
        stored = Stored(set(), {}, {})
        failed = write_errors(self._staff, "insert", {"documents": documents})
        for position, (code, reason) in failed.items():
            if code == DUPLICATE_KEY:
                stored.repeated.add(position)
            else:
                (stored.refused if code in REFUSED else stored.failed)[position] = reason
        return stored

    def again(self, documents: list[Document]) -> list[Document]:
        """Return documents as they are stored: a repeat may differ from its first copy."""
        staff_ids = list({document["staff_id"] for document in documents})
        ids = [document["_id"] for document in documents]
        with _domain_errors():
            return list(self._staff.find({"_id": {"$in": ids}, "staff_id": {"$in": staff_ids}}))

    def staff_ids(self) -> list[StaffId]:
        """Return everybody of whom anything is stored."""
        with _domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            return list(self._staff.distinct("staff_id"))

    def newest(self, staff_id: StaffId, limit: int) -> list[Document]:
        """Return the newest detections of a staff member, newest first, as they are stored."""
        with _domain_errors():
            found = self._staff.find({"staff_id": staff_id})
            return list(found.sort("timestamp", DESCENDING).limit(limit))

    def list_between(self, wanted: TimeRange) -> Iterator[dict[str, Any]]:
        """Yield level, location and timestamp of one staff member's detections, newest first."""
        query = {
            "staff_id": wanted.staff_id,
            "timestamp": {"$gte": wanted.start, "$lte": wanted.end},
        }
        yield from self._newest_first(query, "level", "location", "timestamp")

    def list_since(self, timestamp: int) -> Iterator[dict[str, Any]]:
        """Yield everybody's detections since `timestamp` (unix seconds), newest first."""
        query = {"timestamp": {"$gte": timestamp}}
        fields = ("staff_id", "level", "location", "timestamp", "rssi", "mac")
        yield from self._newest_first(query, *fields)

    def _newest_first(self, query: dict[str, Any], *fields: str) -> Iterator[dict[str, Any]]:
        projection = {"_id": 0} | dict.fromkeys(fields, 1)
        with _domain_errors():
            rows = self._durable.find(query, projection).sort("timestamp", DESCENDING)
            for found in rows.batch_size(BATCH):
                yield {field: found.get(field) for field in fields}  # an index has its own order


@contextmanager
def _domain_errors() -> Iterator[None]:
    try:
        yield
    except PyMongoError as error:
        raise StoreUnavailable(str(error)) from error
