"""The collection `latest`: one small document per staff member, changed by every commit.

Its `version` tells a reader whether what it holds of a history is still all of it, and its
`changes` from which timestamp on to read again when it is not.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pymongo import UpdateOne
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError, PyMongoError
from pymongo.read_concern import ReadConcern

from ingest.errors import StoreUnavailable
from ingest.parsing import StaffId

# How many of the newest detections each document shows.
RECENT = 8
# How many commits a reader may be behind before it has to read everything again.
CHANGES = 32
DUPLICATE_KEY = 11000
_SHOWN = ("timestamp", "received_at", "mac", "rssi", "level", "location")


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

    def bump(self, detections: Iterable[Mapping[str, Any]]) -> None:
        """Note documents of `staff` that were just stored, before anybody is told so.

        StoreUnavailable: the versions may have grown or not. Once more does no harm.
        """
        groups: dict[StaffId, list[Mapping[str, Any]]] = {}
        for detection in detections:
            groups.setdefault(detection["staff_id"], []).append(detection)
        self._write([_bump(staff_id, group) for staff_id, group in groups.items()])

    def rewrite(self, changed: Mapping[StaffId, Iterable[Mapping[str, Any]]]) -> None:
        """Make every reader read these staff members' histories again, after an edit in place.

        Call it once the edit of `staff` is acknowledged, and before telling anybody, with each
        one's newest detections (`Detections.newest`): they replace what is shown of them.
        StoreUnavailable: call it again.
        """
        self._write([_bump(staff_id, list(shown), 0) for staff_id, shown in changed.items()])

    def versions(self, staff_ids: list[StaffId]) -> dict[StaffId, Version]:
        """Return where each staff member's history stands; those without detections are left out.

        What was acknowledged before the call is in it.
        """
        found = self._read({"_id": {"$in": staff_ids}}, {"version": 1, "changes": 1})
        return {one["_id"]: Version(one["version"], one["changes"]) for one in found}

    def everyone(self) -> Iterator[dict[str, Any]]:
        """Yield `_id`, `version` and `recent` (newest first, at most 8) of every staff member."""
        yield from self._read({}, {"changes": 0})

    def _read(self, query: dict[str, Any], fields: dict[str, int]) -> Iterator[dict[str, Any]]:
        try:
            yield from self._latest.find(query, fields)
        except PyMongoError as error:
            raise StoreUnavailable(str(error)) from error

    def _write(self, updates: list[UpdateOne]) -> None:
        if not updates:
            return
        try:
            try:
                self._latest.bulk_write(updates, ordered=False)
            except BulkWriteError as error:
                # Two services met somebody new at once: now the document is there.
                self._latest.bulk_write(_met_another(error, updates), ordered=False)
        except PyMongoError as error:
            raise StoreUnavailable(str(error)) from error


def _bump(
    staff_id: StaffId, detections: list[Mapping[str, Any]], since: int | None = None
) -> UpdateOne:
    """Return the update that adds one to the version and sorts in what is new."""
    if since is None:
        since = min(int(detection["timestamp"]) for detection in detections)
    newest = sorted(detections, key=lambda one: -int(one["timestamp"]))[:RECENT]
    shown = {one["_id"]: {field: one[field] for field in _SHOWN} for one in newest}
    others = {
        "$filter": {
            "input": {"$ifNull": ["$recent", []]},
            "cond": {"$not": [{"$in": ["$$this.id", list(shown)]}]},
        }
    }
    added = {"$literal": [{"id": id_} | fields for id_, fields in shown.items()]}
    in_order = {
        "$sortArray": {
            "input": {"$concatArrays": [added, others]},
            "sortBy": {"timestamp": -1, "id": -1},
        }
    }
    changes = {"$concatArrays": [{"$ifNull": ["$changes", []]}, [since]]}
    change = {
        "version": {"$add": [{"$ifNull": ["$version", 0]}, 1]},
        "changes": {"$slice": [changes, -CHANGES]},
        "recent": {"$slice": [in_order, RECENT]},
    }
    return UpdateOne({"_id": staff_id}, [{"$set": change}], upsert=True)


def _met_another(error: BulkWriteError, updates: list[UpdateOne]) -> list[UpdateOne]:
    """Return the updates that lost a race of upserts; raise when anything else went wrong."""
    failed = error.details["writeErrors"]
    if error.details["writeConcernErrors"] or any(one["code"] != DUPLICATE_KEY for one in failed):
        raise error
    return [updates[one["index"]] for one in failed]
