"""The collection `latest`: one small document per staff member, changed by every commit.

Its `version` tells a reader whether a cached history is still all of it, and its `changes` from
which timestamp on to read again when it is not. Each commit raises the version by a step of its
own, chosen at random: a database that is restored under running services comes to none of the
versions again that they know. So a version is a name, and how many commits lie between two is
found by going back the steps.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import bson
from bson import ObjectId, Timestamp
from bson.raw_bson import RawBSONDocument
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.storage.client import time_limit
from ingest.storage.directory import Place
from ingest.storage.documents import Detection, Document, detection
from ingest.storage.driver import DUPLICATE_KEY, domain_errors, write

# How many of the newest detections each document shows.
RECENT = 8
# How many commits a reader may be behind before it has to read everything again.
CHANGES = 32
# The steps of versions. Longer than CHANGES: for a service of the release before, which takes them
# for counts, a reader is then too far behind. Short enough for 8,000 million commits.
STEPS = (2 * CHANGES, 2**31 - 1)
# A change is the timestamp and, above these bits, the step. A later one is taken for this last one:
# to read more again does no harm.
_SINCE_BITS = 32
_LAST = 2**_SINCE_BITS - 1
# How many of them are corrected with one command.
PEOPLE = 500
# What of each.
SHOWN = ("timestamp", "received_at", "mac", "rssi", "level", "location")

_Change = tuple[StaffId, dict[str, Any]]  # whose, and the constants of the update


class Version(NamedTuple):
    """A state of a staff member's detections, and the commits that led to it, newest last."""

    number: int
    changes: list[int]  # of each commit, packed: from which timestamp on, and the step
    read_at: Timestamp | None = None  # the database's time: rows have to be read as of later

    def changed_since(self, number: int) -> int | None:
        """Return the lowest timestamp that changed after version `number`, None if not known."""
        lowest = _LAST
        before = self.number
        for change in reversed(self.changes):
            lowest = min(lowest, change & _LAST)
            before -= change >> _SINCE_BITS or 1  # the release before counted
            if before <= number:
                return lowest if before == number else None
        return None


class Entry(NamedTuple):
    """One staff member: the version, and the newest detections, newest first, at most RECENT."""

    staff_id: StaffId
    version: int
    recent: list[Detection]


class Latest:
    """Owns the collection `latest`, sharded on a hash of `_id`, the staff id."""

    def __init__(self, latest: Collection[dict[str, Any]]) -> None:
        # What a majority has is never rolled back: a version never stands for two histories.
        self._latest = latest.with_options(read_concern=ReadConcern("majority"))

    def record_changes(self, documents: Iterable[Document]) -> dict[StaffId, str]:
        """Raise the versions for documents that were just stored, before a client hears of it.

        Returns for whom their shard did not, and why. StoreUnavailable: the versions may have
        grown or not. Once more does no harm.
        """
        groups: defaultdict[StaffId, list[Document]] = defaultdict(list)
        for document in documents:
            groups[document["staff_id"]].append(document)
        return self._write([_change(staff_id, group) for staff_id, group in groups.items()])

    def correct(self, staff_ids: Sequence[StaffId], mac: str, places: Sequence[Place]) -> None:
        """Show a beacon's detections that have none of these places at the first.

        And make every reader read these staff members' histories again, after an edit in place:
        call it once that is acknowledged, and before the client hears of it. StoreUnavailable:
        call it again.
        """
        allowed = [one._asdict() for one in places]
        constants = {"mac": mac, "place": allowed[0], "allowed": allowed}
        for first in range(0, len(staff_ids), PEOPLE):
            some = {"_id": {"$in": staff_ids[first : first + PEOPLE]}}
            update = {"q": some, "u": _CORRECTION, "c": constants | _step(0), "multi": True}
            failed = write(self._latest, "update", {"updates": [update]})
            if failed:
                raise StoreUnavailable(str(failed))

    def versions(self, staff_ids: list[StaffId]) -> dict[StaffId, Version]:
        """Return where each staff member's history stands; those without detections are left out.

        What was acknowledged before the call is included.
        """
        query = {"_id": {"$in": staff_ids}}
        with domain_errors(), self._latest.database.client.start_session() as session:
            found = list(self._latest.find(query, {"version": 1, "changes": 1}, session=session))
            at = session.operation_time
        return {one["_id"]: Version(one["version"], one["changes"], at) for one in found}

    def not_shown(self, documents: list[Document]) -> list[Document]:
        """Return those of the documents that `recent` does not show."""
        shown = self.shown(list({document["staff_id"] for document in documents}))
        return [one for one in documents if one["_id"] not in shown.get(one["staff_id"], ())]

    def shown(self, staff_ids: list[StaffId]) -> dict[StaffId, set[ObjectId]]:
        """Return which detections are shown of each staff member."""
        found = self._read({"_id": {"$in": staff_ids}}, {"recent.id": 1})
        return {one["_id"]: {shown["id"] for shown in one["recent"]} for one in found}

    def answering(self, staff_ids: list[StaffId], seconds: float) -> set[StaffId]:
        """Return those whom a shard shows in time; those of a dead one are left out."""
        query = {"_id": {"$in": staff_ids}}
        with domain_errors(), time_limit(seconds):
            found = self._latest.find(query, {"_id": 1}, allow_partial_results=True)
            return {one["_id"] for one in found.batch_size(len(staff_ids) + 1)}

    def answers(self, staff_id: StaffId, seconds: float) -> bool:
        """Tell whether the shard of a staff member answers in time."""
        try:
            with domain_errors(), time_limit(seconds):
                self._latest.find_one({"_id": staff_id}, {"_id": 1})
        except StoreUnavailable:
            return False
        return True

    def everyone(self) -> Iterator[Entry]:
        """Yield every staff member of whom anything is shown."""
        for one in self._read({}, {"changes": 0}):
            if one["recent"]:
                who = {"staff_id": one["_id"]}
                recent = [detection(shown | who) for shown in one["recent"]]
                yield Entry(recent[0].staff_id, int(one["version"]), recent)

    def _read(self, query: dict[str, Any], fields: dict[str, int]) -> Iterator[dict[str, Any]]:
        with domain_errors():
            yield from self._latest.find(query, fields)

    def _write(self, changes: list[_Change]) -> dict[StaffId, str]:
        """Apply changes with one command; those that lost a race of two services once more."""
        wrong: dict[StaffId, str] = {}
        for _ in range(2):
            if not changes:
                break
            updates = [
                {"q": {"_id": staff_id}, "u": _UPDATE, "c": constants, "upsert": True}
                for staff_id, constants in changes
            ]
            failed = write(self._latest, "update", {"updates": updates})
            # Two services met somebody new at once: now the document is there.
            again = [changes[n] for n, (code, _) in failed.items() if code == DUPLICATE_KEY]
            wrong |= {
                changes[n][0]: why for n, (code, why) in failed.items() if code != DUPLICATE_KEY
            }
            changes = again
        return wrong | {staff_id: "not recorded in two attempts" for staff_id, _ in changes}


def _change(staff_id: StaffId, documents: list[Document]) -> _Change:
    since = min(document["timestamp"] for document in documents)
    if len(documents) > 1:
        newest = sorted(documents, key=itemgetter("timestamp"), reverse=True)
        by_id = {one["_id"]: one for one in newest[: 2 * RECENT]}  # a repeat may stand among them
        documents = list(by_id.values())[:RECENT]
    shown = [{"id": one["_id"]} | {name: one[name] for name in SHOWN} for one in documents]
    return staff_id, _step(since) | {"shown": shown}


def _step(since: int) -> dict[str, int]:
    """Return the constants of a commit that changed what is not before a timestamp."""
    step = random.randint(*STEPS)  # noqa: S311  # nobody gains by guessing it
    return {"step": step, "change": step << _SINCE_BITS | min(since, _LAST)}


# What every update does, by the constants of `_step`.
_CHANGES = {"$concatArrays": [{"$ifNull": ["$changes", []]}, ["$$change"]]}
_RAISED: dict[str, Any] = {
    # From the clock on (ms): versions of a document that was lost and made anew grow all the same.
    "version": {"$add": [{"$ifNull": ["$version", {"$toLong": "$$NOW"}]}, "$$step"]},
    "changes": {"$slice": [_CHANGES, -CHANGES]},
}


def _encoded(recent: Any) -> list[Any]:
    """Return an update that raises the version and changes what is shown.

    It is the same for all, and encoded once: what differs comes as constants.
    """
    return [RawBSONDocument(bson.encode({"$set": _RAISED | {"recent": recent}}))]


def _sorted_in() -> dict[str, Any]:
    """Return what is shown after a commit, by the constant `shown`."""
    others = {
        "$filter": {
            "input": {"$ifNull": ["$recent", []]},
            "cond": {"$not": [{"$in": ["$$this.id", "$$shown.id"]}]},
        }
    }
    in_order = {
        "$sortArray": {
            "input": {"$concatArrays": ["$$shown", others]},
            "sortBy": {"timestamp": -1, "id": -1},
        }
    }
    return {"$slice": [in_order, RECENT]}


def _corrected() -> dict[str, Any]:
    """Return what is shown after a correction, by its constants."""
    at = {"level": "$$this.level", "location": "$$this.location"}
    wrong = {"$and": [{"$eq": ["$$this.mac", "$$mac"]}, {"$not": {"$in": [at, "$$allowed"]}}]}
    moved = {"$mergeObjects": ["$$this", "$$place"]}
    return {"$map": {"input": "$recent", "in": {"$cond": [wrong, moved, "$$this"]}}}


_UPDATE = _encoded(_sorted_in())
_CORRECTION = _encoded(_corrected())
