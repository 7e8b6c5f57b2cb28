"""The thread that stores what waits in the spools, as soon as it can be stored."""

import logging
import time

from ingest.errors import StoreUnavailable
from ingest.recording.forgetting import Forgetful
from ingest.recording.outcome import Outcome
from ingest.recording.recorder import GROUP, Recorder
from ingest.recording.spool import Spool
from ingest.recording.spools import LOOK_SECONDS, Spools
from ingest.storage.database.availability import Availability
from ingest.tasks.repeated import Repeated, Rest

log = logging.getLogger(__name__)

# How soon a database is tried again that does not answer, or not with all shards.
RETRY_SECONDS = 0.5
# Rest between two groups of the spool, so that the backlog leaves room for what comes in.
REST_SECONDS = 0.05
# And after a spool's own file failed.
FAULT_REST_SECONDS = 2.0


class Drain:
    """Stores the oldest detections of the spools first, a group at a time.

    While a shard is away it passes over those of its people: nothing behind them waits for them.
    Which of somebody's detections is stored first does not matter: their names and times decide.
    """

    def __init__(
        self,
        availability: Availability,
        recorder: Recorder,
        spools: Spools,
        forgetful: Forgetful,
    ) -> None:
        self._availability = availability
        self._recorder = recorder
        self._spools = spools
        self._forgetful = forgetful
        self._retry_at = 0.0
        self._rounds = Repeated(
            "drain",
            self._look,
            "the spools are not looked after",
            RETRY_SECONDS,
            wanted=availability.drain_wanted,
        )
        self._rounds.start()

    def close(self) -> None:
        """End the thread; what waits in the spools waits for the next start."""
        self._rounds.close()
        self._rounds.join()

    def _look(self) -> Rest:
        try:
            self._spools.look()
        except OSError:
            log.exception("no spools are adopted")
        self._forgetful.look()
        if self._availability.degraded or not self._spools.empty:
            return Rest(self._round())
        return Rest(0, LOOK_SECONDS)

    def _round(self) -> float:
        """Store a group of each spool, of those people that are reachable; return how to rest."""
        availability = self._availability
        everybody = not availability.degraded
        if not everybody and (began := time.monotonic()) >= self._retry_at:
            everybody = availability.everything_answers()
            if everybody or availability.somebody_is_back():
                self._spools.rewind()
            took = time.monotonic() - began  # what can be stored gets as much time
            self._retry_at = time.monotonic() + max(RETRY_SECONDS, took)
        if availability.away:
            return RETRY_SECONDS
        rest = REST_SECONDS if everybody else RETRY_SECONDS
        for spool in self._spools:
            try:
                if self.store_group(spool, everybody=everybody):
                    rest = min(rest, REST_SECONDS)
            except StoreUnavailable as error:
                availability.lost(error)
                return RETRY_SECONDS
            except Exception:
                log.exception("%d detections stay in a spool", len(spool))
                rest = FAULT_REST_SECONDS
        if everybody:
            availability.note_success()
        return rest

    def store_group(self, spool: Spool, *, everybody: bool) -> bool:
        """Store the oldest detections, of `everybody` or who is reachable; tell if more may wait.

        Those that stay do so for a reason.
        Raises StoreUnavailable: any of them may be stored or not.
        """
        rows = spool.oldest(GROUP)
        documents = [document for _, document in rows if document is not None]
        outcomes: list[Outcome] = []
        if documents and everybody:
            outcomes = self._recorder.commit(documents)
        elif documents:
            self._availability.ask_for({document["staff_id"] for document in documents})
            outcomes = self._recorder.commit_reachable(documents)
        if rows and not everybody:
            spool.skip(rows[-1][0])
        remaining = iter(outcomes)
        results = {
            number: Outcome.REJECTED if document is None else next(remaining)
            for number, document in rows
        }
        spool.put_aside([n for n, how in results.items() if how is Outcome.REJECTED])
        spool.remove([n for n, how in results.items() if how is not Outcome.UNAVAILABLE])
        if rows and len(spool) == 0:  # ./scripts/logs looks for it
            log.warning("nothing waits in the spool any more")
        return len(rows) == GROUP
