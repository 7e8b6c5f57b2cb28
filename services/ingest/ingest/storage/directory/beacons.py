"""The collection `beacons`: the directory, changed in transactions, one writer at a time."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pymongo
from pymongo.client_session import ClientSession
from pymongo.database import Database

from common import directory, revisions, schema
from common.beacon import Beacon
from common.directory import Changed, IdsRefused, is_alias
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

    def revision(self) -> int:
        """Return a number that grows with every write through this class, by any service."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            return revisions.current(self._database, schema.BEACONS)

    def read(self) -> list[Beacon]:
        """Return the whole directory: level by level, the lowest first, then by name and MAC."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            documents = self._beacons.find().sort("_id", pymongo.ASCENDING)
            beacons = [Beacon.from_document(document) for document in documents]
        return sorted(
            beacons, key=lambda beacon: (by_level(beacon.level), by_name(beacon.location))
        )

    def find(self, ids: Sequence[str]) -> dict[str, Beacon]:
        """Return by id, of these, the beacons that have them in the directory now."""
        query = {"$or": [{name: {"$in": ids}} for name in ("_id", "aliases")]}
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            beacons = [Beacon.from_document(document) for document in self._beacons.find(query)]
        return {name: beacon for beacon in beacons for name in beacon.ids if name in ids}

    def registered(self) -> dict[str, int]:
        """Return by MAC since when the directory has a beacon where it hangs; unix seconds.

        Versions that wrote no time are older than any hour that is asked about: none is given.
        """
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            documents = self._beacons.find(
                {"registered_at": {"$exists": True}}, {"registered_at": 1}
            )
            return {document["_id"]: int(document["registered_at"]) for document in documents}

    def put(
        self,
        beacons: Iterable[Beacon],
        *,
        keeps_aliases: bool = False,
        takes_ids: bool = False,
        dry_run: bool = False,
    ) -> Changed:
        """Add or replace all of them or none, as `common.directory` does. Raises IdsRefused."""

        def write(session: ClientSession | None) -> Changed:
            return directory.put(
                self._database,
                beacons,
                session,
                keeps_aliases=keeps_aliases,
                takes_ids=takes_ids,
                dry_run=dry_run,
            )

        if dry_run:
            with domain_errors():
                return write(None)
        return self._change(write)

    def remove(self, mac: str) -> None:
        """Take a beacon out; not to be there is success. Raises IdsRefused: another has the id."""

        def take_out(session: ClientSession) -> None:
            owner = self._beacons.find_one({"aliases": mac}, session=session)
            if owner:
                raise IdsRefused([is_alias(mac, owner["_id"])])
            self._beacons.delete_many({"_id": mac}, session=session)

        self._change(take_out)

    def _change(self, work: Callable[[ClientSession], Result]) -> Result:
        with domain_errors(), pymongo.timeout(WRITE_TIMEOUT_SECONDS):
            return revisions.change(self._database, schema.BEACONS, work)
