"""Storing detections, each with a stamp that is close to its commit."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from bson import ObjectId
from pymongo.collection import Collection

from ingest.errors import StoreUnavailable
from ingest.rules.detection_identity import REUSED_SECONDS, is_reused, next_id
from ingest.storage.database.client import time_limit
from ingest.storage.database.driver import DUPLICATE_KEY, Written, cluster_time, command, write
from ingest.storage.detections.documents import Document, is_timeless, key_bytes, unix_seconds
from ingest.storage.detections.stamps import NEW, RENEWED, STAMP, WRITE_SECONDS, Clock
from ingest.storage.sealed.border import Border
from ingest.storage.sealed.repeats import SealedRepeats
from ingest.storage.sealed.sealed import NAMED_SECONDS

# Codes with which MongoDB refuses a document for what it is: bad value, failed to parse, type
# mismatch, invalid BSON, dollar-prefixed and empty field names, failed validation, too large.
REFUSED = frozenset({2, 9, 14, 22, 52, 56, 121, 10334})

# How many names are looked up at once for a detection whose first name is taken by another, and of
# how many detections: a buggy phone's 500 would take 10 MiB.
NAMES, NAMED_AT_ONCE = 50, 20
# What a look into blocks may take: whoever waits is promised an answer, also with a dead shard.
LOOK_SECONDS = 1.0
# By how much our clock may be behind the database's, by which it is sealed.
CLOCK_SECONDS = 1800


class Stored(NamedTuple):
    """What became of documents, by position: those in none of the three were stored."""

    repeated: set[int]
    refused: dict[int, str]
    failed: dict[int, str]  # on one shard, say; they may be stored or not


class Inserts:
    """Stores detections."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff
        self._clock = Clock()
        self._sealed = SealedRepeats(staff)
        self._border = Border(staff.database)

    def store(self, documents: list[Document]) -> Stored:
        """Store documents durably, and so that every reader finds them.

        Raises StoreUnavailable: any of them may be stored or not. The same `_id` again does no
        harm.
        """
        sealed = self._sealed_of(documents)
        if not sealed:
            return self._insert(documents)
        places = [n for n in range(len(documents)) if n not in sealed]
        rest = [documents[n] for n in places]
        stored = self._insert(rest) if rest else Stored(set(), {}, {})
        return Stored(
            sealed | {places[n] for n in stored.repeated},
            {places[n]: why for n, why in stored.refused.items()},
            {places[n]: why for n, why in stored.failed.items()},
        )

    def _sealed_of(self, documents: list[Document]) -> set[int]:
        """Return the positions of those whose first copy is in a block, and maybe no row any more.

        Who stores what is heard now asks nobody. Where blocks cannot be read in time those whose
        names hold their times are stored: what is a row and in a block is one detection, though it
        was answered as a new one. Raises StoreUnavailable: of others nobody would know that.
        """
        border, named = self._borders()
        times = [document["timestamp"] for document in documents]
        old = [n for n, timestamp in enumerate(times) if timestamp < max(border, named)]
        if not old:
            return set()
        timeless = [n for n in old if is_timeless(documents[n])]
        timed = set(old).difference(timeless)
        sealed: set[int] = set()
        with (
            suppress(StoreUnavailable),
            time_limit(LOOK_SECONDS),
        ):  # what is found until then counts
            sealed.update(self._repeats(documents, [n for n in timed if times[n] < border]))
        sealed.update(self._repeats(documents, [n for n in timeless if times[n] < named]))
        return sealed

    def _repeats(self, documents: list[Document], positions: list[int]) -> Iterator[int]:
        for n in self._sealed.find([documents[position] for position in positions]):
            yield positions[n]

    def are_recent(self, documents: list[Document]) -> bool:
        """Tell, at once, whether no first copy of these can be in a block alone."""
        recent = max(self._borders())
        return all(document["timestamp"] >= recent for document in documents)

    def _borders(self) -> tuple[float, float]:
        """Return from when on first copies are rows: of names with a time, and of those without."""
        border = self._border.known()
        # Of a name without a time the first copy may be so much older; it is a row for some hours.
        named = min(border, time.time() - NAMED_SECONDS + CLOCK_SECONDS) + REUSED_SECONDS
        return border, named

    def _insert(self, documents: list[Document]) -> Stored:
        begun = self._clock.begin()
        written = write(self._staff, "insert", {"documents": stamped(documents)})
        return self.finish(documents, written, is_close=self._clock.is_close(begun, written.at))

    def finish(self, documents: list[Document], written: Written, *, is_close: bool) -> Stored:
        """Do what is left to do of documents that were sent to be stored.

        Raises StoreUnavailable: any of them may be stored or not.
        """
        stored = Stored(set(), {}, {})
        for position, (code, reason) in written.failed.items():
            if code == DUPLICATE_KEY:
                stored.repeated.add(position)
            else:
                (stored.refused if code in REFUSED else stored.failed)[position] = reason
        if not is_close:
            self.renew([one for n, one in enumerate(documents) if n not in written.failed])
        if stored.repeated:
            stored = self._settle(documents, stored)
        return stored

    def _settle(self, documents: list[Document], stored: Stored) -> Stored:
        """Stamp first copies of repeats again where needed; store what is none under another name.

        Nobody waited for the attempt that stored a first copy, so it may have been committed long
        after its stamp. It was committed before now: if the stamp is not old, the commit was close.
        """
        repeated = [documents[position] for position in stored.repeated]
        copies, now = self._stored(repeated)
        reused = [n for n in stored.repeated if _is_another(documents[n], copies)]
        others = [documents[n] for n in stored.repeated if n not in reused]
        self.renew(
            [document for document in others if not _is_sure(copies.get(document["_id"]), now)]
        )
        if not reused:
            return stored
        renamed = [documents[n] for n in reused]
        for first in range(0, len(renamed), NAMED_AT_ONCE):
            self._rename(renamed[first : first + NAMED_AT_ONCE])
        again = self.store(renamed)
        return Stored(
            stored.repeated.difference(reused) | {reused[n] for n in again.repeated},
            stored.refused | {reused[n]: why for n, why in again.refused.items()},
            stored.failed | {reused[n]: why for n, why in again.failed.items()},
        )

    def _rename(self, documents: list[Document]) -> None:
        """Give each the first of its further names that is free, or has its first copy."""
        names: dict[int, list[ObjectId]] = {}
        for n, document in enumerate(documents):
            name = key_bytes(document)
            names[n] = [ObjectId(name := next_id(name)) for _ in range(NAMES)]
        asked = [d | {"_id": name} for n, d in enumerate(documents) for name in names[n]]
        taken, _ = self._stored(asked)
        for n, document in enumerate(documents):
            for document["_id"] in names[n]:  # the last one leads on
                if not _is_another(document, taken):
                    break

    def _stored(self, documents: list[Document]) -> tuple[dict[ObjectId, Document], int]:
        """Return what is stored under their names, and the database's time, in seconds."""
        find: Document = {"filter": _named(documents), "projection": {STAMP: 1, "timestamp": 1}}
        find |= {"singleBatch": True, "batchSize": len(documents) + 1}
        reply = command(self._staff, "find", find | {"readConcern": {"level": "majority"}})
        return {
            document["_id"]: document for document in reply["cursor"]["firstBatch"]
        }, cluster_time(reply).time

    def renew(self, documents: list[Document]) -> None:
        """Stamp stored documents anew, also those of older releases.

        Raises StoreUnavailable: some may be. With the time of a commit that somebody waits for.
        """
        if not documents:
            return
        update = {"q": _named(documents), "u": RENEWED, "multi": True}
        for _ in range(2):  # the first command after a while is never close
            begun = self._clock.begin()
            written = write(self._staff, "update", {"updates": [update]})
            if written.failed:
                raise StoreUnavailable(str(written.failed))
            if self._clock.is_close(begun, written.at):
                return
        raise StoreUnavailable("the database's clock was set, or it is too slow")


def stamped(documents: list[Document]) -> list[Document]:
    """Return the same documents, into which MongoDB will write its time."""
    for document in documents:
        document[STAMP] = NEW
    return documents


def _named(documents: list[Document]) -> Document:
    ids: list[ObjectId] = [document["_id"] for document in documents]
    staff_ids = list({document.get("staff_id") for document in documents})  # a copy may lack them
    return {"_id": {"$in": ids}, "staff_id": {"$in": staff_ids}}


def _is_another(document: Document, stored: Mapping[ObjectId, Document]) -> bool:
    first = stored.get(document["_id"])
    return first is not None and is_reused(
        unix_seconds(first.get("timestamp")), document["timestamp"]
    )


def _is_sure(first: Document | None, now: int) -> bool:
    return first is not None and STAMP in first and now - first[STAMP].time < WRITE_SECONDS
