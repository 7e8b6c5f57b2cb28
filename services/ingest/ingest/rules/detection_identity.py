"""What names a detection, so that every retry of it meets its first copy."""

from hashlib import blake2b

# What a retry repeats: a text, and unix seconds (None when a retry may bring others).
# A tuple: a class of its own takes longer to make than all that is done with it.
IdempotencyKey = tuple[str, int | None]

_HASH = blake2b(digest_size=8)  # its copy takes half as long as a new one


def event_key(event_id: str, timestamp: int | None) -> IdempotencyKey:
    """Return the key of a detection that the client named itself.

    A timestamp that is sent is part of the identity: another timestamp is another detection.
    """
    return f"event:{event_id}", timestamp


def detection_id(staff_id: int | str, mac: str, key: IdempotencyKey) -> bytes:
    """Return the 12 bytes that name a detection.

    8 bytes hash the staff id (an `_id` is unique per shard only), the beacon (one event may be a
    scan that heard several) and the key. 4 bytes of time before them keep the index local. With an
    event id but no timestamp, a retry may come at another time: then all 12 bytes are hash.
    """
    text, seconds = key
    named = f"{staff_id}\0{mac}\0{text}".encode()
    if seconds is None:
        return blake2b(named, digest_size=12).digest()
    hashed = _HASH.copy()
    hashed.update(named)
    return seconds.to_bytes(4, "big") + hashed.digest()
