"""Bring shards, sharded collections and their chunks to the configured topology."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from bson import Int64, MaxKey, MinKey

from mongo.clients import Client, attempt
from mongo.progress import Progress
from mongo.topology import ReplicaSet

# One field, hashed: a compound key loses targeting (ARCHITECTURE.md, Decisions).
SHARD_KEYS = {"ICT3102.staff": "staff_id", "ICT3102.latest": "_id", "ICT3102.beacons": "level"}
# Another migration, a lock or a stale view of the chunks: ask again.
RETRIED = frozenset({6, 46, 70, 74, 85, 91, 117, 133, 134, 189, 236, 11600, 11602, 13388})
HASHES = 2**64
LOWEST = -(2**63)

Bound = Int64 | MinKey | MaxKey


def ensure_shards(shards: tuple[ReplicaSet, ...], client: Client, progress: Progress) -> None:
    """Add the shards that the cluster does not have yet."""
    there = {shard["_id"] for shard in client.admin.command("listShards")["shards"]}
    for shard in shards:
        if shard.name not in there:
            command = {"addShard": shard.seed, "name": shard.name}
            progress.wait_for(
                f"acceptance of {shard.name}", partial(attempt, client, command, again=RETRIED)
            )
            progress.say(f"shard {shard.name}: added")
    for name in there - {shard.name for shard in shards}:
        progress.say(f"shard {name}: not in the topology, left alone")


def ensure_collections(shards: tuple[ReplicaSet, ...], client: Client, progress: Progress) -> None:
    """Shard the collections and give each shard its equal part of the hashes."""
    for namespace, key in SHARD_KEYS.items():
        if client["config"]["collections"].find_one({"_id": namespace}) is None:
            command = {"shardCollection": namespace, "key": {key: "hashed"}}
            progress.wait_for(
                f"sharding of {namespace}", partial(attempt, client, command, again=RETRIED)
            )
            progress.say(f"collection {namespace}: sharded on a hash of {key}")
        moved = _spread(namespace, key, _in_order(shards, namespace, key, client), client, progress)
        if moved:
            progress.say(f"collection {namespace}: {moved} ranges moved")


def _in_order(
    shards: tuple[ReplicaSet, ...], namespace: str, key: str, client: Client
) -> list[str]:
    """Return the shards by the lowest hash they hold, new ones last: so the least has to move."""
    lowest: dict[str, int] = {}
    for chunk in _chunks(client, namespace):
        here = _order(chunk["min"][key])
        lowest[chunk["shard"]] = min(here, lowest.get(chunk["shard"], here))
    return sorted((shard.name for shard in shards), key=lambda name: lowest.get(name, HASHES))


def _chunks(client: Client, namespace: str) -> list[dict[str, Any]]:
    collection = client["config"]["collections"].find_one({"_id": namespace}, {"uuid": 1})
    return list(client["config"]["chunks"].find({"uuid": (collection or {})["uuid"]}))


def _spread(namespace: str, key: str, shards: list[str], client: Client, progress: Progress) -> int:
    """Move each range of hashes to its shard; return how many had to move."""
    moved = 0
    for number, shard in enumerate(shards):
        low, high = _bound(number, len(shards)), _bound(number + 1, len(shards))
        for chunk in _foreign_chunks(client, namespace, key, (low, high), shard):
            command = {
                "moveRange": namespace,
                "min": {key: chunk[0]},
                "max": {key: chunk[1]},
                "toShard": shard,
            }
            what = f"move of a range of {namespace} to {shard}"
            progress.wait_for(what, partial(attempt, client, command, again=RETRIED))
            moved += 1
    return moved


def _bound(number: int, of: int) -> Bound:
    if number == 0:
        return MinKey()
    return MaxKey() if number == of else Int64(LOWEST + HASHES * number // of)


def _foreign_chunks(
    client: Client, namespace: str, key: str, part: tuple[Bound, Bound], shard: str
) -> Iterator[tuple[Bound, Bound]]:
    """Yield what of a part of the hashes lies on other shards, one piece a chunk."""
    for chunk in _chunks(client, namespace):
        if chunk["shard"] == shard:
            continue
        low = max(chunk["min"][key], part[0], key=_order)
        high = min(chunk["max"][key], part[1], key=_order)
        if _order(low) < _order(high):
            yield low, high


def _order(bound: Bound) -> int:
    if isinstance(bound, MinKey):
        return LOWEST - 1
    return HASHES if isinstance(bound, MaxKey) else bound
