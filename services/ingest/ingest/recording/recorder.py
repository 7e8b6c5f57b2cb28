"""How detections get stored: in groups in the database, and in the spool while that is away."""

import enum
import logging
import threading
from itertools import islice

from ingest.errors import StoreUnavailable
from ingest.recording.spool import Spool
from ingest.storage.detections import Detections, Document
from ingest.storage.directory import Directory
from ingest.storage.latest import Latest

log = logging.getLogger(__name__)

# How many detections go to MongoDB in one command.
GROUP = 500
# How often the database is tried while it is away.
RETRY_SECONDS = 0.5
# How long a database that the driver has lost may take to answer. The gateway asks two services.
PROBE_SECONDS = 0.4
# The same before a long read, of a database that the driver has not lost: slow is not away.
READ_PROBE_SECONDS = 0.8
# Rest between two groups of the spool, so that the backlog leaves room for what comes in.
DRAIN_REST_SECONDS = 0.05
# And after the spool's own file failed.
FAULT_REST_SECONDS = 2.0


class Outcome(enum.StrEnum):
    """What became of a detection; the first three mean that it will not be lost."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    QUEUED = "queued"
    REJECTED = "rejected"  # MongoDB refuses this document, and would refuse it again
    UNAVAILABLE = "unavailable"  # nothing is promised of it


class PartlyUnavailable(StoreUnavailable):
    """A shard did not take some of a request's detections, nor did the spool."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__("a shard is away and the spool is full")
        self.outcomes = outcomes


class _Group:
    """Detections of requests that come while another group is being stored."""

    def __init__(self) -> None:
        self.members: list[list[Document]] = []
        self.size = 0
        self.settled = threading.Event()
        self.results: list[list[Outcome] | Exception] = []


class Recorder:
    """Stores detections, and sees to it that what had to wait is stored in the end."""

    def __init__(
        self, detections: Detections, latest: Latest, directory: Directory, spool: Spool
    ) -> None:
        self._detections = detections
        self._latest = latest
        self._directory = directory
        self._spool = spool
        self._joining = threading.Lock()
        self._open: _Group | None = None
        self._storing = threading.Lock()
        self._away = False
        self._work = threading.Event()
        self._closed = threading.Event()
        if not spool.empty:
            self._work.set()
        self._drain = threading.Thread(target=self._drain_for_ever, name="spool", daemon=True)
        self._drain.start()

    @property
    def away(self) -> bool:
        """Tell whether the database did not answer when it was last tried."""
        return self._away

    @property
    def queued(self) -> int:
        """Return how many detections wait in the spool."""
        return len(self._spool)

    def close(self) -> None:
        """End the thread that drains the spool; what waits there waits for the next start."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._work.set()
        self._drain.join()
        self._spool.close()

    def record(self, documents: list[Document]) -> list[Outcome]:
        """Store durably, together with what other requests bring; return what became of each.

        StoreUnavailable: nothing may be promised of any of them.
        """
        with self._joining:
            group = self._open
            leads = group is None or group.size + len(documents) > GROUP
            if group is None or leads:
                group = self._open = _Group()
            place = len(group.members)
            group.members.append(documents)
            group.size += len(documents)
        if leads:
            with self._storing:
                self._settle(group)
        else:
            group.settled.wait()
        result = group.results[place]
        if isinstance(result, Exception):
            raise result
        return result

    def check_reachable(self) -> None:
        """Raise StoreUnavailable, in under half a second, when the database is away."""
        if self._away:
            raise StoreUnavailable("the database is away")
        if not self._detections.server_known():
            try:  # it may be back, or a starved heartbeat was late: ask, but not for long
                self._detections.ping(PROBE_SECONDS)
            except StoreUnavailable as error:
                self._lost(error)
                raise

    def check_answers(self) -> None:
        """Raise StoreUnavailable, in under a second, also when a shard has just frozen.

        For what may itself take longer; until the driver sees the freeze it would take all of that.
        """
        self.check_reachable()
        self._detections.ping(READ_PROBE_SECONDS)

    def _settle(self, group: _Group) -> None:
        """Store what has joined the group; each member gets its outcomes or its error."""
        with self._joining:
            if self._open is group:
                self._open = None
        failure: Exception = StoreUnavailable("the service was interrupted")
        try:
            group.results = self.store(group.members)
        except Exception as error:
            log.exception("a group of %d detections failed", group.size)
            failure = error
        finally:
            group.results = group.results or [failure] * len(group.members)
            group.settled.set()

    def store(self, members: list[list[Document]]) -> list[list[Outcome] | Exception]:
        """Store the documents of several requests at once; each gets its outcomes or its error."""
        try:
            self.check_reachable()
        except StoreUnavailable:
            return self._queue(members)
        try:
            outcomes = self._commit([document for member in members for document in member])
            each = iter(outcomes)
            results = [list(islice(each, len(member))) for member in members]
            if Outcome.UNAVAILABLE in outcomes:
                return self._rest_queued(members, results)
            return list(results)
        except StoreUnavailable as error:
            self._lost(error)
            return self._queue(members)
        except Exception:
            if len(members) == 1:
                raise
            log.exception("%d requests are stored one by one", len(members))
            return [result for member in members for result in self._alone(member)]

    def _alone(self, member: list[Document]) -> list[list[Outcome] | Exception]:
        """Store one member of a group that failed by no fault of the database."""
        try:
            return self.store([member])
        except Exception as error:
            return [error]

    def _queue(self, members: list[list[Document]]) -> list[list[Outcome] | Exception]:
        """Put a group into the spool in one transaction, or member by member as far as it goes."""
        results: list[list[Outcome] | Exception] = []
        try:
            self._spool.append([document for member in members for document in member])
            results = [[Outcome.QUEUED] * len(member) for member in members]
        except StoreUnavailable as error:
            if len(members) > 1:
                results = [result for member in members for result in self._queue([member])]
            else:
                results = [error]
        finally:
            self._work.set()
        return results

    def _rest_queued(
        self, members: list[list[Document]], results: list[list[Outcome]]
    ) -> list[list[Outcome] | Exception]:
        """Put what a shard did not take into the spool; what does not fit there fails alone."""
        rests = [
            [one for one, how in zip(member, outcomes, strict=True) if how is Outcome.UNAVAILABLE]
            for member, outcomes in zip(members, results, strict=True)
        ]
        queued = iter(self._queue([rest for rest in rests if rest]))
        told: list[list[Outcome] | Exception] = []
        for outcomes, rest in zip(results, rests, strict=True):
            if not rest:
                told.append(outcomes)
            elif not isinstance(failure := next(queued), Exception):
                waits = {Outcome.UNAVAILABLE: Outcome.QUEUED}
                told.append([waits.get(how, how) for how in outcomes])
            else:
                some = len(rest) < len(outcomes)
                told.append(PartlyUnavailable(outcomes) if some else failure)
        return told

    def _commit(self, documents: list[Document]) -> list[Outcome]:
        """Store documents and note them in `latest`; what one shard did not take is UNAVAILABLE.

        StoreUnavailable: any of them may be stored or not. Once more does no harm.
        """
        for document in documents:
            if document["level"] is None:
                self._locate(document)
        stored = self._detections.store(documents)
        outcomes = [Outcome.STORED] * len(documents)
        if not any(stored):
            return self._noted(documents, documents, outcomes)
        for position in stored.repeated:
            outcomes[position] = Outcome.DUPLICATE
        for position, reason in stored.refused.items():
            outcomes[position] = Outcome.REJECTED
            log.error("MongoDB refuses detection %s: %s", documents[position]["_id"], reason)
        for position in stored.failed:
            outcomes[position] = Outcome.UNAVAILABLE
        there = [one for one, how in zip(documents, outcomes, strict=True) if how is Outcome.STORED]
        if stored.repeated:
            # The first try may have ended before it noted them, and a repeat may bring another
            # time than the one that is stored.
            there += self._detections.again([documents[position] for position in stored.repeated])
        if stored.failed:
            self._lost(StoreUnavailable(next(iter(stored.failed.values()))))
        return self._noted(there, documents, outcomes)

    def _noted(
        self, there: list[Document], documents: list[Document], outcomes: list[Outcome]
    ) -> list[Outcome]:
        """Note what is stored; nobody is told of a detection whose shard does not take the note."""
        failed = self._latest.bump(there)
        if not failed:
            return outcomes
        self._lost(StoreUnavailable(next(iter(failed.values()))))
        return [
            Outcome.UNAVAILABLE
            if one["staff_id"] in failed and how is not Outcome.REJECTED
            else how
            for one, how in zip(documents, outcomes, strict=True)
        ]

    def _lost(self, error: StoreUnavailable) -> None:
        if not self._away:
            log.warning("the database is away, detections go to the spool: %s", error)
        self._away = True
        self._work.set()

    def _drain_for_ever(self) -> None:
        while not self._closed.is_set():
            self._work.wait()
            self._work.clear()
            while (self._away or not self._spool.empty) and not self._closed.is_set():
                rest = DRAIN_REST_SECONDS
                try:
                    self._drain_group()
                except Exception:
                    log.exception("%d detections stay in the spool", len(self._spool))
                    rest = FAULT_REST_SECONDS
                self._closed.wait(RETRY_SECONDS if self._away else rest)

    def _drain_group(self) -> None:
        """Store the oldest detections of the spool; those that stay there do so for a reason."""
        rows, fault = self._oldest()
        try:
            if rows:
                outcomes = self._commit([document for _, document in rows])
            else:
                self._detections.ping(PROBE_SECONDS)
                outcomes = []
        except StoreUnavailable as error:
            self._away = True
            log.warning("%d detections wait for the database: %s", len(self._spool), error)
            return
        here = Outcome.UNAVAILABLE not in outcomes
        if here and self._away:
            log.warning("the database is back, %d detections to store", len(self._spool))
        # Before the spool: a full disk takes not even deletions, but the database is there.
        self._away = not here
        if fault:
            raise fault
        became = dict(zip((number for number, _ in rows), outcomes, strict=True))
        self._spool.set_aside([n for n, how in became.items() if how is Outcome.REJECTED])
        self._spool.remove([n for n, how in became.items() if how is not Outcome.UNAVAILABLE])

    def _oldest(self) -> tuple[list[tuple[int, Document]], Exception | None]:
        """Return what waits longest, or why that cannot be told; the database may be there."""
        try:
            return self._spool.oldest(GROUP), None
        except Exception as error:
            return [], error

    def _locate(self, document: Document) -> None:
        """Give a detection its place that came when not even the directory could be read."""
        document["level"], document["location"] = self._directory.locate(document["mac"])
