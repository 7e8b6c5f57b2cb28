"""The connection to MongoDB: one client for each process, made when it is first used."""

import socket
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pymongo
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import PyMongoError
from pymongo.topology_description import TopologyDescription

from common import schema
from ingest.config import Config
from ingest.errors import without_frames
from ingest.storage.database.driver import domain_errors

Address = tuple[str, int | None]

HEARTBEAT_MS = 5000
# How long the database may take to hear which sessions end; without that it ends them itself.
CLOSE_SECONDS = 1.0


class Client:
    """One service's connection to its database."""

    def __init__(self, config: Config) -> None:
        """Connect later. Raises ValueError where MONGODB_URI has an option that is not one."""
        with _options_understood():
            self._client: MongoClient[dict[str, Any]] = MongoClient(
                config.mongodb_uri,
                appname="ingest",
                **_credentials(config),
                timeoutMS=config.mongodb_timeout_ms,
                # Servers stream what changes, and a connection that breaks is seen at once;
                # whoever waits for a server has it asked twice a second. So heartbeats may be rare:
                # ten times as many cost a third of the idle stack's CPU. A frozen server is seen by
                # the first write that times out.
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
        """Close all connections; the driver would wait 30 s for a database that is away."""
        with pymongo.timeout(CLOSE_SECONDS):
            self._client.close()

    def lend_socket(self, seconds: float) -> tuple[socket.socket, Address] | None:
        """Return the socket of a connection to who takes writes, and who that is; it is logged in.

        From then on it is the caller's alone. None: it is encrypted, and only the driver can speak
        there. The driver has no public way to do so. Raises StoreUnavailable.
        """
        with (
            domain_errors(),
            pymongo.timeout(seconds),
            self._client._conn_for_writes(None, "insert") as connection,
        ):
            theirs = connection.conn.sock
            if type(theirs) is not socket.socket:
                return None
            lent = theirs.dup()
            connection.close_conn(None)  # theirs alone: the pool makes another when it needs one
            address: Address = connection.address
        lent.settimeout(0)
        return lent, address

    def takes_writes(self, address: Address) -> bool:
        """Tell, without asking it, whether a server takes writes, as far as the driver knows."""
        server = self._client.topology_description.server_descriptions().get(address)
        return server is not None and server.is_writable

    def server_known(self) -> bool:
        """Tell, without asking it, whether the driver knows a server that takes writes."""
        return self._client.topology_description.has_writable_server()

    def is_sharded(self) -> bool:
        """Tell, without asking it, whether what answers is a router."""
        return self._client.topology_description.topology_type_name == "Sharded"

    def lag_seconds(self) -> float | None:
        """Return how far the slowest member of the replica set is behind, without asking it.

        None: there is one member alone, no primary, or what answers is a router.
        """
        return lag_seconds(self._client.topology_description)

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


def lag_seconds(topology: TopologyDescription) -> float | None:
    """Return how far the slowest secondary is behind the primary, by what both said last.

    They said it at different moments: each one's last write is compared with its own moment.
    """
    ages: dict[str, list[float]] = {}
    for server in topology.server_descriptions().values():
        if server.last_write_date is not None:
            age = server.last_update_time - server.last_write_date
            ages.setdefault(server.server_type_name, []).append(age)
    primary, secondaries = ages.get("RSPrimary"), ages.get("RSSecondary")
    return max(0.0, max(secondaries) - primary[0]) if primary and secondaries else None


def time_limit(seconds: float) -> AbstractContextManager[Any]:
    """Return a context in which all operations together may take so long; at once is no time."""
    return pymongo.timeout(max(0.001, seconds))  # for the driver 0 is for ever


@contextmanager
def _options_understood() -> Iterator[None]:
    """Raise ValueError where the driver would warn, and go on: of `tls=True` without TLS."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            yield
        except UserWarning as warning:
            raise ValueError(f"MONGODB_URI: {warning}") from None


def _credentials(config: Config) -> dict[str, Any]:
    if not config.mongodb_user:
        return {}
    password = Path(config.mongodb_password_file).read_text(encoding="utf-8").strip()
    login = {"username": config.mongodb_user, "password": password}
    if "authsource=" in config.mongodb_uri.lower():  # elsewhere users are kept in `admin`
        return login
    return login | {"authSource": schema.DATABASE}
