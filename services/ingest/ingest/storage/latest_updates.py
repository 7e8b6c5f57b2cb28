"""What a note does to a document of the collection `latest`, in MongoDB's words."""

import secrets
from operator import itemgetter
from typing import Any

import bson
from bson import Timestamp
from bson.raw_bson import RawBSONDocument

from ingest.rules.request_parameters import StaffId
from ingest.storage.documents import Document
from ingest.storage.stamps import STAMP

# How many of the newest detections each document shows.
RECENT = 8
# How many commits a reader may be behind before it has to read everything again.
CHANGES = 32
# The steps of versions. Longer than CHANGES: for a service of the release before, which takes them
# for counts, a reader is then too far behind. Short enough for 8,000 million commits.
STEPS = (2 * CHANGES, 2**31 - 1)
# A change is the timestamp and, above these bits, the step. A later one is taken for this last one:
# to read more again does no harm.
SINCE_BITS = 32
LAST = 2**SINCE_BITS - 1
# What of each.
SHOWN = ("timestamp", "received_at", "mac", "rssi", "level", "location")
NEVER = Timestamp(0, 0)

Change = tuple[StaffId, dict[str, Any]]  # whose, and the constants of the update


def change(staff_id: StaffId, documents: list[Document]) -> Change:
    """Return what a commit of some of a staff member's documents changes."""
    since = min(document["timestamp"] for document in documents)
    newest = max(document.get(STAMP, NEVER) for document in documents)
    if len(documents) > 1:
        documents = sorted(documents, key=itemgetter("timestamp"), reverse=True)[:RECENT]
    shown = [
        {"id": one["_id"], STAMP: one.get(STAMP, NEVER)} | {name: one[name] for name in SHOWN}
        for one in documents
    ]
    return staff_id, step(since) | {"shown": shown, "newest": newest}


def step(since: int) -> dict[str, int]:
    """Return the constants of a commit that changed what is not before a timestamp."""
    number = STEPS[0] + secrets.randbelow(STEPS[1] - STEPS[0] + 1)
    return {"step": number, "change": number << SINCE_BITS | min(since, LAST)}


# What every update does, by the constants of `step`.
_CHANGES = {"$concatArrays": [{"$ifNull": ["$changes", []]}, ["$$change"]]}
_RAISED: dict[str, Any] = {
    # From the clock on (ms): versions of a document that was lost and made anew grow all the same.
    "version": {"$add": [{"$ifNull": ["$version", {"$toLong": "$$NOW"}]}, "$$step"]},
    "changes": {"$slice": [_CHANGES, -CHANGES]},
}


def _sorted_in() -> dict[str, Any]:
    """Return what is shown after a commit, by the constant `shown`: of each the last stamped."""
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
            "sortBy": {"timestamp": -1, "id": -1},
        }
    }
    return {"$let": {"vars": {"fresh": fresh}, "in": {"$slice": [in_order, RECENT]}}}


# It is the same for all, and encoded once: what differs comes as constants.
_SHOWS = {"recent": _sorted_in(), STAMP: {"$max": [f"${STAMP}", "$$newest"]}}
UPDATE = [RawBSONDocument(bson.encode({"$set": _RAISED | _SHOWS}))]
