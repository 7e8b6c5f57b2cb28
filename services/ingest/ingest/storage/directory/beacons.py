"""The collection `beacons`: the directory, changed in transactions, one writer at a time."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pymongo
from pymongo.client_session import ClientSession
from pymongo.database import Database

from common import directory, schema
from common.beacon import Beacon
from common.directory import Changed
from ingest.rules.floors import by_level, by_name
from ingest.storage.database.driver import domain_errors

# Without an answer detections go to the spool: long before the gateway asks the other service.
READ_TIMEOUT_SECONDS = 0.9
# A whole import, and the writers that it waits for.
WRITE_TIMEOUT_SECONDS = 10

Document = dict[str, Any]
Result = TypeVar("Result")


class Beacons:
    """Owns the collection `beacons`, sharded on a hash of `level`, and its revision."""

    def __init__(self, database: Database[Document]) -> None:
        self._database = database
        self._beacons = database[schema.BEACONS.name]
        self._revisions = database[schema.DIRECTORY.name]

    def revision(self) -> int:
        """Return a number that grows with every write through this class, by any service."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            document = self._revisions.find_one("beacons")
        return int(document["revision"]) if document else 0

    def read(self) -> list[Beacon]:
        """Return the whole directory: level by level, the lowest first, then by name and MAC."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            documents = self._beacons.find().sort("_id", pymongo.ASCENDING)
            beacons = [Beacon.from_document(document) for document in documents]
        return sorted(
            beacons, key=lambda beacon: (by_level(beacon.level), by_name(beacon.location))
        )

    def find(self, mac: str) -> Beacon | None:
        """Return one beacon as the directory has it now."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            document = self._beacons.find_one({"_id": mac})
        return Beacon.from_document(document) if document else None

    def registered(self) -> dict[str, int]:
        """Return by MAC since when the directory has a beacon where it hangs; unix seconds.

        Versions that wrote no time are older than any hour that is asked about: none is given.
        """
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            documents = self._beacons.find(
                {"registered_at": {"$exists": True}}, {"registered_at": 1}
            )
            return {document["_id"]: int(document["registered_at"]) for document in documents}

    def put(self, beacons: Iterable[Beacon], *, dry_run: bool = False) -> Changed:
        """Add or replace all of them or none; a dry run only tells what that would do."""
        if dry_run:
            with domain_errors():
                return directory.put(self._database, beacons, None, dry_run=True)
        return self._change(lambda session: directory.put(self._database, beacons, session))

    def remove(self, mac: str) -> None:
        """Take a beacon out; not to be there is success."""
        self._change(lambda session: self._beacons.delete_many({"_id": mac}, session=session))

    def _change(self, work: Callable[[ClientSession], Result]) -> Result:
        with domain_errors(), pymongo.timeout(WRITE_TIMEOUT_SECONDS):
            return directory.change(self._database, work)
