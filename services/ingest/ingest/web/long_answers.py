"""Answers that are made while they are sent, somebody's year for a minute."""

import threading
from collections.abc import Iterator
from typing import TypeVar

from ingest.errors import Busy

# Each holds a thread of its lane for as long as it is made and read: the other threads are for
# others.
DOWNLOADS = 2
BUSY = f"{DOWNLOADS} long downloads are under way; ask again when one is done, or for less"

Item = TypeVar("Item")

_places = threading.BoundedSemaphore(DOWNLOADS)


def in_turn(items: Iterator[Item]) -> Iterator[Item]:
    """Yield what such an answer is made of, for a few at a time. Raises Busy: too many do."""
    if not _places.acquire(blocking=False):
        raise Busy(BUSY, 10)
    try:
        yield from items
    finally:
        _places.release()
