"""On which shard somebody's detections lie: by the hash that MongoDB itself makes of a number."""

import hashlib
import struct
from collections.abc import Iterable

SEED, NUMBER = 0, 10  # of the hash, and what it calls every kind of number
BITS = 64


def shard_of(staff: int, shards: int) -> int:
    """Return the shard of so many, from 0: each has an equal part of the hashes."""
    digest = hashlib.md5(struct.pack("<iiq", SEED, NUMBER, staff)).digest()  # noqa: S324 - MongoDB's
    hashed = int.from_bytes(digest[:8], "little", signed=True)
    return (hashed + (1 << BITS - 1)) * shards >> BITS


def people(staff: Iterable[int], shards: int) -> list[int]:
    """Return how many of these people each shard has."""
    lying = [shard_of(person, shards) for person in staff]
    return [lying.count(shard) for shard in range(shards)]
