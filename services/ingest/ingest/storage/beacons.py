"""The collection `beacons`: the directory, changed in transactions, one writer at a time."""

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import pymongo
from pymongo.client_session import ClientSession
from pymongo.database import Database

from common import schema
from ingest.rules.floors import by_level, by_name
from ingest.storage.driver import domain_errors

# Without an answer detections go to the spool: long before the gateway asks the other service.
READ_TIMEOUT_SECONDS = 0.9
MAX_STEP = 2**31 - 1
# A whole import, and the writers that it waits for.
WRITE_TIMEOUT_SECONDS = 10

Document = dict[str, Any]
Result = TypeVar("Result")


class Beacon(NamedTuple):
    """One beacon and where it hangs; x and y are metres on the plan of its level."""

    mac: str
    level: str
    location: str
    x: float | None = None
    y: float | None = None

    @classmethod
    def from_document(cls, found: Document) -> "Beacon":
        """Read a document as `mongo.directory` and this class write it."""
        at = found.get("position") or {}
        return cls(found["mac"], found["level"], found["location"], at.get("x"), at.get("y"))

    def document(self) -> Document:
        """Return the document to store."""
        found: Document = {"_id": self.mac, "mac": self.mac}
        found |= {"level": self.level, "location": self.location}
        if self.x is not None:
            found["position"] = {"x": self.x, "y": self.y}
        return found


class Moved(NamedTuple):
    """A beacon as it was in the directory, and as it is then."""

    before: Beacon
    after: Beacon


class Changed(NamedTuple):
    """What a write did, in beacons; `others` are in the directory but were not in the write."""

    added: int
    moves: list[Moved]
    unchanged: int
    others: int


class Beacons:
    """Owns the collection `beacons`, sharded on a hash of `level`, and its revision."""

    def __init__(self, database: Database[Document]) -> None:
        self._beacons = database[schema.BEACONS.name]
        self._revisions = database[schema.DIRECTORY.name]
        self._client = database.client

    def revision(self) -> int:
        """Return a number that grows with every write through this class, by any service."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            found = self._revisions.find_one("beacons")
        return int(found["revision"]) if found else 0

    def read(self) -> list[Beacon]:
        """Return the whole directory: level by level, the lowest first, then by name and MAC."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            found = self._beacons.find().sort("_id", pymongo.ASCENDING)
            beacons = [Beacon.from_document(one) for one in found]
        return sorted(beacons, key=lambda one: (by_level(one.level), by_name(one.location)))

    def find(self, mac: str) -> Beacon | None:
        """Return one beacon as the directory has it now."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            found = self._beacons.find_one({"_id": mac})
        return Beacon.from_document(found) if found else None

    def registered(self) -> dict[str, int]:
        """Return by MAC since when the directory has a beacon where it hangs; unix seconds.

        Versions that wrote no time are older than any hour that is asked about: none is given.
        """
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            found = self._beacons.find({"registered_at": {"$exists": True}}, {"registered_at": 1})
            return {one["_id"]: int(one["registered_at"]) for one in found}

    def put(self, beacons: Iterable[Beacon], *, dry_run: bool = False) -> Changed:
        """Add or replace all of them or none; a dry run only tells what that would do."""
        wanted = {beacon.mac: beacon for beacon in beacons}

        def work(session: ClientSession | None) -> Changed:
            stored = [Beacon.from_document(f) for f in self._beacons.find(session=session)]
            known = {beacon.mac: beacon for beacon in stored if beacon.mac in wanted}
            write = [beacon for mac, beacon in wanted.items() if known.get(mac) != beacon]
            if write and not dry_run:
                # `level` is the shard key: on another level it is another shard's document.
                old = {"_id": {"$in": [beacon.mac for beacon in write]}}
                self._beacons.delete_many(old, session=session)
                now = {"registered_at": int(time.time())}
                new = [one.document() | now for one in write]
                self._beacons.insert_many(new, session=session)
            moves = [Moved(known[one.mac], one) for one in write if one.mac in known]
            return Changed(
                added=len(write) - len(moves),
                moves=moves,
                unchanged=len(wanted) - len(write),
                others=len(stored) - len(known),
            )

        if dry_run:
            with domain_errors():
                return work(None)
        return self._change(work)

    def remove(self, mac: str) -> None:
        """Take a beacon out; not to be there is success."""
        self._change(lambda session: self._beacons.delete_many({"_id": mac}, session=session))

    def _change(self, work: Callable[[ClientSession], Result]) -> Result:
        """Run a write and raise the revision with it: both or neither, on all shards."""
        only = {"_id": "beacons"}

        def all_of_it(session: ClientSession) -> Result:
            # First, since it makes another writer wait and then see all that we wrote.
            # By a random step, as in `latest`: a restored directory comes to no known revision.
            step = 1 + secrets.randbelow(MAX_STEP)
            self._revisions.update_one(only, {"$inc": {"revision": step}}, session=session)
            return work(session)

        with domain_errors(), pymongo.timeout(WRITE_TIMEOUT_SECONDS):
            # Not in the transaction: that may not make a collection on a sharded cluster.
            self._revisions.update_one(only, {"$setOnInsert": {"revision": 0}}, upsert=True)
            with self._client.start_session() as session:
                return session.with_transaction(all_of_it)
