"""The collection `latest`: one small document per staff member, changed by every commit.

Its `version` tells a reader whether a cached history is still all of it, and its `changes` from
which timestamp on to read again when it is not. Each commit raises the version by a step of its
own, chosen at random: a database that is restored under running services comes to none of the
versions again that they know. So a version is a name, and how many commits lie between two is
found by going back the steps.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bson import ObjectId, Timestamp
from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.storage.client import time_limit
from ingest.storage.directory import Place
from ingest.storage.documents import Detection, Document, detection
from ingest.storage.driver import DUPLICATE_KEY, domain_errors, write
from ingest.storage.latest_updates import (
    CORRECTION,
    LAST,
    SINCE_BITS,
    UPDATE,
    Change,
    change,
    step,
)

# How many of them are corrected with one command.
PEOPLE = 500
# Documents that the driver decodes at once: some 8 kB each.
BATCH = 100
# How many versions are read with one command: 16 MiB hold more.
MAX_READ = 200_000
# What makes an entry. The database leaves out what tells no level: to decode it costs us more.
_LEVELS = {"$map": {"input": "$recent", "in": {"$ifNull": ["$$this.level", None]}}}
_ONE_LEVEL = {"$lte": [{"$size": {"$setUnion": [_LEVELS]}}, 1]}
_ENTRY = {
    "version": 1,
    "recent": {"$cond": [_ONE_LEVEL, {"$slice": ["$recent", 1]}, "$recent"]},
}


class Version(NamedTuple):
    """A state of a staff member's detections, and the commits that led to it, newest last."""

    number: int
    changes: list[int]  # of each commit, packed: from which timestamp on, and the step
    read_at: Timestamp | None = None  # the database's time: rows have to be read as of later

    def changed_since(self, number: int) -> int | None:
        """Return the lowest timestamp that changed after version `number`, None if not known."""
        lowest = LAST
        before = self.number
        for packed in reversed(self.changes):
            lowest = min(lowest, packed & LAST)
            before -= packed >> SINCE_BITS or 1  # the release before counted
            if before <= number:
                return lowest if before == number else None
        return None


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
        return self._write([change(staff_id, group) for staff_id, group in groups.items()])

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
            update = {"q": some, "u": CORRECTION, "c": constants | step(0), "multi": True}
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
        return _versions(found, at)

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

    def versions_there(self, staff_ids: list[StaffId]) -> tuple[dict[StaffId, Version], bool]:
        """Do the same for those whose shards answer; tell also whether all shards do.

        With a dead shard it takes all the time that it is given.
        """
        query = {"_id": {"$in": staff_ids}}
        with domain_errors(), self._latest.database.client.start_session() as session:
            found, complete = self._read_there(query, {"changes": 1}, session)
            at = session.operation_time
        return _versions(found, at), complete

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
            found = self._latest.find({"_id": {"$in": staff_ids}}, _ENTRY)
            for one in found.batch_size(BATCH):
                if one["recent"]:
                    who = {"staff_id": one["_id"]}
                    recent = [detection(shown | who) for shown in one["recent"]]
                    yield Entry(recent[0].staff_id, int(one["version"]), recent)

    def _read_there(
        self, query: dict[str, Any], fields: dict[str, int], session: ClientSession | None = None
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
            reply = self._latest.database.command(find | options, session=session)
        cursor = reply["cursor"]
        return cursor["firstBatch"], not cursor.get("partialResultsReturned")

    def _read(self, query: dict[str, Any], fields: dict[str, int]) -> Iterator[dict[str, Any]]:
        with domain_errors():
            yield from self._latest.find(query, fields)

    def _write(self, changes: list[Change]) -> dict[StaffId, str]:
        """Apply changes with one command; those that lost a race of two services once more."""
        wrong: dict[StaffId, str] = {}
        for _ in range(2):
            if not changes:
                break
            updates = [
                {"q": {"_id": staff_id}, "u": UPDATE, "c": constants, "upsert": True}
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


def _versions(found: Iterable[dict[str, Any]], at: Timestamp | None) -> dict[StaffId, Version]:
    return {one["_id"]: Version(one["version"], one["changes"], at) for one in found}
