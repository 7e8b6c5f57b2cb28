"""Histories that are in the database before a measurement, without a service storing them."""

import datetime
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from bson import ObjectId, Timestamp
from pymongo import MongoClient
from pymongo.database import Database

from common.schema import DATABASE
from loadtests.plans import MAC

AT_ONCE = 5_000  # documents
# After them nobody can have missed any of what was stored, and the database has told a time after
# it, as it does every 10 s while idle: till then each request reads all of it again.
SETTLED_SECONDS = 20
LOOK_SECONDS = 0.2  # between two looks at what the services have done
Document = dict[str, Any]


def store(
    mongodb_uri: str, counts: Mapping[int, int], *, in_turn: bool = False, settled: bool = True
) -> None:
    """Store so many detections of each staff member, 4 s apart; return when they are `settled`.

    They have the database's stamps, and are noted in `latest`, as what a service stored. All were
    heard at the same times, or `in_turn`, which a small cache of the database stores much faster.
    """
    now, at = int(time.time()), datetime.datetime.now(datetime.UTC)
    with MongoClient[Document](mongodb_uri) as client:
        database = client[DATABASE]
        for documents in _pieces(_detections(counts, now, at, in_turn=in_turn)):
            database["staff"].insert_many(documents, ordered=False)
        newest = {"_id": "$staff_id", "stored": {"$max": "$stored"}}
        note = {"version": 1, "changes": [0], "recent": []}
        database["staff"].aggregate([{"$group": newest}, {"$set": note}, {"$merge": "latest"}])
        position = {"$max": {"at": _newest(database)}, "$setOnInsert": {"listed": b"", "name": 1}}
        database["notes"].update_one({"_id": "staff"}, position, upsert=True)
    if settled:
        time.sleep(SETTLED_SECONDS)


def wait_until_noted(mongodb_uri: str, seconds: float) -> None:
    """Wait until the services have noted in `latest` all that is stored, for so long at most."""
    ends = time.monotonic() + seconds
    with MongoClient[Document](mongodb_uri) as client:
        database = client[DATABASE]
        newest = _newest(database)
        at = {"_id": "staff", "at": {"$gte": newest}}
        while newest and not database["notes"].find_one(at) and time.monotonic() < ends:
            time.sleep(LOOK_SECONDS)


def _newest(database: Database[Document]) -> int:
    """Return the stamp of what was stored last, as a number; 0 without any."""
    last = database["staff"].find_one(sort=[("stored", -1)])
    return last["stored"].time << 32 | last["stored"].inc if last else 0


def _detections(
    counts: Mapping[int, int], now: int, at: datetime.datetime, *, in_turn: bool
) -> Iterator[Document]:
    newest = now
    same = {"rssi": -60, "mac": MAC, "received_at": at, "stored": Timestamp(0, 0)}
    for staff, count in counts.items():
        for n in range(count):
            where = {"level": str(1 + n // 60 % 7), "location": f"Lobby {'AB'[n // 30 % 2]}"}
            when = {"staff_id": staff, "timestamp": newest - 4 * n}
            yield {"_id": ObjectId(), **when, **where, **same}
        newest -= 4 * count * in_turn


def _pieces(documents: Iterable[Document]) -> Iterator[list[Document]]:
    left = iter(documents)
    while piece := list(islice(left, AT_ONCE)):
        yield piece
