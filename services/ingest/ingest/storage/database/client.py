"""The connection to MongoDB: one client for each process, made when it is first used."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pymongo
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import PyMongoError

from common import schema
from ingest.config import Config
from ingest.errors import without_frames
from ingest.storage.database.driver import domain_errors

HEARTBEAT_MS = 5000


class Client:
    """One service's connection to its database."""

    def __init__(self, config: Config) -> None:
        self._client: MongoClient[dict[str, Any]] = MongoClient(
            config.mongodb_uri,
            appname="ingest",
            **_credentials(config),
            timeoutMS=config.mongodb_timeout_ms,
            # Servers stream what changes, and a connection that breaks is seen at once; whoever
            # waits for a server has it asked twice a second. So heartbeats may be rare: ten times
            # as many cost a third of the idle stack's CPU. A frozen server is seen by the first
            # write that times out.
            heartbeatFrequencyMS=HEARTBEAT_MS,
            connectTimeoutMS=config.mongodb_timeout_ms,
            retryWrites=True,
            w="majority",
            # What an older database holds may lie outside of Python's years 1 to 9999.
            datetime_conversion="DATETIME_AUTO",
        )

    @property
    def database(self) -> Database[dict[str, Any]]:
        """Return the database, for the other modules of this package."""
        return self._client[schema.DATABASE]

    @property
    def staff(self) -> Collection[dict[str, Any]]:
        """Return the collection of all detections."""
        return self.database[schema.STAFF.name]

    @property
    def latest(self) -> Collection[dict[str, Any]]:
        """Return the collection of everybody's newest detections."""
        return self.database[schema.LATEST.name]

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def server_known(self) -> bool:
        """Tell, without asking it, whether the driver knows a server that takes writes."""
        return self._client.topology_description.has_writable_server()

    def is_sharded(self) -> bool:
        """Tell, without asking it, whether what answers is a router."""
        return self._client.topology_description.topology_type_name == "Sharded"

    def ping(self, timeout_seconds: float) -> None:
        """Return when every shard answers; StoreUnavailable when one does not in time.

        A router answers a `ping` alone, and what comes first by `_id` only with all shards.
        """
        with domain_errors(), pymongo.timeout(timeout_seconds):
            self.database[schema.STAFF.name].find_one({}, {"_id": 1}, sort=[("_id", 1)])

    def any_answers(self, timeout_seconds: float) -> bool:
        """Tell whether any shard answers in time; at once, when one does."""
        find = {"find": "staff", "projection": {"_id": 1}, "limit": 1, "allowPartialResults": True}
        try:
            with pymongo.timeout(timeout_seconds):
                cursor = self.database.command(find)["cursor"]
        except PyMongoError as error:
            without_frames(error)
            return False
        return bool(cursor["firstBatch"]) or not cursor.get("partialResultsReturned")


def time_limit(seconds: float) -> AbstractContextManager[Any]:
    """Return a context in which all operations together may take so long."""
    return pymongo.timeout(seconds)


def _credentials(config: Config) -> dict[str, Any]:
    if not config.mongodb_user:
        return {}
    password = Path(config.mongodb_password_file).read_text(encoding="utf-8").strip()
    return {"username": config.mongodb_user, "password": password, "authSource": schema.DATABASE}
