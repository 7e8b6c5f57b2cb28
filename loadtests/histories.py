"""Histories that are in the database before a measurement, without a service storing them."""

import datetime
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from bson import ObjectId
from pymongo import MongoClient

from loadtests.plans import MAC
from mongo.directory import DATABASE

AT_ONCE = 5_000  # documents
Document = dict[str, Any]


def store(mongodb_uri: str, counts: Mapping[int, int]) -> None:
    """Store so many detections of each staff member, as an older database has them, 4 s apart.

    Each has an entry in `latest`, so that no service reads them all to make one.
    """
    now, at = int(time.time()), datetime.datetime.now(datetime.UTC)
    with MongoClient[Document](mongodb_uri) as client:
        database = client[DATABASE]
        for some in _pieces(_detections(counts, now, at)):
            database["staff"].insert_many(some, ordered=False)
        for some in _pieces({"_id": n, "version": 1, "changes": [0], "recent": []} for n in counts):
            database["latest"].insert_many(some, ordered=False)


def _detections(counts: Mapping[int, int], now: int, at: datetime.datetime) -> Iterator[Document]:
    same = {"rssi": -60, "mac": MAC, "received_at": at}
    for staff, count in counts.items():
        for n in range(count):
            where = {"level": str(1 + n // 60 % 7), "location": f"Lobby {'AB'[n // 30 % 2]}"}
            yield {"_id": ObjectId(), "staff_id": staff, "timestamp": now - 4 * n, **where, **same}


def _pieces(documents: Iterable[Document]) -> Iterator[list[Document]]:
    left = iter(documents)
    while some := list(islice(left, AT_ONCE)):
        yield some
