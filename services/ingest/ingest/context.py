"""All that lives as long as the process, assembled once."""

import logging
from pathlib import Path
from typing import NamedTuple, cast

from flask import current_app

from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.histories.last_minutes import LastMinutes
from ingest.histories.read_through_cache import Histories
from ingest.process import service_name
from ingest.recording.back_fill import BackFill
from ingest.recording.corrections import Corrections
from ingest.recording.drain import Drain
from ingest.recording.recorder import Recorder
from ingest.recording.spool import Spool
from ingest.rules.levels import Rule
from ingest.storage.availability import Availability
from ingest.storage.beacons import Beacons
from ingest.storage.change_stream import ChangeStream
from ingest.storage.client import Client
from ingest.storage.cluster_usage import Cluster
from ingest.storage.detections import Detections
from ingest.storage.directory import Directory, Snapshot
from ingest.storage.everyone import Everyone
from ingest.storage.latest import Latest
from ingest.storage.visits import Visits

log = logging.getLogger(__name__)


class Context(NamedTuple):
    """What the endpoints work with."""

    service_name: str
    insert_seconds: float  # how long storing a detection may take
    max_body_bytes: int
    client: Client
    availability: Availability
    detections: Detections
    visits: Visits
    latest: Latest
    everyone: Everyone
    change_stream: ChangeStream
    cluster: Cluster
    beacons: Beacons
    directory: Directory
    spool: Spool
    recorder: Recorder
    drain: Drain
    histories: Histories
    last_minutes: LastMinutes
    back_fill: BackFill
    corrections: Corrections

    @classmethod
    def assemble(cls, config: Config) -> "Context":
        """Make everything, one for each worker process: the driver is not fork-safe.

        It needs no MongoDB: the connection is made when it is first used.
        """
        client = Client(config)
        availability = Availability(client)
        staff = client.database["staff"]
        insert_seconds = config.mongodb_timeout_ms / 1000
        detections, latest = Detections(staff), Latest(client.database["latest"])
        beacons = Beacons(client.database)
        directory = Directory(beacons, config.directory_refresh_seconds)
        spool = Spool(Path(config.spool_file), config.spool_max_detections)
        recorder = Recorder(availability, detections, latest, directory, spool)
        rule = Rule(
            hits=config.level_hits,
            window_seconds=config.level_window_seconds,
            margin_db=config.level_margin_db,
            silence_seconds=config.level_silence_seconds,
        )
        everyone = Everyone(latest, rule)
        context = cls(
            service_name=service_name(config.spool_file),
            insert_seconds=insert_seconds,
            max_body_bytes=config.max_body_bytes,
            client=client,
            availability=availability,
            detections=detections,
            visits=Visits(staff),
            latest=latest,
            everyone=everyone,
            change_stream=ChangeStream(staff),
            cluster=Cluster(staff),
            beacons=beacons,
            directory=directory,
            spool=spool,
            recorder=recorder,
            drain=Drain(availability, recorder, spool),
            histories=Histories(detections, latest, availability.check_reachable),
            last_minutes=LastMinutes(detections, latest, everyone),
            back_fill=BackFill(detections, latest),
            corrections=Corrections(detections, latest, insert_seconds),
        )
        try:
            client.prepare(insert_seconds)
        except StoreUnavailable as error:  # the next /readyz tries again
            log.warning("started without MongoDB: %s", error)
        return context

    def close(self) -> None:
        """Stop the threads, then close the spool and the connection."""
        self.back_fill.close()
        self.drain.close()
        self.recorder.close()
        self.histories.close()
        self.last_minutes.close()
        self.everyone.close()
        self.directory.close()
        self.spool.close()
        self.client.close()

    def directory_snapshot(self) -> Snapshot:
        """Return the directory, from memory alone while the database is away.

        StoreUnavailable: it was never read.
        """
        if not self.availability.away:
            return self.directory.current()
        snapshot = self.directory.cached()
        if snapshot is None:
            raise StoreUnavailable("the directory was never read")
        return snapshot


def get_context() -> Context:
    """Return the context of the current application."""
    return cast(Context, current_app.extensions["context"])
