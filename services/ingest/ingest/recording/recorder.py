"""How detections get stored: in groups in the database, and in the spool while that is away."""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from common.erasures import Erasures
from common.schema import BEACONS
from ingest.batcher import Batcher
from ingest.errors import StoreUnavailable
from ingest.recording.detection_tally import DetectionTally
from ingest.recording.outcome import Outcome, PartlyStored
from ingest.recording.spools import Spools
from ingest.storage.database.availability import Availability
from ingest.storage.database.client import time_limit
from ingest.storage.detections.documents import Document, received_seconds
from ingest.storage.detections.inserts import Inserts, Stored
from ingest.storage.detections.loop_inserts import LoopInserts
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
        loop_inserts: LoopInserts,
        directory: Directory,
        spools: Spools,
        erasures: Callable[[], Erasures],
        seconds: float,
    ) -> None:
        """`seconds`: what the database may take for a group, with all that is asked for it."""
        self._erasures = erasures
        self._seconds = seconds
        self._availability = availability
        self._inserts = inserts
        self._loop_inserts = loop_inserts
        self._loop: asyncio.AbstractEventLoop | None = None
        self._directory = directory
        self._spools = spools
        self.tally = DetectionTally()
        self._pool = ThreadPoolExecutor(1, "recorder")
        self._batcher: Batcher[Request, list[Outcome]]
        self._batcher = Batcher(self._counted, self._pool, limit=GROUP, size=len, gather=True)

    def run_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on store from an event loop; the thread does what is more than that."""
        self._loop = loop
        self._batcher.run_in(loop, self._counted_in_loop)

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
        if self._loop:
            # Where the loop has ended, its connection has with it.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._loop_inserts.close)

    def submit(self, documents: Request) -> "asyncio.Future[list[Outcome]]":
        """Store durably, in one group with what other requests bring; tell what became of each.

        PartlyStored, StoreUnavailable: nothing may be promised of some, or of any of them.
        """
        return self._batcher.submit(documents)

    def record(self, documents: Request) -> list[Outcome]:
        """Do the same as `submit` for a thread."""
        return self._batcher.call(documents)

    def _counted(self, requests: list[Request]) -> list[Result]:
        results = self.store(requests)
        self.tally.count(requests, results)
        return results

    async def _counted_in_loop(self, requests: list[Request]) -> list[Result]:
        results = await self.store_in_loop(requests)
        self.tally.count(requests, results)
        return results

    def store(self, requests: list[Request], until: float = math.inf) -> list[Result]:
        """Store the detections of several requests at once, or put them into the spool in time.

        A shard that has just died is met more than once: by the directory, the insert, a new stamp.
        `until`: when the database is to have answered, by `time.monotonic`, if that is sooner.
        """
        with time_limit(min(self._seconds, until - time.monotonic())):
            return self._store(requests)

    async def store_in_loop(self, requests: list[Request]) -> list[Result]:
        """Do the same as `store` in the event loop; all but plain success is the thread's."""
        inserts, until = self._loop_inserts, time.monotonic() + self._seconds
        documents = _all(requests)
        try:
            if not await self._is_ready(documents):
                return await self._in_thread(self._store_and_lend, requests, until)
            sent = await inserts.send(documents, until - time.monotonic())
        except StoreUnavailable as error:
            self._availability.lost(error)
            return await self._in_thread(self._queue, requests)
        except Exception:  # one of them cannot be sent: the thread finds out which
            return await self._in_thread(self.store, requests, until)
        if sent.is_plain:
            return [[Outcome.STORED] * len(request) for request in requests]

        def finish() -> list[Outcome]:
            with time_limit(until - time.monotonic()):
                stored = self._inserts.finish(documents, sent.written, is_close=sent.is_close)
            return self._outcomes(documents, stored)

        return await self._in_thread(self._results, requests, finish)

    async def _in_thread(
        self, work: Callable[..., list[Result]], *arguments: object
    ) -> list[Result]:
        loop = asyncio.get_running_loop()
        try:
            done = loop.run_in_executor(self._pool, work, *arguments)
        except RuntimeError as error:  # the pool has ended
            raise StoreUnavailable(f"the service ends: {error}") from None
        return await done

    def _store_and_lend(self, requests: list[Request], until: float) -> list[Result]:
        """Store, and then, when nobody waits for that any more, open the loop's connection."""
        results = self.store(requests, until)
        if self._loop and self._loop_inserts.wants_connection and not self._availability.degraded:
            with contextlib.suppress(RuntimeError):  # the pool has ended
                self._pool.submit(self._loop_inserts.lend, self._loop)
        return results

    async def _is_ready(self, documents: list[Document]) -> bool:
        """Give those a place that came without one; tell whether the loop can store them all.

        Raises StoreUnavailable.
        """
        inserts = self._loop_inserts
        is_known = not self._availability.degraded and inserts.can_take(documents)
        if not is_known or any(self._are_gone(documents)):
            return False
        if any(document["level"] is None for document in documents):
            snapshot = self._directory.fresh()
            if snapshot is None:
                revision = await inserts.revision(BEACONS, self._seconds)
                snapshot = self._directory.note_revision(revision)
            if snapshot is None:
                return False
            _fill_in(snapshot.places, documents)
        return True

    def _store(self, requests: list[Request]) -> list[Result]:
        try:
            self._availability.check_reachable()
        except StoreUnavailable:
            return self._queue(requests)
        return self._results(requests, lambda: self.commit_reachable(_all(requests)))

    def _results(
        self, requests: list[Request], commit: Callable[[], list[Outcome]]
    ) -> list[Result]:
        """Return what became of each request once all are committed, or wait in the spool."""
        try:
            outcomes = commit()
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

        What came before its person was forgotten is gone, as if it had been stored in time.
        Raises StoreUnavailable: any of them may be stored or not. Once more does no harm.
        """
        are_gone = self._are_gone(documents)
        if not any(are_gone):
            return self._commit(documents)
        pairs = zip(documents, are_gone, strict=True)
        kept = [document for document, is_gone in pairs if not is_gone]
        outcomes = iter(self._commit(kept) if kept else ())
        return [Outcome.STORED if is_gone else next(outcomes) for is_gone in are_gone]

    def _are_gone(self, documents: list[Document]) -> list[bool]:
        """Tell of each whether its person was forgotten since it came; empty: nobody ever was."""
        erasures = self._erasures()
        if not erasures.times:
            return []
        return [
            erasures.covers(document["staff_id"], received_seconds(document))
            for document in documents
        ]

    def _commit(self, documents: list[Document]) -> list[Outcome]:
        self._fill_in_places(documents)
        return self._outcomes(documents, self._inserts.store(documents))

    def _outcomes(self, documents: list[Document], stored: Stored) -> list[Outcome]:
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
            _fill_in(cached.places, _all(requests))
        try:
            self._spools.own.append(_all(requests))
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


def _all(requests: list[Request]) -> list[Document]:
    return [document for request in requests for document in request]


def _fill_in(places: Mapping[str, Place], documents: list[Document]) -> None:
    for document in documents:
        if document["level"] is None:
            document["level"], document["location"] = places.get(document["mac"], UNKNOWN)
