"""What was sent and acknowledged, compared with what is stored."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from pymongo import DeleteMany, MongoClient
from pymongo.database import Database

from common.schema import DATABASE
from loadtests.engine.endpoints import detection
from loadtests.plans import MAC
from scripts.processes.waiting import eventually

STAFF = 64  # who send in one case
STRENGTHS = 100  # different ones in one second tell detections apart
BACKLOG_SECONDS = 30 * 86_400  # how old the first detection of a phone's backlog is
DRAIN_SECONDS = 60.0  # for what was queued to be stored

Document = dict[str, Any]
Key = tuple[int, int, int]  # staff id, timestamp, rssi
_cases = count(1_000_000, STAFF)  # no staff id is used twice


class Stored(NamedTuple):
    """How what is stored differs from what was acknowledged; nothing may."""

    acknowledged: int
    lost: int
    doubled: int
    strangers: int  # that nobody sent


class Ledger:
    """The detections of one case."""

    def __init__(self) -> None:
        first = next(_cases)
        self.staff = range(first, first + STAFF)
        self._numbers = [count() for _ in self.staff]
        self._turns = count()
        self._began = int(time.time()) - BACKLOG_SECONDS
        self._sent: set[Key] = set()
        self._acknowledged: set[Key] = set()

    @property
    def acknowledged(self) -> int:
        """How many were."""
        return len(self._acknowledged)

    def now(self) -> Document:
        """Return a detection of now, of the next staff member in turn."""
        return self._next(next(self._turns) % STAFF, int(time.time()))

    def backlog(self, size: int) -> list[Document]:
        """Return old detections of one staff member."""
        number = next(self._turns) % STAFF
        return [self._next(number) for _ in range(size)]

    def acknowledge(self, detections: Sequence[Document]) -> None:
        """Note that they were answered as stored, or as safe in the spool."""
        self._acknowledged.update(map(_key, detections))

    def compare(self, mongodb_uri: str) -> Stored:
        """Compare with the database, when what was queued has had its time."""
        with MongoClient[Document](mongodb_uri) as client:
            staff = client[DATABASE]["staff"]
            query = {"staff_id": {"$in": list(self.staff)}}
            fields = {"_id": 0, "staff_id": 1, "timestamp": 1, "rssi": 1}

            def in_database() -> Counter[Key]:
                return Counter(map(_key, staff.find(query, fields)))

            stored: Counter[Key] = Counter()

            def complete() -> bool:
                stored.clear()
                stored.update(in_database())
                return self._acknowledged <= stored.keys()

            with suppress(TimeoutError):  # then it counts as lost
                eventually(complete, DRAIN_SECONDS, pause_seconds=1)
        return Stored(
            acknowledged=len(self._acknowledged),
            lost=len(self._acknowledged - stored.keys()),
            doubled=stored.total() - len(stored),
            strangers=len(stored.keys() - self._sent),
        )

    def forget(self, mongodb_uri: str) -> None:
        """Delete them: the next case begins with the database as it was."""
        with MongoClient[Document](mongodb_uri) as client:
            delete(client[DATABASE], self.staff)

    def _next(self, staff_number: int, timestamp: int | None = None) -> Document:
        number = next(self._numbers[staff_number])
        at = self._began + number // STRENGTHS if timestamp is None else timestamp
        document = detection(self.staff[staff_number], MAC, at) | {"rssi": -20 - number % STRENGTHS}
        self._sent.add(_key(document))
        return document


def delete(database: Database[Document], staff: Sequence[int]) -> None:
    """Delete all that is stored of some people.

    One by one: a range of 90,000 takes minutes, as the scan begins anew at what is deleted.
    """
    database["staff"].bulk_write(
        [DeleteMany({"staff_id": staff_id}) for staff_id in staff], ordered=False
    )
    database["latest"].delete_many({"_id": {"$in": list(staff)}})


def _key(document: Document) -> Key:
    return document["staff_id"], document["timestamp"], document["rssi"]
