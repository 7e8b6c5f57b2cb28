"""The collection `latest`: one small document per staff member, changed by every commit.

Its `version` tells a reader whether what it holds of a history is still all of it, and its
`changes` from which timestamp on to read again when it is not.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import bson
from bson import ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo.collection import Collection
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from ingest.errors import StoreUnavailable
from ingest.rules.parameters import StaffId
from ingest.storage.driver import DUPLICATE_KEY, write_errors

# How many of the newest detections each document shows.
RECENT = 8
# How many commits a reader may be behind before it has to read everything again.
CHANGES = 32
# What of each.
SHOWN = ("timestamp", "received_at", "mac", "rssi", "level", "location")

Change = tuple[StaffId, dict[str, Any]]  # whose, and the constants of the update


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


class Latest:
    """Owns the collection `latest`, sharded on a hash of `_id`, the staff id."""

    def __init__(self, latest: Collection[dict[str, Any]]) -> None:
        # What a majority has is never rolled back: a version never stands for two histories.
        self._latest = latest.with_options(read_concern=ReadConcern("majority"))

    def bump(self, detections: Iterable[Mapping[str, Any]]) -> dict[StaffId, str]:
        """Note documents of `staff` that were just stored, before anybody is told so.

        Returns of whom their shard took no note, and why. StoreUnavailable: the versions may have
        grown or not. Once more does no harm.
        """
        groups: defaultdict[StaffId, list[Mapping[str, Any]]] = defaultdict(list)
        for detection in detections:
            groups[detection["staff_id"]].append(detection)
        return self._write([_change(staff_id, group) for staff_id, group in groups.items()])

    def rewrite(self, changed: Mapping[StaffId, Iterable[Mapping[str, Any]]]) -> None:
        """Make every reader read these staff members' histories again, after an edit in place.

        Call it once the edit of `staff` is acknowledged, and before telling anybody, with each
        one's newest detections (`Detections.newest`): they replace what is shown of them.
        StoreUnavailable: call it again.
        """
        failed = self._write(
            [_change(staff_id, list(shown), 0) for staff_id, shown in changed.items()]
        )
        if failed:
            raise StoreUnavailable(str(failed))

    def versions(self, staff_ids: list[StaffId]) -> dict[StaffId, Version]:
        """Return where each staff member's history stands; those without detections are left out.

        What was acknowledged before the call is in it.
        """
        found = self._read({"_id": {"$in": staff_ids}}, {"version": 1, "changes": 1})
        return {one["_id"]: Version(one["version"], one["changes"]) for one in found}

    def shown(self, staff_ids: list[StaffId]) -> dict[StaffId, set[ObjectId]]:
        """Return which detections are shown of each staff member."""
        found = self._read({"_id": {"$in": staff_ids}}, {"recent.id": 1})
        return {one["_id"]: {shown["id"] for shown in one["recent"]} for one in found}

    def everyone(self) -> Iterator[dict[str, Any]]:
        """Yield `_id`, `version` and `recent` (newest first, at most 8) of every staff member."""
        yield from self._read({}, {"changes": 0})

    def _read(self, query: dict[str, Any], fields: dict[str, int]) -> Iterator[dict[str, Any]]:
        try:
            yield from self._latest.find(query, fields)
        except PyMongoError as error:
            raise StoreUnavailable(str(error)) from error

    def _write(self, changes: list[Change]) -> dict[StaffId, str]:
        """Apply changes with one command; those that lost a race of two services once more."""
        wrong: dict[StaffId, str] = {}
        for _ in range(2):
            if not changes:
                break
            updates = [
                {"q": {"_id": staff_id}, "u": _BUMP, "c": constants, "upsert": True}
                for staff_id, constants in changes
            ]
            failed = write_errors(self._latest, "update", {"updates": updates})
            # Two services met somebody new at once: now the document is there.
            again = [changes[n] for n, (code, _) in failed.items() if code == DUPLICATE_KEY]
            wrong |= {
                changes[n][0]: why for n, (code, why) in failed.items() if code != DUPLICATE_KEY
            }
            changes = again
        return wrong | {staff_id: "not noted in two tries" for staff_id, _ in changes}


def _change(
    staff_id: StaffId, detections: list[Mapping[str, Any]], since: int | None = None
) -> Change:
    if since is None:
        since = min(detection["timestamp"] for detection in detections)
    if len(detections) > 1:
        newest = sorted(detections, key=itemgetter("timestamp"), reverse=True)
        by_id = {one["_id"]: one for one in newest[: 2 * RECENT]}  # a repeat may stand among them
        detections = list(by_id.values())[:RECENT]
    shown = [{"id": one["_id"]} | {name: one[name] for name in SHOWN} for one in detections]
    return staff_id, {"since": since, "shown": shown}


def _bump() -> list[Any]:
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


_BUMP = _bump()
