"""The collection `latest`: one small document per staff member, changed by every commit.

Its `version` tells a reader whether a cached history is still all of it, and its `changes` from
which timestamp on to read again when it is not.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import bson
from bson import ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.storage.documents import Detection, Document, detection
from ingest.storage.driver import DUPLICATE_KEY, domain_errors, write

# How many of the newest detections each document shows.
RECENT = 8
# How many commits a reader may be behind before it has to read everything again.
CHANGES = 32
# Documents that the driver decodes at once: some 8 kB each.
BATCH = 100
# How many versions are read with one command: 16 MiB hold more.
MAX_READ = 200_000
# What of each.
SHOWN = ("timestamp", "received_at", "mac", "rssi", "level", "location")

_Change = tuple[StaffId, dict[str, Any]]  # whose, and the constants of the update


class Version(NamedTuple):
    """How often a staff member's detections changed, and from which timestamp on, newest last."""

    number: int
    changes: list[int]

    def changed_since(self, number: int) -> int | None:
        """Return the lowest timestamp that changed after version `number`, None if not known."""
        behind = self.number - number
        if not 0 < behind <= len(self.changes):
            return None
        return min(self.changes[-behind:])


class Entry(NamedTuple):
    """One staff member: the version, and the newest detections, newest first, at most RECENT.

    Of those who were heard on one level alone only the newest: no other could tell a level.
    """

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

    def rewrite(self, changed: Mapping[StaffId, list[Document]]) -> None:
        """Make every reader read these staff members' histories again, after an edit in place.

        Call it once the edit of `staff` is acknowledged, and before the client hears of it, with
        each one's newest documents (`Detections.newest`): they replace what is shown of them.
        StoreUnavailable: call it again.
        """
        failed = self._write([_change(staff_id, shown, 0) for staff_id, shown in changed.items()])
        if failed:
            raise StoreUnavailable(str(failed))

    def versions(self, staff_ids: list[StaffId]) -> dict[StaffId, Version]:
        """Return where each staff member's history stands; those without detections are left out.

        What was acknowledged before the call is included.
        """
        found = self._read({"_id": {"$in": staff_ids}}, {"version": 1, "changes": 1})
        return {one["_id"]: Version(one["version"], one["changes"]) for one in found}

    def not_shown(self, documents: list[Document]) -> list[Document]:
        """Return those of the documents that `recent` does not show."""
        shown = self.shown(list({document["staff_id"] for document in documents}))
        return [one for one in documents if one["_id"] not in shown.get(one["staff_id"], ())]

    def shown(self, staff_ids: list[StaffId]) -> dict[StaffId, set[ObjectId]]:
        """Return which detections are shown of each staff member."""
        found = self._read({"_id": {"$in": staff_ids}}, {"recent.id": 1})
        return {one["_id"]: {shown["id"] for shown in one["recent"]} for one in found}

    def versions_there(self, staff_ids: list[StaffId]) -> tuple[dict[StaffId, Version], bool]:
        """Do the same for those whose shards answer; tell also whether all shards do.

        With a dead shard it takes all the time that it is given.
        """
        found, complete = self._read_there({"_id": {"$in": staff_ids}}, {"changes": 1})
        return {one["_id"]: Version(one["version"], one["changes"]) for one in found}, complete

    def every_version(self) -> tuple[list[StaffId], list[int]]:
        """Return everybody's staff id and version, in the same order.

        As two lists, which cost a quarter of what a document for each does.
        """
        lists: dict[str, Any] = {
            "_id": None,
            "staff_ids": {"$push": "$_id"},
            "versions": {"$push": "$version"},
        }
        with domain_errors():
            for one in self._latest.aggregate([{"$group": lists}]):
                return one["staff_ids"], one["versions"]
        return [], []

    def every_version_there(self) -> tuple[list[StaffId], list[int], bool]:
        """Do the same for those whose shards answer; tell also whether all shards do.

        With a dead shard it takes all the time that it is given.
        """
        found, complete = self._read_there({}, {})
        return [one["_id"] for one in found], [one["version"] for one in found], complete

    def entries(self, staff_ids: list[StaffId]) -> Iterator[Entry]:
        """Yield those of these staff members of whom anything is shown."""
        with domain_errors():
            found = self._latest.find({"_id": {"$in": staff_ids}}, {"changes": 0})
            for one in found.batch_size(BATCH):
                recent = one["recent"]
                if recent:
                    if all(other.get("level") == recent[0].get("level") for other in recent):
                        recent = recent[:1]
                    who = {"staff_id": one["_id"]}
                    recent = [detection(shown | who) for shown in recent]
                    yield Entry(recent[0].staff_id, int(one["version"]), recent)

    def _read_there(
        self, query: dict[str, Any], fields: dict[str, int]
    ) -> tuple[list[dict[str, Any]], bool]:
        """Read versions and these fields from the shards that answer; tell whether all did."""
        # As a command: the driver's cursors do not say whether a shard is missing.
        options: dict[str, Any] = {
            "singleBatch": True,
            "batchSize": MAX_READ,
            "allowPartialResults": True,
        }
        options |= {"readConcern": {"level": "majority"}}
        find = {"find": self._latest.name, "filter": query, "projection": fields | {"version": 1}}
        with domain_errors():
            cursor = self._latest.database.command(find | options)["cursor"]
        return cursor["firstBatch"], not cursor.get("partialResultsReturned")

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


def _change(staff_id: StaffId, documents: list[Document], since: int | None = None) -> _Change:
    if since is None:
        since = min(document["timestamp"] for document in documents)
    if len(documents) > 1:
        newest = sorted(documents, key=itemgetter("timestamp"), reverse=True)
        by_id = {one["_id"]: one for one in newest[: 2 * RECENT]}  # a repeat may stand among them
        documents = list(by_id.values())[:RECENT]
    shown = [{"id": one["_id"]} | {name: one[name] for name in SHOWN} for one in documents]
    return staff_id, {"since": since, "shown": shown}


def _update() -> list[Any]:
    """Return the update that adds one to the version and sorts in what is new.

    It is the same for all, and encoded once: what differs comes as constants.
    """
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
    changes = {"$concatArrays": [{"$ifNull": ["$changes", []]}, ["$$since"]]}
    change = {
        # From the clock on (ms): a document that was lost and made anew repeats no version.
        "version": {"$add": [{"$ifNull": ["$version", {"$toLong": "$$NOW"}]}, 1]},
        "changes": {"$slice": [changes, -CHANGES]},
        "recent": {"$slice": [in_order, RECENT]},
    }
    return [RawBSONDocument(bson.encode({"$set": change}))]


_UPDATE = _update()
