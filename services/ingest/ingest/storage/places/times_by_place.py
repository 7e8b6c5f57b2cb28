"""Detections as a list of numbers for each place.

To decode a document for each detection costs more than all else that becomes of a history.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pymongo import DESCENDING

from ingest.storage.detections.documents import UNKNOWN, Document, text


class TimesAt(NamedTuple):
    """When somebody was heard at one place, in unix seconds, in no order."""

    level: str
    location: str
    timestamps: list[int]


def by_place(query: Mapping[str, Any], limit: int) -> list[Document]:
    """Return what the database does: it finds the newest, and groups their times."""
    place = {"level": "$level", "location": "$location"}
    return [
        {"$match": query},
        {"$sort": {"timestamp": DESCENDING}},
        {"$limit": limit},
        {"$group": {"_id": place, "timestamps": {"$push": "$timestamp"}}},
    ]


def times_at(row: Document) -> TimesAt:
    """Return one of its groups."""
    place, timestamps = row["_id"], row["timestamps"]
    level, location = (text(place.get(name), UNKNOWN) for name in ("level", "location"))
    return TimesAt(level, location, [int(timestamp) for timestamp in timestamps])
