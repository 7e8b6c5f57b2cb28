"""What is in the database before a case, in the shape that the services themselves store.

Each function is a context: at its end what it stored is gone.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from bson import ObjectId
from pymongo import MongoClient

from loadtests.headroom.site import Site
from mongo.directory import DATABASE

FIRST_STAFF = 100_000
EXPORTED = 90_000_000  # who has the long history
HISTORY = 10_000  # detections of it: 0.9 MB as CSV
WINDOW_SECONDS = 780  # of the 900 in the window: none leaves it during a case
WINDOW_STAFF = 1_000
RECENT = 8  # detections that `latest` shows of somebody
AT_ONCE = 5_000  # documents
LEVELS, SPOTS = 7, 57

Document = dict[str, Any]


@contextmanager
def people(site: Site, count: int, rows: int = 0) -> Iterator[None]:
    """Have so many people known, heard just now, and so many detections of the last minutes."""
    detection, entry = _samples(site)
    staff = range(FIRST_STAFF, FIRST_STAFF + count)
    newest = int(time.time()) - 5
    times = (newest - n * WINDOW_SECONDS // max(1, rows) for n in range(rows))
    with _stored(
        site,
        ((_row(detection, staff[n % count], at, n) for n, at in enumerate(times))),
        (_entry(entry, who, newest) for who in staff),
        {"$gte": staff.start, "$lt": staff.stop},
    ):
        yield


@contextmanager
def window(site: Site, rows: int) -> Iterator[None]:
    """Have so many detections in the window of `/retrieveformonitoring`."""
    with people(site, WINDOW_STAFF, rows):
        yield


@contextmanager
def history(site: Site) -> Iterator[None]:
    """Have somebody with a long history, older than the window."""
    detection, entry = _samples(site)
    newest = int(time.time()) - 86_400
    rows = (_row(detection, EXPORTED, newest - 4 * n, n) for n in range(HISTORY))
    with _stored(site, rows, [_entry(entry, EXPORTED, newest)], EXPORTED):
        yield


def _samples(site: Site) -> tuple[Document, Document]:
    """Store detections of one person through a service; return how it stored them."""
    items = site.ledger.backlog(RECENT)
    for one in items:
        site.store("seed", [one])
    who = items[0]["staff_id"]
    with MongoClient[Document](site.mongodb_uri) as client:
        detection = client[DATABASE]["staff"].find_one({"staff_id": who})
        entry = client[DATABASE]["latest"].find_one({"_id": who})
    if not (detection and entry and len(entry["recent"]) == RECENT):
        raise OSError("the stack stored no detection to learn their shape from")
    return detection, entry


def _row(sample: Document, who: int, timestamp: int, number: int) -> Document:
    return sample | {"_id": ObjectId(), "staff_id": who, "timestamp": timestamp} | _place(number)


def _entry(sample: Document, who: int, newest: int) -> Document:
    recent = [
        one | {"id": ObjectId(), "timestamp": newest - 4 * n} | _place(who)
        for n, one in enumerate(sample["recent"])
    ]
    return sample | {"_id": who, "recent": recent}


def _place(number: int) -> Document:
    return {"level": str(1 + number % LEVELS), "location": f"Lobby {number % SPOTS}"}


@contextmanager
def _stored(
    site: Site, rows: Iterable[Document], entries: Iterable[Document], whose: object
) -> Iterator[None]:
    with MongoClient[Document](site.mongodb_uri) as client:
        database = client[DATABASE]
        try:
            for collection, documents in (("staff", rows), ("latest", entries)):
                left = iter(documents)
                while some := list(islice(left, AT_ONCE)):
                    database[collection].insert_many(some, ordered=False)
            yield
        finally:
            database["staff"].delete_many({"staff_id": whose})
            database["latest"].delete_many({"_id": whose})
