"""Damaged blocks: who leaves them out and says so, and which of them this process has met.

Whoever reads a block opens it here. A history that lacks something is none: so damage is an error,
but within `leaving_out`, for an answer that can tell of how many blocks it lacks the detections.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ingest.rules.request_parameters import StaffId
from ingest.storage.detections.documents import Document, staff_id, unix_seconds, whole_number
from ingest.storage.sealed.blocks import Block, DamagedBlock

log = logging.getLogger(__name__)

# How many are remembered, and for how long after they were met last: one that was replaced by hand
# may not be opened again.
MAX_MET, MET_SECONDS = 100, 86_400.0
# How many one answer leaves out, some 300 bytes each; where more are damaged it fails.
MAX_LEFT_OUT = 1000


class Met(NamedTuple):
    """A block that cannot be read, by what stands beside its columns; times in unix seconds."""

    staff_id: StaffId
    first: int
    last: int
    detections: int


class LeftOut:
    """Which blocks an answer lacks, by their `_id`s."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}

    def __len__(self) -> int:
        """Return how many."""
        return len(self.names)


_left_out: ContextVar[LeftOut | None] = ContextVar("left_out", default=None)
_met: dict[str, tuple[float, Met]] = {}
_changing = threading.Lock()


@contextmanager
def leaving_out() -> Iterator[LeftOut]:
    """Leave damaged blocks out of what is read within, and tell of them."""
    token = _left_out.set(left_out := LeftOut())
    try:
        yield left_out
    finally:
        _left_out.reset(token)


def not_left_out() -> Document:
    """Return the part of a query that finds no block that is left out already."""
    left_out = _left_out.get()
    return {"_id": {"$nin": [*left_out.names.values()]}} if left_out else {}


def opened(documents: Iterable[Document]) -> Iterator[Block]:
    """Yield blocks, each when it is asked for. Raises DamagedBlock outside of `leaving_out`."""
    for document in documents:
        name = repr(document["_id"])
        try:
            block = Block(document)
        except DamagedBlock as error:
            _note(name, document, error)
            left_out = _left_out.get()
            if left_out is None or len(left_out) >= MAX_LEFT_OUT:
                raise
            left_out.names[name] = document["_id"]
            continue
        if name in _met:
            with _changing:
                _met.pop(name, None)
        yield block


def readable(stored: Document | None) -> Block | None:
    """Return a block; None where there is none, or it is damaged."""
    with leaving_out():
        return next(opened([stored] if stored else []), None)


def met() -> list[Met]:
    """Return the damaged blocks that were met within a day."""
    since = time.monotonic() - MET_SECONDS
    with _changing:
        return [damaged for at, damaged in _met.values() if at > since]


def forget(is_gone: Callable[[StaffId], bool]) -> None:
    """Let go of those of some people."""
    with _changing:
        for name in [name for name, (_, damaged) in _met.items() if is_gone(damaged.staff_id)]:
            del _met[name]


def _note(name: str, document: Document, error: DamagedBlock) -> None:
    """Remember a damaged block; the log tells it once, and not whose it is."""
    now = time.monotonic()
    with _changing:
        is_known = name in _met
        for old in [old for old, (at, _) in _met.items() if at <= now - MET_SECONDS]:
            del _met[old]
        if not is_known and len(_met) >= MAX_MET:
            return
        _met[name] = (
            now,
            Met(
                staff_id(document.get("staff_id")),
                unix_seconds(document.get("first")),
                unix_seconds(document.get("last")),
                max(0, whole_number(document.get("count"), 0)),
            ),
        )
    if not is_known:
        log.warning("somebody's block is damaged, its rows stay: %s", error)
