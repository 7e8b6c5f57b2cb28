"""The thread that stores what waits in the spool, once the database is back."""

import logging
import threading

from ingest.errors import StoreUnavailable
from ingest.recording.outcome import Outcome
from ingest.recording.recorder import GROUP, Recorder
from ingest.recording.spool import Spool
from ingest.storage.availability import Availability
from ingest.storage.documents import Document

log = logging.getLogger(__name__)

# How often the database is tried while it is away.
RETRY_SECONDS = 0.5
# Rest between two groups of the spool, so that the backlog leaves room for what comes in.
REST_SECONDS = 0.05
# And after the spool's own file failed.
FAULT_REST_SECONDS = 2.0


class Drain:
    """Stores the oldest detections of the spool first, a group at a time."""

    def __init__(self, availability: Availability, recorder: Recorder, spool: Spool) -> None:
        self._availability = availability
        self._recorder = recorder
        self._spool = spool
        self._closed = threading.Event()
        if not spool.empty:
            availability.drain_wanted.set()
        self._thread = threading.Thread(target=self._run, name="drain", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; what waits in the spool waits for the next start."""
        self._closed.set()
        self._availability.drain_wanted.set()
        self._thread.join()

    def _run(self) -> None:
        availability, spool = self._availability, self._spool
        while not self._closed.is_set():
            availability.drain_wanted.wait()
            availability.drain_wanted.clear()
            while (availability.away or not spool.empty) and not self._closed.is_set():
                rest = REST_SECONDS
                try:
                    self.store_group()
                except Exception:
                    log.exception("%d detections stay in the spool", len(spool))
                    rest = FAULT_REST_SECONDS
                self._closed.wait(RETRY_SECONDS if availability.away else rest)

    def store_group(self) -> None:
        """Store the oldest detections of the spool; those that stay there do so for a reason."""
        rows, fault = self._oldest()
        outcomes: list[Outcome] = []
        try:
            if rows:
                outcomes = self._recorder.commit([document for _, document in rows])
            else:
                self._availability.probe()
        except StoreUnavailable as error:
            self._availability.lost(error)
            log.warning("%d detections wait for the database: %s", len(self._spool), error)
            return
        if Outcome.UNAVAILABLE not in outcomes:
            if self._availability.away:
                log.warning("the database is back, %d detections to store", len(self._spool))
            # Before the spool: a full disk takes not even deletions, but the database is there.
            self._availability.found()
        if fault:
            raise fault
        results = dict(zip((number for number, _ in rows), outcomes, strict=True))
        self._spool.set_aside([n for n, how in results.items() if how is Outcome.REJECTED])
        self._spool.remove([n for n, how in results.items() if how is not Outcome.UNAVAILABLE])

    def _oldest(self) -> tuple[list[tuple[int, Document]], Exception | None]:
        """Return what waits longest, or why that cannot be read; the database may be there."""
        try:
            return self._spool.oldest(GROUP), None
        except Exception as error:
            return [], error
