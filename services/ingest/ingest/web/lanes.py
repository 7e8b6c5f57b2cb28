"""Bulkheads: kinds of requests that never wait for each other, and how large their bodies may be.

Each lane has threads of its own. The gateway sorts addresses in the same way (its `batch.conf`,
`short_read.conf`, and `history.conf` with `long_read.conf`; a test compares them).
"""

import re
from typing import NamedTuple

# What a request may make grow is refused before anything is made of it. The service has 64 MiB.
SMALL_BODY_BYTES = 8 * 1024  # a detection has five parameters, a beacon as many
BATCH_BODY_BYTES = 384 * 1024  # 1000 detections with an event id of 128 characters and a time
FILE_BODY_BYTES = 1024 * 1024  # 2000 beacons with places of 64 characters of 4 bytes

_BATCHES = "/api/v1/detections"
# The last is how the page sees that we live: reads that hang must not hold it up.
_HEALTH = ("/healthz", "/readyz", "/api/v1/system")
_FILES = "/api/v1/beacons/import"
# Seconds or megabytes: it waits for changes, reads a whole history, or corrects the past.
_LONG = re.compile(r"/api/v1/(audit$|changes$|coverage$|visits$|beacons(/|$)|staff/|system/)")
_PEOPLE = re.compile(r"/api/v1/(session|accounts)(/|$)")


class Lane(NamedTuple):
    """A kind of requests, and how many of them are worked on at once."""

    name: str
    threads: int


HEALTH = Lane("health", 2)  # one that waits for the database must not hide that we live
WRITES = Lane("writes", 8)  # what waits together is stored together: with 2 it took 30 % more
SHORT = Lane("short-reads", 4)
LONG = Lane("long-reads", 6)  # two of them may wait for changes
# One more than may hash a password or wait for that (access/passwords.py), or wait for a provider
# (access/oidc.py): it refuses the others.
PEOPLE = Lane("people", 6)
LANES = (HEALTH, WRITES, SHORT, LONG, PEOPLE)


def lane_of(path: str) -> Lane:
    """Return the lane of an address."""
    if path in _HEALTH:
        return HEALTH
    if path == _BATCHES:
        return WRITES
    if _PEOPLE.match(path):
        return PEOPLE
    return LONG if _LONG.match(path) else SHORT


def largest_body(path: str) -> int:
    """Return how many bytes the body of a request to an address may have."""
    if path == _BATCHES:
        return BATCH_BODY_BYTES
    return FILE_BODY_BYTES if path == _FILES else SMALL_BODY_BYTES
