"""How the database is: what lies on each shard, and what came in."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pymongo
from pymongo.collection import Collection

from ingest.storage.database.driver import domain_errors

SCAN_TIMEOUT_SECONDS = 2
HOUR_SECONDS, MINUTE_SECONDS = 3600, 60


class Shard(NamedTuple):
    """One shard, or the only server: how many detections, and how many bytes without indexes."""

    name: str
    documents: int
    bytes: int


@dataclass(frozen=True)
class Minute:
    """How many detections have a time in one minute; its first unix second."""

    timestamp: int
    count: int


class Cluster:
    """Reads figures about the collection `staff`."""

    def __init__(self, staff: Collection[dict[str, Any]]) -> None:
        self._staff = staff

    def shards(self) -> list[Shard]:
        """Return what lies on each shard."""
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            alone = self._staff.database.command("hello").get("setName", "")
            rows = list(self._staff.aggregate([{"$collStats": {"storageStats": {}}}]))
        return [
            Shard(
                shard.get("shard") or alone or shard["host"],
                _documents(shard["storageStats"]),
                int(shard["storageStats"]["storageSize"]),
            )
            for shard in rows
        ]

    def minutes(self, now: float) -> list[Minute]:
        """Return how many detections each minute of the last hour has, the oldest first."""
        last = int(now) // MINUTE_SECONDS * MINUTE_SECONDS
        first = last - HOUR_SECONDS
        minute = {"$subtract": ["$timestamp", {"$mod": ["$timestamp", MINUTE_SECONDS]}]}
        pipeline: list[dict[str, Any]] = [
            {"$match": {"timestamp": {"$gte": first, "$lt": last + MINUTE_SECONDS}}},
            {"$group": {"_id": minute, "count": {"$sum": 1}}},
        ]
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            counts = {
                int(minute["_id"]): int(minute["count"])
                for minute in self._staff.aggregate(pipeline)
            }
        every = range(first, last + 1, MINUTE_SECONDS)
        return [Minute(at, counts.get(at, 0)) for at in every]


def _documents(stats: dict[str, Any]) -> int:
    """Return how many documents are a shard's own: not what it gave away and has yet to delete."""
    return max(0, int(stats["count"]) - int(stats.get("numOrphanDocs", 0)))
