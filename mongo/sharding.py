"""Bring shards and sharded collections to the configured topology: which shard holds which hashes.

The balancer of the config servers moves what lies elsewhere: in pieces, while everything runs. It
runs only then: it looks at all collections every 10 s, which is two fifths of what an idle config
server does (docs/measurements.md).
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from bson import Int64, MaxKey, MinKey

from common.schema import COLLECTIONS, DATABASE
from mongo import zones
from mongo.clients import Client, attempt
from mongo.progress import Progress
from mongo.topology import ReplicaSet
from mongo.zones import HIGHEST, LOWEST, Zone

SHARD_KEYS = {
    f"{DATABASE}.{collection.name}": collection.shard_key
    for collection in COLLECTIONS
    if collection.shard_key
}
# Another migration, a lock or a stale view of the chunks: ask again.
RETRIED = frozenset({6, 46, 70, 74, 85, 91, 117, 133, 134, 189, 236, 11600, 11602, 13388})
POLL_SECONDS = 1.0

Bound = Int64 | MinKey | MaxKey


def ensure_shards(shards: tuple[ReplicaSet, ...], client: Client, progress: Progress) -> None:
    """Add the shards that the cluster does not have yet, and name a zone after each."""
    there = {shard["_id"]: shard for shard in client.admin.command("listShards")["shards"]}
    for shard in shards:
        if shard.name not in there:
            _run(client, {"addShard": shard.seed, "name": shard.name}, progress)
            progress.say(f"shard {shard.name}: added")
        if shard.name not in there.get(shard.name, {}).get("tags", []):
            _run(client, {"addShardToZone": shard.name, "zone": shard.name}, progress)
    for name in there.keys() - {shard.name for shard in shards}:
        progress.say(f"shard {name}: not in the topology, left alone")


def ensure_collections(shards: tuple[ReplicaSet, ...], client: Client, progress: Progress) -> None:
    """Shard the collections and give each shard its equal part of the hashes."""
    # One person's detections have one hash: more than 256 MiB of them would never be moved.
    jumbo = {"$set": {"attemptToBalanceJumboChunks": True}}
    client["config"]["settings"].update_one({"_id": "balancer"}, jumbo, upsert=True)
    moving = False
    shard_collections(client, progress)
    for namespace, key in SHARD_KEYS.items():
        there = _zones(client, namespace, key)
        names = [shard.name for shard in shards]
        wanted = zones.equal(names, there, list(_chunks(client, namespace, key)))
        for zone in (*(there - wanted), *(wanted - there)):  # first those that leave: none overlap
            command = {
                "updateZoneKeyRange": namespace,
                "min": {key: _bound(zone.low)},
                "max": {key: _bound(zone.high)},
                "zone": zone.shard if zone in wanted else None,
            }
            _run(client, command, progress)
        if left := _left(client, namespace):
            progress.say(left)
            moving = True
    _ensure_balancer(client, progress, moving=moving)


def shard_collections(client: Client, progress: Progress) -> None:
    """Shard the collections that are not yet; where their parts lie is left to MongoDB."""
    for namespace, key in SHARD_KEYS.items():
        if client["config"]["collections"].find_one({"_id": namespace}) is None:
            _run(client, {"shardCollection": namespace, "key": {key: "hashed"}}, progress)
            progress.say(f"collection {namespace}: sharded on a hash of {key}")


def wait_until_moved(client: Client, progress: Progress) -> None:
    """Tell how much the balancer has still to move until it is nothing; has no deadline."""
    for namespace in SHARD_KEYS:
        said = ""
        while left := _left(client, namespace):
            if left != said:
                progress.say(left)
            said = left
            time.sleep(POLL_SECONDS)
    _ensure_balancer(client, progress, moving=False)


def _ensure_balancer(client: Client, progress: Progress, *, moving: bool) -> None:
    """Have the balancer run while there is something to move."""
    if (client.admin.command("balancerStatus")["mode"] != "off") != moving:
        _run(client, {"balancerStart" if moving else "balancerStop": 1}, progress)


def _left(client: Client, namespace: str) -> str:
    share = misplaced(client, namespace)
    return f"collection {namespace}: {share:.1%} still to move, in the background" if share else ""


def misplaced(client: Client, namespace: str) -> float:
    """Return the part of the hashes that lies outside of its zone, from 0 to 1."""
    key = SHARD_KEYS[namespace]
    return zones.moved(_chunks(client, namespace, key), _zones(client, namespace, key))


def _run(client: Client, command: dict[str, Any], progress: Progress) -> None:
    name, target = next(iter(command.items()))
    progress.wait_for(f"{name} of {target}", partial(attempt, client, command, again=RETRIED))


def _zones(client: Client, namespace: str, key: str) -> set[Zone]:
    tags = client["config"]["tags"].find({"ns": namespace})
    return {Zone(tag["tag"], _hash(tag["min"][key]), _hash(tag["max"][key])) for tag in tags}


def _chunks(client: Client, namespace: str, key: str) -> Iterator[Zone]:
    """Yield the chunks like zones, by the shard on which they lie."""
    collection = client["config"]["collections"].find_one({"_id": namespace}, {"uuid": 1})
    for chunk in client["config"]["chunks"].find({"uuid": (collection or {})["uuid"]}):
        yield Zone(chunk["shard"], _hash(chunk["min"][key]), _hash(chunk["max"][key]))


def _hash(bound: Bound) -> int:
    if isinstance(bound, MinKey):
        return LOWEST
    return HIGHEST if isinstance(bound, MaxKey) else bound


def _bound(number: int) -> Bound:
    if number == LOWEST:
        return MinKey()
    return MaxKey() if number == HIGHEST else Int64(number)
