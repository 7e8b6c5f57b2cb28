"""The connection to MongoDB and the collections behind it."""

from pathlib import Path
from typing import Any, NamedTuple, cast

import pymongo
from flask import current_app
from pymongo import MongoClient

from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.histories.cache import Histories
from ingest.recording.back_fill import Backfill
from ingest.recording.recorder import Recorder
from ingest.recording.spool import Spool
from ingest.storage.beacons import Beacons
from ingest.storage.change_stream import Feed
from ingest.storage.detections import Detections
from ingest.storage.directory import Directory, Place, Snapshot
from ingest.storage.latest import Latest
from ingest.storage.visits import Reports

DATABASE = "ICT3102"
HEARTBEAT_MS = 500


class Store(NamedTuple):
    """All that the service keeps in MongoDB."""

    client: MongoClient[dict[str, Any]]
    detections: Detections
    latest: Latest
    histories: Histories
    reports: Reports
    feed: Feed
    beacons: Beacons
    directory: Directory
    recorder: Recorder
    backfill: Backfill
    insert_seconds: float  # how long storing a detection may take

    @classmethod
    def connect(cls, config: Config) -> "Store":
        """Make the client, one per worker process: it is not fork-safe. Connects when used."""
        client: MongoClient[dict[str, Any]] = MongoClient(
            config.mongodb_uri,
            appname="ingest",
            **_credentials(config),
            timeoutMS=config.mongodb_timeout_ms,
            # Dead servers are seen at once, and seen to be back in half a second. A frozen one is
            # seen by the first write that times out; heartbeats are given longer than that, since
            # under 0.3 CPU they are late themselves.
            heartbeatFrequencyMS=HEARTBEAT_MS,
            connectTimeoutMS=config.mongodb_timeout_ms,
            retryWrites=True,
            w="majority",
        )
        detections = Detections(client[DATABASE]["staff"])
        latest = Latest(client[DATABASE]["latest"])
        beacons = Beacons(client[DATABASE])
        directory = Directory(beacons, config.directory_refresh_seconds)
        spool = Spool(Path(config.spool_file), config.spool_max_detections)
        recorder = Recorder(detections, latest, directory, spool)
        return cls(
            client=client,
            detections=detections,
            latest=latest,
            histories=Histories(detections, latest),
            reports=Reports(client[DATABASE]["staff"]),
            feed=Feed(client[DATABASE]["staff"]),
            beacons=beacons,
            directory=directory,
            recorder=recorder,
            backfill=Backfill(detections, latest),
            insert_seconds=config.mongodb_timeout_ms / 1000,
        )

    def close(self) -> None:
        """Stop the threads, then close the spool and the connection."""
        self.backfill.close()
        self.recorder.close()
        self.client.close()

    def locate(self, mac: str) -> Place | None:
        """Return the place of a beacon, None while that cannot be told."""
        if self.recorder.away:
            return self.directory.known(mac)  # to ask would only cost its timeout
        try:
            return self.directory.locate(mac)
        except StoreUnavailable:
            return None

    def beacons_known(self) -> Snapshot:
        """Return the directory, from memory alone while the database is away.

        StoreUnavailable: it was never read.
        """
        if not self.recorder.away:
            return self.directory.current()
        snapshot = self.directory.in_memory()
        if snapshot is None:
            raise StoreUnavailable("the directory was never read")
        return snapshot

    def prepare(self, timeout_seconds: float) -> None:
        """Make the indexes that are missing; StoreUnavailable: not all of MongoDB answers."""
        with pymongo.timeout(timeout_seconds):
            self.detections.ping(timeout_seconds)
            missing = self.detections.missing_indexes()
        if missing:
            self.detections.create(missing)


def _credentials(config: Config) -> dict[str, Any]:
    if not config.mongodb_user:
        return {}
    password = Path(config.mongodb_password_file).read_text(encoding="utf-8").strip()
    return {"username": config.mongodb_user, "password": password, "authSource": DATABASE}


def get_store() -> Store:
    """Return the store of the current application."""
    return cast(Store, current_app.extensions["store"])
