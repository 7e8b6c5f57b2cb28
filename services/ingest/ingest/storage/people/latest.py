"""The collection `latest`: one small document per staff member, for who asks for everybody.

`notes.py` brings it up to date, and a reader adds what it has not noted yet. A `version`
names what a document shows, so it tells him whether what he has cached is still that. It is chosen
at random: a database that is restored under running services comes to none again that they know.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bson import ObjectId, Timestamp
from bson.raw_bson import RawBSONDocument
from pymongo import ASCENDING
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.client import time_limit
from ingest.storage.database.driver import (
    DUPLICATE_KEY,
    There,
    domain_errors,
    find_there,
    reading,
    write,
)
from ingest.storage.detections.documents import Detection, Document, detection
from ingest.storage.detections.stamps import STAMP, number, stamp
from ingest.storage.people.latest_updates import (
    EARLIEST,
    NEVER,
    REPLACE,
    UPDATE,
    Change,
    as_shown,
    change,
    newest_first,
    version,
)
from ingest.turns import in_turns

# Documents that the driver decodes at once: some 8 kB each.
BATCH = 50
# How many versions are read with one command: 16 MiB hold more.
MAX_READ = 200_000
# What makes an entry. The database leaves out what tells no place: to decode it costs us more.
_PLACES = {"$map": {"input": "$recent", "in": ["$$this.level", "$$this.location"]}}
_ONE_PLACE = {"$lte": [{"$size": {"$setUnion": [_PLACES]}}, 1]}
_ENTRY = {
    "version": 1,
    "recent": {"$cond": [_ONE_PLACE, {"$slice": ["$recent", 1]}, "$recent"]},
}


class Entry(NamedTuple):
    """One staff member: the version, and the newest detections, newest first, at most RECENT.

    Of those who were heard at one place alone maybe only the newest: no other could tell a place.
    """

    staff_id: StaffId
    version: int
    recent: list[Detection]


class Recorded(NamedTuple):
    """For whom their shard did not record it, and why, and the latest time that it told."""

    failed: dict[StaffId, str]
    at: Timestamp


class Latest:
    """Owns the collection `latest`, sharded on a hash of `_id`, the staff id."""

    def __init__(self, latest: Collection[dict[str, Any]]) -> None:
        # What a majority has is never rolled back: a version never stands for two histories.
        self._latest = latest.with_options(read_concern=ReadConcern("majority"))

    def record_changes(self, documents: Iterable[Document]) -> Recorded:
        """Show documents that were stored.

        Raises StoreUnavailable: some may be shown. Once more does no harm.
        """
        groups: defaultdict[StaffId, list[Document]] = defaultdict(list)
        for document in documents:
            groups[document["staff_id"]].append(document)
        return self.show(
            change(staff_id, group, max(row.get(STAMP, NEVER) for row in group))
            for staff_id, group in groups.items()
        )

    def show(self, changes: Iterable[Change]) -> Recorded:
        """Do the same with what each of some people's detections change."""
        changes = list(changes)
        return self._write(changes) if changes else Recorded({}, NEVER)

    def cut_stamps(self, cluster_time: int) -> None:
        """Let none be later than that: in a copy, of a server whose clock was ahead.

        They become the earliest: else what was stamped since would pass for older than what is
        shown. All of it is noted again.
        """
        cut = {
            STAMP: {
                "$cond": [
                    {"$gt": [f"$$this.{STAMP}", stamp(cluster_time)]},
                    EARLIEST,
                    f"$$this.{STAMP}",
                ]
            }
        }
        recent = {"$map": {"input": "$recent", "in": {"$mergeObjects": ["$$this", cut]}}}
        with domain_errors():
            query: dict[str, Any] = {STAMP: {"$gt": stamp(cluster_time)}}
            self._latest.update_many(query, [{"$set": {STAMP: EARLIEST, "recent": recent}}])

    def replace(
        self, gone: dict[StaffId, set[ObjectId]], newest: dict[StaffId, list[Document]]
    ) -> Recorded:
        """Show the newest of some people in place of what is not stored any more, at once."""
        changes = [change(staff_id, newest[staff_id], NEVER) for staff_id in gone]
        return self._write(
            [
                (staff_id, constants | {"gone": list(gone[staff_id])})
                for staff_id, constants in changes
            ],
            REPLACE,
        )

    def remove_empty(self, staff_ids: list[StaffId]) -> None:
        """Remove those of whom nothing is shown. Whoever is noted meanwhile is there again."""
        with domain_errors():
            self._latest.delete_many({"_id": {"$in": staff_ids}, "recent": []})

    def remove_unstamped(self, staff_id: StaffId) -> None:
        """Remove what an older release shows of somebody. Raises StoreUnavailable."""
        with domain_errors():
            self._latest.delete_one({"_id": staff_id, STAMP: {"$not": {"$gt": NEVER}}})

    def shown(
        self, staff_ids: list[StaffId]
    ) -> tuple[dict[StaffId, set[ObjectId]], Timestamp | None]:
        """Return which detections are shown of each staff member who has a stamp, and the time."""
        query = {"_id": {"$in": staff_ids}, STAMP: {"$gt": NEVER}}
        with reading(self._latest) as session:
            entries = self._latest.find(query, {"shown": "$recent.id"}, session=session)
            shown = {entry["_id"]: set(entry["shown"]) for entry in entries}
            return shown, session.operation_time

    def newest_stamps(
        self, staff_ids: list[StaffId]
    ) -> tuple[dict[StaffId, int], Timestamp | None]:
        """Return the newest stamp that is noted of each staff member, and the database's time."""
        query = {"_id": {"$in": staff_ids}}
        with reading(self._latest) as session:
            stamps = _stamps(self._latest.find(query, {STAMP: 1}, session=session))
            return stamps, session.operation_time

    def newest_stamps_there(
        self, staff_ids: list[StaffId] | None = None
    ) -> tuple[dict[StaffId, int], Timestamp | None]:
        """Do the same for those, or all, whose shards answer; return the database's time too.

        With a dead shard it takes all the time that it is given.
        """
        query = {} if staff_ids is None else {"_id": {"$in": staff_ids}}
        there = self._read_there(query, {STAMP: 1})
        return _stamps(there.rows), there.at

    def answering(self, staff_ids: list[StaffId], seconds: float) -> set[StaffId]:
        """Return those whom a shard shows in time; those of a dead one are left out."""
        query = {"_id": {"$in": staff_ids}}
        with domain_errors(), time_limit(seconds):
            entries = self._latest.find(query, {"_id": 1}, allow_partial_results=True)
            return {entry["_id"] for entry in entries.batch_size(len(staff_ids) + 1)}

    def answers(self, staff_id: StaffId, seconds: float) -> bool:
        """Tell whether the shard of a staff member answers in time."""
        try:
            with domain_errors(), time_limit(seconds):
                self._latest.find_one({"_id": staff_id}, {"_id": 1})
        except StoreUnavailable:
            return False
        return True

    def every_version(self, as_of: Timestamp | None) -> tuple[list[StaffId], list[int]]:
        """Return everybody's staff id and version, in the same order, with all that was noted then.

        As two lists, which cost a quarter of what a document for each does.
        """
        lists: dict[str, Any] = {
            "_id": None,
            "staff_ids": {"$push": "$_id"},
            "versions": {"$push": "$version"},
        }
        with reading(self._latest, as_of) as session:
            for group in self._latest.aggregate([{"$group": lists}], session=session):
                return group["staff_ids"], group["versions"]
        return [], []

    def every_version_there(self) -> tuple[list[StaffId], list[int], bool]:
        """Do the same for those whose shards answer; tell whether all do.

        With a dead shard it takes all the time that it is given.
        """
        entries, all_answered, _ = self._read_there({}, {})
        return (
            [entry["_id"] for entry in entries],
            [entry["version"] for entry in entries],
            all_answered,
        )

    def count(self) -> int:
        """Return of how many people anything is shown, more or less. Raises StoreUnavailable."""
        with domain_errors():
            return self._latest.estimated_document_count()

    def heard_since(self, since: int) -> int:
        """Return how many people were heard at a unix second or later. Raises StoreUnavailable."""
        with domain_errors():
            return self._latest.count_documents({"recent.heard": {"$gte": since}})

    def next_after(self, staff_id: StaffId | None) -> StaffId | None:
        """Return who follows somebody in the order of ids, numbers first; None: nobody does.

        After None the first one. Raises StoreUnavailable.
        """
        query: dict[str, Any] = {}
        if staff_id is not None:
            texts = [] if isinstance(staff_id, str) else [{"_id": {"$gte": ""}}]
            query = {"$or": [{"_id": {"$gt": staff_id}}, *texts]}
        with domain_errors():
            entry = self._latest.find_one(query, {"_id": 1}, sort=[("_id", ASCENDING)])
        return entry["_id"] if entry else None

    def entries(self, staff_ids: list[StaffId], as_of: Timestamp | None = None) -> Iterator[Entry]:
        """Yield those of these staff members of whom anything is shown, as of then."""
        with reading(self._latest, as_of) as session:
            entries = self._latest.find({"_id": {"$in": staff_ids}}, _ENTRY, session=session)
            for entry in in_turns(entries.batch_size(BATCH), BATCH):
                if entry["recent"]:
                    yield _entry(entry["_id"], entry["version"], entry["recent"])

    def entries_with(
        self, arrived: dict[StaffId, list[Document]], as_of: Timestamp | None = None
    ) -> Iterator[Entry]:
        """Yield each of these staff members with detections that may not be noted yet."""
        rows = {
            staff_id: [as_shown(entry) for entry in group] for staff_id, group in arrived.items()
        }
        with reading(self._latest, as_of) as session:

            def noted(staff_ids: Iterable[StaffId], fields: dict[str, Any]) -> dict[StaffId, Any]:
                query = {"_id": {"$in": list(staff_ids)}}
                entries = self._latest.find(query, fields, session=session)
                return {entry["_id"]: entry for entry in entries.batch_size(len(rows) + 1)}

            known = noted(rows, _ENTRY)
            # What tells no place alone may do so together with what is new.
            alone = {
                staff_id: one["recent"]
                for staff_id, one in known.items()
                if len(one["recent"]) == 1
            }
            two = [staff_id for staff_id, one in alone.items() if _places(one + rows[staff_id]) > 1]
            if two:
                known |= noted(two, {"version": 1, "recent": 1})
        for staff_id, new in rows.items():
            one = known.get(staff_id, {"version": 0, "recent": []})
            ids = {shown["id"] for shown in new}
            older = [shown for shown in one["recent"] if shown["id"] not in ids]
            yield _entry(staff_id, one["version"], newest_first(new + older))

    def _read_there(self, query: dict[str, Any], fields: dict[str, int]) -> There:
        """Read versions and these fields from the shards that answer."""
        find = {"filter": query, "projection": fields | {"version": 1}}
        return find_there(self._latest, MAX_READ, find)

    def _write(self, changes: list[Change], update: list[RawBSONDocument] = UPDATE) -> Recorded:
        """Apply changes with one command; those that lost a race of two services once more."""
        wrong: dict[StaffId, str] = {}
        at, name = NEVER, {"version": version()}
        for _ in range(2):
            if not changes:
                break
            updates = [
                {"q": {"_id": staff_id}, "u": update, "c": constants | name, "upsert": True}
                for staff_id, constants in changes
            ]
            failed, at = write(self._latest, "update", {"updates": updates})
            # Two services met somebody new at once: now the document is there.
            again = [changes[n] for n, (code, _) in failed.items() if code == DUPLICATE_KEY]
            wrong |= {
                changes[n][0]: why for n, (code, why) in failed.items() if code != DUPLICATE_KEY
            }
            changes = again
        wrong |= {staff_id: "not recorded in two attempts" for staff_id, _ in changes}
        return Recorded(wrong, at)


def _stamps(entries: Iterable[dict[str, Any]]) -> dict[StaffId, int]:
    return {entry["_id"]: number(entry[STAMP]) for entry in entries if STAMP in entry}


def _entry(staff_id: StaffId, version: int, recent: list[Document]) -> Entry:
    detections = [detection(row | {"staff_id": staff_id}) for row in recent]
    return Entry(detections[0].staff_id, int(version), detections)


def _places(recent: list[Document]) -> int:
    return len({(row.get("level"), row.get("location")) for row in recent})
