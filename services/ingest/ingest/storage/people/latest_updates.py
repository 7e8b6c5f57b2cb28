"""What a note does to a document of the collection `latest`, in MongoDB's words.

And in which order somebody's detections are the newest: said here for MongoDB and for Python.
"""

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import bson
from bson import Timestamp
from bson.raw_bson import RawBSONDocument

from ingest.rules.request_parameters import FIRST_MILLISECONDS, StaffId
from ingest.rules.where import RECENT
from ingest.storage.detections.documents import HEARD, Document
from ingest.storage.detections.stamps import STAMP

# What is shown of each of the newest detections, and beside it when it counts as heard.
SHOWN = ("timestamp", "received_at", "mac", "rssi", "level", "location")
NEVER, EARLIEST = Timestamp(0, 0), Timestamp(1, 0)

Change = tuple[StaffId, dict[str, Any]]  # whose, and the constants of the update


def newest_first(shown: Iterable[Document], name: str = "id") -> list[Document]:
    """Return the newest in their order; `name`: of what names each."""
    return sorted(shown, key=lambda detection: _order(detection, name), reverse=True)[:RECENT]


def _order(row: Document, name: str) -> tuple[Any, ...]:
    # Of one second the strongest; one that is not known is the weakest, as MongoDB has it.
    rssi = row.get("rssi")
    return _heard(row), row["timestamp"], rssi is not None, rssi or 0, row[name]


def _by_newest(name: str) -> dict[str, int]:
    """Return the same order in MongoDB's words."""
    return dict.fromkeys(("heard", "timestamp", "rssi", name), -1)


def _heard(row: Document) -> Any:
    """Return when it was heard, as `Detection.heard_at`; the time of an older database as it is."""
    timestamp = row["heard"] if "heard" in row else row["timestamp"]
    received_at = row.get("received_at")
    if not isinstance(received_at, datetime) or timestamp >= FIRST_MILLISECONDS:
        return timestamp
    return min(timestamp, int(received_at.replace(tzinfo=UTC).timestamp()))


_IS_PLAIN = {"$lt": ["$timestamp", FIRST_MILLISECONDS]}
# Of detections, whose they are: the newest of each.
NEWEST_OF_EACH: list[dict[str, Any]] = [
    {"$set": {"heard": {"$cond": [_IS_PLAIN, HEARD, "$timestamp"]}}},
    {
        "$group": {
            "_id": "$staff_id",
            "newest": {"$max": f"${STAMP}"},
            "shown": {"$topN": {"n": RECENT, "sortBy": _by_newest("_id"), "output": "$$ROOT"}},
        }
    },
]


def as_shown(row: Document) -> Document:
    """Return what is shown of a detection."""
    fields = {name: row[name] for name in SHOWN if name in row}
    return {"id": row["_id"], "heard": _heard(row), STAMP: row.get(STAMP, NEVER)} | fields


def change(staff_id: StaffId, detections: Iterable[Document], newest: Timestamp) -> Change:
    """Return what some of a staff member's detections change; `newest`: their latest stamp."""
    return staff_id, {"shown": newest_first(map(as_shown, detections)), "newest": newest}


def version() -> int:
    """Return a version: a name that nothing else ever has."""
    return secrets.randbits(62)


def _sorted_in() -> dict[str, Any]:
    """Return what is shown after a note, by the constant `shown`: of each the last stamped."""
    kept = {"$ifNull": ["$recent", []]}
    older = {
        "$and": [{"$eq": ["$$kept.id", "$$one.id"]}, {"$gt": [f"$$kept.{STAMP}", f"$$one.{STAMP}"]}]
    }
    is_older = {"$anyElementTrue": [{"$map": {"input": kept, "as": "kept", "in": older}}]}
    fresh = {"$filter": {"input": "$$shown", "as": "one", "cond": {"$not": [is_older]}}}
    others = {"$filter": {"input": kept, "cond": {"$not": [{"$in": ["$$this.id", "$$fresh.id"]}]}}}
    in_order = {
        "$sortArray": {
            "input": {"$concatArrays": ["$$fresh", others]},
            "sortBy": _by_newest("id"),
        }
    }
    return {"$let": {"vars": {"fresh": fresh}, "in": {"$slice": [in_order, RECENT]}}}


# A version names what is shown: who changes nothing leaves it. And one of the release before reads
# everything again without the list of changes that he looks for.
_WAS = "was"
_STEPS: list[dict[str, Any]] = [
    {"$set": {_WAS: "$recent", "recent": _sorted_in(), STAMP: {"$max": [f"${STAMP}", "$$newest"]}}},
    {
        "$set": {
            "version": {"$cond": [{"$eq": ["$recent", f"${_WAS}"]}, "$version", "$$version"]},
            "changes": [],
        }
    },
    {"$unset": _WAS},
]
# It is the same for all, and encoded once: what differs comes as constants.
UPDATE = [RawBSONDocument(bson.encode(step)) for step in _STEPS]
# And where some of what is shown is not stored any more, the constant `gone`. The newest stamp may
# have gone with it: too low a one makes readers look at more, too high a one at less.
_KEPT = {"$filter": {"input": "$recent", "cond": {"$not": [{"$in": ["$$this.id", "$$gone"]}]}}}
_WITHOUT_GONE = {"$set": {"recent": _KEPT, STAMP: EARLIEST, "version": "$$version"}}
REPLACE = [RawBSONDocument(bson.encode(_WITHOUT_GONE)), *UPDATE]
