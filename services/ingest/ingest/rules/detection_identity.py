"""What names a detection, so that every retry of it meets its first copy."""

from hashlib import blake2b

# What a retry repeats: a text, and unix seconds (None when a retry may bring others).
# A tuple: a class of its own takes longer to make than all that is done with it.
IdempotencyKey = tuple[str, int | None]

# How far apart two of one name are two detections: a counter of event ids that began anew. Only
# where no timestamp was sent, for else it is part of the name. Longer than a phone repeats, shorter
# than the day after which an app that counts starts again.
REUSED_SECONDS = 12 * 3600

_HASH = blake2b(digest_size=8)  # its copy takes half as long as a new one


def event_key(event_id: str, timestamp: int | None) -> IdempotencyKey:
    """Return the key of a detection that the client named itself.

    A timestamp that is sent is part of the identity: another timestamp is another detection.
    """
    return f"event:{event_id}", timestamp


def owntracks_key(device: str, timestamp: int) -> IdempotencyKey:
    """Return the key of what a device of somebody ranged at a time: OwnTracks sends no other name.

    With person and beacon, which are part of each name, it is what a repeat has in common. Any
    text is taken for a device, also one that is no UTF-8.
    """
    return f"owntracks:{device!a}", timestamp


def detection_id(staff_id: int | str, mac: str, key: IdempotencyKey) -> bytes:
    """Return the 12 bytes that name a detection.

    8 bytes hash the staff id (an `_id` is unique per shard only), the beacon (one event may be a
    scan that heard several) and the key. 4 bytes of time before them keep the index local. With an
    event id but no timestamp, a retry may come at another time: then all 12 bytes are hash, and
    what is stored under this name long before or after is another detection (`next_id`).
    """
    text, seconds = key
    named = f"{staff_id}\0{mac}\0{text}".encode()
    if seconds is None:
        return blake2b(named, digest_size=12).digest()
    hashed = _HASH.copy()
    hashed.update(named)
    return seconds.to_bytes(4, "big") + hashed.digest()


def is_reused(stored: int, timestamp: int) -> bool:
    """Tell whether a detection of this time (unix seconds) only shares the name of a stored one."""
    return abs(timestamp - stored) > REUSED_SECONDS


def next_id(name: bytes) -> bytes:
    """Return the name of a detection whose first name is taken by another one.

    Each name leads to one other. So a repeat finds its first copy, without a window of time, which
    would have a border: it goes from name to name until one is free, or is of its own time.
    """
    return blake2b(name, digest_size=12).digest()
