"""How this service and the database are, for the operator's screen."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pymongo
from pymongo.collection import Collection

from ingest.errors import StoreUnavailable, store_errors

CGROUPS = Path("/sys/fs/cgroup")
# Of version 2 and of version 1: the limit, the statistics, and their line of what cannot be freed.
FILES = (
    ("memory.max", "memory.stat", "anon"),
    ("memory/memory.limit_in_bytes", "memory/memory.stat", "total_rss"),
)
NO_LIMIT_BYTES = 1 << 50
PING_TIMEOUT_SECONDS = 0.4
SCAN_TIMEOUT_SECONDS = 2
HOUR_SECONDS, MINUTE_SECONDS = 3600, 60


class Memory(NamedTuple):
    """Bytes that cannot be given back, and how many there may be (None: no limit)."""

    used_bytes: int
    limit_bytes: int | None


def name_of(spool_file: str) -> str:
    """Name the service after its spool, which no other service holds."""
    stem = Path(spool_file).stem
    return f"ingest-{stem}" if stem.isdigit() else stem


def memory(cgroups: Path = CGROUPS) -> Memory:
    """Return the memory of the container, elsewhere that of this process."""
    for limit_file, statistics, line in FILES:
        limit = _limit(cgroups / limit_file)
        if limit is not None:
            words = (cgroups / statistics).read_text("ascii").split()
            return Memory(int(words[words.index(line) + 1]), limit)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return Memory(pages * os.sysconf("SC_PAGE_SIZE"), None)


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text != "max" and int(text) < NO_LIMIT_BYTES else None


def latency_ms(ping: Callable[[float], None]) -> float | None:
    """Return how long the database takes to answer, None when it does not."""
    began = time.monotonic()
    try:
        ping(PING_TIMEOUT_SECONDS)
    except StoreUnavailable:
        return None
    return round((time.monotonic() - began) * 1000, 1)


def shards(staff: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how many detections lie on each shard, and on how many bytes of its disk."""
    with store_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
        alone = staff.database.command("hello").get("setName", "")
        found = list(staff.aggregate([{"$collStats": {"storageStats": {}}}]))
    return [
        {
            "name": one.get("shard") or alone or one["host"],
            "documents": one["storageStats"]["count"],
            "bytes": one["storageStats"]["storageSize"],
        }
        for one in found
    ]


def minutes(staff: Collection[dict[str, Any]], now: float) -> list[dict[str, int]]:
    """Return how many detections each minute of the last hour has, the oldest first."""
    last = int(now) // MINUTE_SECONDS * MINUTE_SECONDS
    first = last - HOUR_SECONDS
    minute = {"$subtract": ["$timestamp", {"$mod": ["$timestamp", MINUTE_SECONDS]}]}
    pipeline: list[dict[str, Any]] = [
        {"$match": {"timestamp": {"$gte": first, "$lt": last + MINUTE_SECONDS}}},
        {"$group": {"_id": minute, "count": {"$sum": 1}}},
    ]
    with store_errors(), pymongo.timeout(SCAN_TIMEOUT_SECONDS):
        found = {one["_id"]: one["count"] for one in staff.aggregate(pipeline)}
    every = range(first, last + 1, MINUTE_SECONDS)
    return [{"timestamp": minute, "count": found.get(minute, 0)} for minute in every]
