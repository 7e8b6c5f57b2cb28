"""How a detection gets stored: in the database, and in the spool while that is away."""

import enum
import logging
import threading
import time
from typing import Any

from ingest.detections import Detection, Detections
from ingest.directory import Directory
from ingest.errors import StoreUnavailable
from ingest.spool import Spool

log = logging.getLogger(__name__)

# How many detections of the spool go to MongoDB in one command.
GROUP = 500
# How often the database is tried while it is away.
RETRY_SECONDS = 0.5
# How long a database that the driver has lost may take to answer. The gateway asks two services.
PROBE_SECONDS = 0.4
# Rest between two groups of the spool, so that the backlog leaves room for what comes in.
DRAIN_REST_SECONDS = 0.05


class Outcome(enum.Enum):
    """What became of a detection; all three mean that it will not be lost."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    QUEUED = "queued"


class Recorder:
    """Stores detections, and sees to it that what had to wait is stored in the end."""

    def __init__(self, detections: Detections, directory: Directory, spool: Spool) -> None:
        self._detections = detections
        self._directory = directory
        self._spool = spool
        self._work = threading.Event()
        self._away = False
        if len(spool):
            self._work.set()
        threading.Thread(target=self._drain_for_ever, name="spool", daemon=True).start()

    @property
    def away(self) -> bool:
        """Tell whether the database did not answer when it was last tried."""
        return self._away

    @property
    def queued(self) -> int:
        """Return how many detections wait in the spool."""
        return len(self._spool)

    def record(self, detection: Detection) -> Outcome:
        """Store durably, at least in the spool. StoreUnavailable: it is not stored."""
        document = detection.document()
        if not self._away:
            try:
                self.check_reachable()
                repeated = self._detections.store([document])
            except StoreUnavailable as error:
                log.warning("the database is away, detections go to the spool: %s", error)
                self._away = True
            else:
                return Outcome.DUPLICATE if repeated else Outcome.STORED
        try:
            self._spool.append([document])
        finally:
            self._work.set()
        return Outcome.QUEUED

    def check_reachable(self) -> None:
        """Raise StoreUnavailable, in under half a second, when the database is away."""
        if self._away:
            raise StoreUnavailable("the database is away")
        if not self._detections.server_known():
            try:  # it may be back, or a starved heartbeat was late: ask, but not for long
                self._detections.ping(PROBE_SECONDS)
            except StoreUnavailable:
                self._away = True
                self._work.set()
                raise

    def _drain_for_ever(self) -> None:
        while True:
            self._work.wait()
            self._work.clear()
            while self._away or len(self._spool):
                try:
                    self._drain_group()
                except Exception:
                    log.exception("%d detections stay in the spool", len(self._spool))
                    self._away = True
                time.sleep(RETRY_SECONDS if self._away else DRAIN_REST_SECONDS)

    def _drain_group(self) -> None:
        """Store the oldest detections of the spool; those that stay there do so for a reason."""
        rows = self._spool.oldest(GROUP)
        try:
            if rows:
                self._detections.store([self._located(document) for _, document in rows])
            else:
                self._detections.ping(PROBE_SECONDS)
        except StoreUnavailable as error:
            self._away = True
            log.warning("%d detections wait for the database: %s", len(self._spool), error)
            return
        if self._away:
            log.warning("the database is back, %d detections to store", len(self._spool))
        self._away = False
        self._spool.remove([number for number, _ in rows])

    def _located(self, document: dict[str, Any]) -> dict[str, Any]:
        """Give a detection its place that came when not even the directory could be read."""
        if document["level"] is None:
            document["level"], document["location"] = self._directory.locate(document["mac"])
        return document
