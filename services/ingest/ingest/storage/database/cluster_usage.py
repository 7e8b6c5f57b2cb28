"""How the database is: what lies on each shard, and what came in."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pymongo
from pymongo.collection import Collection

from common import schema
from ingest.rules.disk_use import Disk, DiskUse, Kept, disk_use
from ingest.storage.database.driver import domain_errors
from ingest.storage.database.indexes import BY_TIME, SEALED_BY_TIME
from ingest.storage.sealed.damage import leaving_out
from ingest.storage.sealed.recent import SealedRecent

SCAN_TIMEOUT_SECONDS = 2
HOUR_SECONDS, MINUTE_SECONDS = 3600, 60
WEEK_SECONDS, DAY_SECONDS = 7 * 24 * HOUR_SECONDS, 24 * HOUR_SECONDS
# Of a week in so many parts, of each the first of so many: a count of all reads millions.
PARTS, SAMPLED = 84, 60
# How many blocks are counted, from an index: of more the mean of these is taken.
MOST_BLOCKS = 100_000


class Shard(NamedTuple):
    """One shard, or the only server, and what it has: rows, and sealed detections."""

    name: str
    rows: Kept
    sealed: Kept


@dataclass(frozen=True)
class Minute:
    """How many detections have a time in one minute; its first unix second."""

    timestamp: int
    count: int


class Cluster:
    """Reads figures about the collections `staff` and `sealed`."""

    def __init__(self, staff: Collection[dict[str, Any]]) -> None:
        self._staff = staff
        self._recent = SealedRecent(staff)
        self._sealed = staff.database[schema.SEALED.name]

    def shards(self) -> list[Shard]:
        """Return what lies on each shard, by their names."""
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            alone = self._staff.database.command("hello").get("setName", "")
            rows, blocks = (_stats(one, alone) for one in (self._staff, self._sealed))
            each = self._detections_each(sum(kept.detections for kept in blocks.values()))
        sealed = {
            name: replace(kept, detections=round(kept.detections * each))
            for name, kept in blocks.items()
        }
        return [Shard(name, rows[name], sealed.get(name, Kept())) for name in sorted(rows)]

    def _detections_each(self, documents: int) -> float:
        """Return how many detections a document of `sealed` has, by the newest of them."""
        stages: list[dict[str, Any]] = [
            {"$sort": {"until": -1}},
            {"$limit": MOST_BLOCKS},
            {"$group": {"_id": None, "count": {"$sum": "$count"}}},
        ]
        counted = list(self._sealed.aggregate(stages, hint=SEALED_BY_TIME))
        return int(counted[0]["count"]) / min(documents, MOST_BLOCKS) if counted else 0.0

    def disk_use(
        self, shards: Sequence[Shard], now: float, retention_days: int, seal_hours: int
    ) -> DiskUse | None:
        """Return what detections take of the disks; None: no server tells of its disk."""
        disks = self.disks(shards)
        return disk_use(disks, self.a_day(now), retention_days, seal_hours) if disks else None

    def disks(self, shards: Sequence[Shard]) -> list[Disk]:
        """Return the disks of the shards; shards of one disk are told by its size and what is used.

        Of a shard of several members it is the disk of the first.
        """
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            stats = self._staff.database.command("dbStats")
        raw = stats.get("raw", {"": stats})
        by_shard = {address.partition("/")[0]: of_shard for address, of_shard in raw.items()}
        disks: dict[tuple[int, int], Disk] = {}
        for shard in shards:
            of_shard = by_shard.get(shard.name) or by_shard.get("")
            if not of_shard or "fsTotalSize" not in of_shard:
                continue
            total, used = int(of_shard["fsTotalSize"]), int(of_shard["fsUsedSize"])
            # Two answers of one disk are a moment apart.
            name = total, used // (total // 1000 or 1)
            known = disks.get(name, Disk(total - used, Kept(), Kept()))
            disks[name] = Disk(
                min(known.free_bytes, total - used),
                known.rows + shard.rows,
                known.sealed + shard.sealed,
            )
        return list(disks.values())

    def a_day(self, now: float) -> float | None:
        """Return how many detections come in a day, None while all are younger than one.

        Of the last week, in parts: by a sample of the rows, and by blocks. What is sealed and still
        a row is in both, so of each part the larger counts.
        """
        begin = int(now) - WEEK_SECONDS
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
            oldest = min(
                self._first(self._staff, "timestamp", begin, now),
                self._first(self._sealed, "until", begin, now),
            )
            span = int(now) - oldest
            if span < DAY_SECONDS:
                return None
            part = span / PARTS
            begins = (oldest + part * number for number in range(PARTS))
            sampled = [{"timestamp": {"$gte": at, "$lt": at + part / SAMPLED}} for at in begins]
            rows = _by_part(self._staff, BY_TIME, {"$or": sampled}, "timestamp", oldest, part, 1)
            blocks = _by_part(
                self._sealed,
                SEALED_BY_TIME,
                {"until": {"$gte": oldest, "$lt": int(now)}},
                "until",
                oldest,
                part,
                "$count",
            )
        counts = (
            max(rows.get(number, 0) * SAMPLED, blocks.get(number, 0)) for number in range(PARTS)
        )
        return sum(counts) * DAY_SECONDS / span

    def _first(
        self, collection: Collection[dict[str, Any]], field: str, begin: int, now: float
    ) -> int:
        """Return the first time of a collection since another; else now."""
        first = collection.find_one(
            {field: {"$gte": begin}}, {field: 1}, sort=[(field, pymongo.ASCENDING)]
        )
        return int(first[field]) if first else int(now)

    def minutes(self, now: float) -> list[Minute]:
        """Return how many detections each minute of the last hour has, the oldest first."""
        last = int(now) // MINUTE_SECONDS * MINUTE_SECONDS
        first = last - HOUR_SECONDS
        minute = {"$subtract": ["$timestamp", {"$mod": ["$timestamp", MINUTE_SECONDS]}]}
        pipeline: list[dict[str, Any]] = [
            {"$match": {"timestamp": {"$gte": first, "$lt": last + MINUTE_SECONDS}}},
            {"$group": {"_id": minute, "count": {"$sum": 1}}},
        ]
        with domain_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS), leaving_out():
            rows = self._staff.aggregate(pipeline)
            counts = Counter({int(minute["_id"]): int(minute["count"]) for minute in rows})
            counts += self._recent.count_by(MINUTE_SECONDS, first, last + MINUTE_SECONDS - 1)
        return [Minute(at, counts[at]) for at in range(first, last + 1, MINUTE_SECONDS)]


def _stats(collection: Collection[dict[str, Any]], alone: str) -> dict[str, Kept]:
    """Return by the names of shards how many documents each has of a collection."""
    return {
        shard.get("shard") or alone or shard["host"]: Kept(
            _documents(shard["storageStats"]),
            int(shard["storageStats"]["storageSize"]),
            int(shard["storageStats"]["totalIndexSize"]),
        )
        for shard in collection.aggregate([{"$collStats": {"storageStats": {}}}])
    }


def _by_part(
    collection: Collection[dict[str, Any]],
    index: str,
    query: dict[str, Any],
    field: str,
    begin: int,
    part: float,
    count: Any,
) -> dict[int, int]:
    """Return how many detections each part of a time has, from an index alone."""
    number = {"$toInt": {"$floor": {"$divide": [{"$subtract": [f"${field}", begin]}, part]}}}
    stages = [{"$match": query}, {"$group": {"_id": number, "count": {"$sum": count}}}]
    return {
        int(group["_id"]): int(group["count"]) for group in collection.aggregate(stages, hint=index)
    }


def _documents(stats: dict[str, Any]) -> int:
    """Return how many documents are a shard's own: not what it gave away and has yet to delete."""
    return max(0, int(stats["count"]) - int(stats.get("numOrphanDocs", 0)))
