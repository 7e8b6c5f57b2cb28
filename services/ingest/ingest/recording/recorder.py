"""How detections get stored: in groups in the database, and in the spool while that is away."""

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from ingest.batcher import Batcher
from ingest.errors import StoreUnavailable
from ingest.recording.outcome import Outcome, PartlyStored
from ingest.recording.spools import Spools
from ingest.storage.database.availability import Availability
from ingest.storage.database.client import time_limit
from ingest.storage.detections.documents import Document
from ingest.storage.detections.inserts import Inserts
from ingest.storage.directory.directory import UNKNOWN, Directory, Place

log = logging.getLogger(__name__)

# How many detections go to MongoDB in one command.
GROUP = 500

# The detections of one request, and what became of each or why nothing may be promised.
Request = list[Document]
Result = list[Outcome] | Exception


class Recorder:
    """Stores detections; what has to wait goes to the spool, which `Drain` stores in the end."""

    def __init__(
        self,
        availability: Availability,
        inserts: Inserts,
        directory: Directory,
        spools: Spools,
        seconds: float,
    ) -> None:
        """`seconds`: what the database may take for a group, with all that is asked for it."""
        self._seconds = seconds
        self._availability = availability
        self._inserts = inserts
        self._directory = directory
        self._spools = spools
        self._pool = ThreadPoolExecutor(1, "recorder")
        self._batcher: Batcher[Request, list[Outcome]]
        self._batcher = Batcher(self.store, self._pool, limit=GROUP, size=len, gather=True)

    @property
    def queued(self) -> int:
        """Return how many detections wait in the spool, and in those that were adopted."""
        return self._spools.queued

    @property
    def set_aside(self) -> int:
        """Return how many detections, and spools whole, were damaged or refused and set aside."""
        return self._spools.set_aside

    def close(self) -> None:
        """End the thread, when what is under way is stored; whoever still waits gets an error."""
        self._pool.shutdown()

    async def submit(self, documents: Request) -> list[Outcome]:
        """Store durably, in one group with what other requests bring; return what became of each.

        PartlyStored, StoreUnavailable: nothing may be promised of some, or of any of them.
        """
        return await self._batcher.submit(documents)

    def record(self, documents: Request) -> list[Outcome]:
        """Do the same as `submit` for a thread."""
        return self._batcher.call(documents)

    def store(self, requests: list[Request]) -> list[Result]:
        """Store the detections of several requests at once, or put them into the spool in time.

        A shard that has just died is met more than once: by the directory, the insert, a new stamp.
        """
        with time_limit(self._seconds):
            return self._store(requests)

    def _store(self, requests: list[Request]) -> list[Result]:
        try:
            self._availability.check_reachable()
        except StoreUnavailable:
            return self._queue(requests)
        try:
            documents = [document for request in requests for document in request]
            outcomes = self.commit_reachable(documents)
            remaining = iter(outcomes)
            results = [list(islice(remaining, len(request))) for request in requests]
            if Outcome.UNAVAILABLE in outcomes:
                return self._queue_rest(requests, results)
            return list(results)
        except StoreUnavailable as error:
            self._availability.lost(error)
            return self._queue(requests)
        except Exception:
            if len(requests) == 1:
                raise
            log.exception("%d requests are stored one by one", len(requests))
            return [result for request in requests for result in self._store_alone(request)]

    def commit_reachable(self, documents: list[Document]) -> list[Outcome]:
        """Do the same as `commit`; those of people whose shard may not answer are UNAVAILABLE.

        So nobody waits for a shard that is known to be dead, nor for the directory: all shards have
        a part of it.
        """
        if not self._availability.degraded:
            return self.commit(documents)
        places = self._directory.cached()
        reachable = [
            places is not None and self._availability.reachable(document["staff_id"])
            for document in documents
        ]
        storable = [one for one, is_here in zip(documents, reachable, strict=True) if is_here]
        outcomes = iter(self.commit(storable) if storable else ())
        return [next(outcomes) if is_here else Outcome.UNAVAILABLE for is_here in reachable]

    def commit(self, documents: list[Document]) -> list[Outcome]:
        """Store documents; what one shard did not take is UNAVAILABLE.

        Raises StoreUnavailable: any of them may be stored or not. Once more does no harm.
        """
        self._fill_in_places(documents)
        stored = self._inserts.store(documents)
        outcomes = [Outcome.STORED] * len(documents)
        for position in stored.repeated:
            outcomes[position] = Outcome.DUPLICATE
        for position, reason in stored.refused.items():
            outcomes[position] = Outcome.REJECTED
            log.error("MongoDB refuses detection %s: %s", documents[position]["_id"], reason)
        for position in stored.failed:
            outcomes[position] = Outcome.UNAVAILABLE
        if stored.failed:
            self._availability.lost(next(iter(stored.failed.values())))
        return outcomes

    def _fill_in_places(self, documents: list[Document]) -> None:
        """Give those a place that came without one.

        Raises StoreUnavailable: the directory is unknown.
        """
        if any(document["level"] is None for document in documents):
            # That which tells whether the directory has changed may be the dead shard.
            cached = self._directory.cached() if self._availability.degraded else None
            _fill_in((cached or self._directory.current()).places, documents)

    def _store_alone(self, request: Request) -> list[Result]:
        """Store one request of a group that failed by no fault of the database."""
        try:
            return self.store([request])
        except Exception as error:
            return [error]

    def _queue(self, requests: list[Request]) -> list[Result]:
        """Put a group into the spool in one transaction, or as many requests as fit, one by one."""
        results: list[Result] = []
        cached = self._directory.cached()
        if cached:  # else each gets its place when it is stored
            _fill_in(cached.places, [document for request in requests for document in request])
        try:
            self._spools.own.append([document for request in requests for document in request])
            results = [[Outcome.QUEUED] * len(request) for request in requests]
        except StoreUnavailable as error:
            if len(requests) > 1:
                results = [result for request in requests for result in self._queue([request])]
            else:
                results = [error]
        finally:
            self._availability.drain_wanted.set()
        return results

    def _queue_rest(self, requests: list[Request], stored: list[list[Outcome]]) -> list[Result]:
        """Put what a shard did not take into the spool; what does not fit there fails alone."""
        rests = [
            [one for one, how in zip(request, outcomes, strict=True) if how is Outcome.UNAVAILABLE]
            for request, outcomes in zip(requests, stored, strict=True)
        ]
        queued = iter(self._queue([rest for rest in rests if rest]))
        results: list[Result] = []
        for outcomes, rest in zip(stored, rests, strict=True):
            if not rest:
                results.append(outcomes)
            elif not isinstance(failure := next(queued), Exception):
                waits = {Outcome.UNAVAILABLE: Outcome.QUEUED}
                results.append([waits.get(how, how) for how in outcomes])
            else:
                partly = len(rest) < len(outcomes)
                results.append(PartlyStored(outcomes) if partly else failure)
        return results


def _fill_in(places: Mapping[str, Place], documents: list[Document]) -> None:
    for document in documents:
        if document["level"] is None:
            document["level"], document["location"] = places.get(document["mac"], UNKNOWN)
