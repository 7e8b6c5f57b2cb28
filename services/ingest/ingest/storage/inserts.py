"""Storing detections, each with a stamp that is close to its commit."""

from typing import NamedTuple

from bson import ObjectId
from pymongo.collection import Collection

from ingest.errors import StoreUnavailable
from ingest.storage.documents import Document
from ingest.storage.driver import DUPLICATE_KEY, command, told, write
from ingest.storage.stamps import NEW, RENEWED, STAMP, WRITE_SECONDS, Clock

# Codes with which MongoDB refuses a document for what it is: bad value, failed to parse, type
# mismatch, invalid BSON, dollar-prefixed and empty field names, failed validation, too large.
REFUSED = frozenset({2, 9, 14, 22, 52, 56, 121, 10334})


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

    def store(self, documents: list[Document]) -> Stored:
        """Store documents durably, and so that every reader finds them.

        StoreUnavailable: any of them may be stored or not. The same `_id` again does no harm.
        """
        for document in documents:
            document[STAMP] = NEW
        begun = self._clock.begin()
        written = write(self._staff, "insert", {"documents": documents})
        is_close = self._clock.is_close(begun, written.at)
        stored = Stored(set(), {}, {})
        for position, (code, reason) in written.failed.items():
            if code == DUPLICATE_KEY:
                stored.repeated.add(position)
            else:
                (stored.refused if code in REFUSED else stored.failed)[position] = reason
        if not is_close:
            self.renew([one for n, one in enumerate(documents) if n not in written.failed])
        if stored.repeated:
            self.renew(self._unsure([documents[position] for position in stored.repeated]))
        return stored

    def _unsure(self, repeated: list[Document]) -> list[Document]:
        """Return those whose first copy may have been committed long after its stamp.

        Nobody waited for the attempt that stored it. It was committed before now: if the stamp is
        not old, the commit was close.
        """
        find: Document = {"filter": _named(repeated), "projection": {STAMP: 1}}
        find |= {"singleBatch": True, "batchSize": len(repeated) + 1}
        reply = command(self._staff, "find", find | {"readConcern": {"level": "majority"}})
        now = told(reply).time
        sure = {
            one["_id"]
            for one in reply["cursor"]["firstBatch"]
            if STAMP in one and now - one[STAMP].time < WRITE_SECONDS
        }
        return [one for one in repeated if one["_id"] not in sure]

    def renew(self, documents: list[Document]) -> None:
        """Stamp stored documents anew, also those of older releases. StoreUnavailable: some may be.

        With the time of a commit that somebody waits for.
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


def _named(documents: list[Document]) -> Document:
    ids: list[ObjectId] = [document["_id"] for document in documents]
    staff_ids = list({document.get("staff_id") for document in documents})  # a copy may lack them
    return {"_id": {"$in": ids}, "staff_id": {"$in": staff_ids}}
