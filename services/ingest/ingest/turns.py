"""While memory is short, what takes a megabyte for a moment is done one after the other.

Each alone is small. All at once, on a machine that has too little time, they took the whole limit.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from ingest import process

# Of the limit: an idle service holds 0.6, and its caches may take 0.14: full, they shrink.
SHORT_SHARE = 0.72
# How old an answer may be to the question whether memory is short.
LOOK_SECONDS = 0.2
# Longer than a piece ever takes, but for one that waits for the database: then others go on.
TURN_SECONDS = 3.0

Item = TypeVar("Item")

_one = threading.Lock()
_looked_at = -LOOK_SECONDS
_was_short = False


@contextmanager
def turn() -> Iterator[None]:
    """Do something alone while memory is short; none within another."""
    if not (is_short() and _one.acquire(timeout=TURN_SECONDS)):
        yield
        return
    try:
        yield
    finally:
        _one.release()


def in_turns(items: Iterable[Item], size: int) -> Iterator[Item]:
    """Yield items, so many in one turn: as many as the driver decodes at once."""
    source = iter(items)
    while True:
        count = 0
        with turn():
            for item in islice(source, size):
                count += 1
                yield item
        if count < size:
            return


def is_short() -> bool:
    """Tell whether memory is short."""
    global _looked_at, _was_short  # of the whole process, as its memory is
    now = time.monotonic()
    if now >= _looked_at + LOOK_SECONDS:
        _looked_at = now
        used, limit = process.memory()
        _was_short = limit is not None and used > SHORT_SHARE * limit
    return _was_short
