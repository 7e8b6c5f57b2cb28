"""What happens to the collection `staff`, in one order that every reader sees: a change stream."""

import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pymongo
from bson import Timestamp
from pymongo.collection import Collection
from pymongo.errors import OperationFailure

from common.erasures import NOBODY, Erasures
from ingest.errors import CursorExpired, ParameterError, without_frames
from ingest.rules.retention import FOR_EVER, Retention
from ingest.storage.database.driver import domain_errors
from ingest.storage.detections.documents import Detection, detection

# The oplog no longer reaches the cursor, or the collection was dropped or renamed since.
EXPIRED = frozenset({260, 280, 286})
# Not worth a second question; a sharded cluster's idle shards speak every 2 s.
GLANCE_MS = 50
AWAIT_MS = 250
# After the first change, those right behind it are taken along, but nobody waits for the next ones.
FOLLOWING_SECONDS = 0.5
# What the database may take beyond the time that the reader wants to wait.
TIMEOUT_SECONDS = 4
# Documents that the driver decodes at once: some 3 kB each, with the event around it.
BATCH = 200
# Stored, or its place corrected. What a TTL index or an administrator deletes is no change here.
_CORRECTED = "updateDescription.updatedFields"
_PIPELINE: list[dict[str, Any]] = [
    {
        "$match": {
            "$or": [
                {"operationType": "insert"},
                {f"{_CORRECTED}.level": {"$exists": True}},
                {f"{_CORRECTED}.location": {"$exists": True}},
            ]
        }
    },
    {"$project": {"operationType": 1, "fullDocument": 1}},
]


class Change(NamedTuple):
    """One change: an `insert`, or an `update` of the place; and the detection as it is now."""

    kind: str
    detection: Detection


class Changes(NamedTuple):
    """What was made of changes, in their order, and the cursor behind the last."""

    lines: list[bytes]
    next: str


class ChangeStream:
    """Reads the changes of the collection `staff`, acknowledged by a majority, across shards."""

    def __init__(
        self,
        staff: Collection[dict[str, Any]],
        retention: Retention = FOR_EVER,
        erasures: Callable[[], Erasures] = lambda: NOBODY,
    ) -> None:
        self._staff = staff
        self._retention = retention
        self._erasures = erasures
        self._ending = threading.Event()

    def end_waits(self) -> None:
        """Have who waits for a change get what there is, now and from now on."""
        self._ending.set()

    def read(
        self,
        start: Mapping[str, Any],
        limit: int,
        wait_seconds: float,
        as_text: Callable[[Change], bytes],
    ) -> Changes:
        """Return at most `limit` changes from a start on; wait so long for the first.

        Each is made a text at once, which is a fifth of what it takes before.
        """
        lines: list[bytes] = []
        erasures = self._erasures()
        until = time.monotonic() + wait_seconds
        with (
            _stream_errors(),
            pymongo.timeout(wait_seconds + TIMEOUT_SECONDS),
            self._staff.watch(
                _PIPELINE,
                full_document="updateLookup",
                batch_size=min(limit, BATCH),
                max_await_time_ms=AWAIT_MS if wait_seconds else GLANCE_MS,
                **start,
            ) as stream,
        ):
            while len(lines) < limit and stream.alive:
                change = stream.try_next()
                if change and change["fullDocument"]:  # else deleted since it was corrected
                    if not lines:
                        until = time.monotonic() + FOLLOWING_SECONDS
                    stored = detection(change["fullDocument"])
                    is_forgotten = erasures.covers(stored.staff_id, stored.received_at)
                    if stored.timestamp >= self._retention.floor() and not is_forgotten:
                        lines.append(as_text(Change(change["operationType"], stored)))
                ends = time.monotonic() >= until or self._ending.is_set()
                if ends or (lines and not change):
                    break
            token = stream.resume_token
        if token is None:
            raise CursorExpired("the collection is gone")
        return Changes(lines, _cursor(token["_data"]))


def after(cursor: str) -> dict[str, Any]:
    """Return the start behind a cursor that we gave; ParameterError for any other text."""
    token = cursor[:-8]
    if cursor != _cursor(token):
        raise ParameterError("after", "is not a cursor that we gave")
    return {"resume_after": {"_data": token}}


def since(seconds: int) -> dict[str, Any]:
    """Return the start at a time of the database's clock, in unix seconds."""
    return {"start_at_operation_time": Timestamp(seconds, 0)}


def _cursor(token: str) -> str:
    """Guard a resume token: MongoDB takes some that were cut short, for another place."""
    return f"{token}{zlib.crc32(token.encode()):08X}"


@contextmanager
def _stream_errors() -> Iterator[None]:
    with domain_errors():
        try:
            yield
        except OperationFailure as error:
            if error.code not in EXPIRED:
                raise
            raise CursorExpired(str(without_frames(error))) from error
