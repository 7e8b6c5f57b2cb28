"""What is in the database before a case, in the shape that the services themselves store.

Each function is a context: at its end what it stored is gone.
"""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from bson import ObjectId, Timestamp
from pymongo import MongoClient

from loadtests.engine import endpoints
from loadtests.headroom.ledger import Document, delete
from loadtests.headroom.site import Site
from mongo.directory import DATABASE

FIRST_STAFF = 100_000
EXPORTED = 90_000_000  # who has the long history
HISTORY = 10_000  # detections of it: 0.9 MB as CSV
WINDOW_SECONDS = 780  # of the 900 in the window: none leaves it during a case
WINDOW_STAFF = 300  # each heard every 4 s makes 57,000 rows
STAY_SECONDS = 120  # of somebody at one spot
CACHED_SECONDS = 6.0  # after it the gateway no longer answers with the window before
NOTED_SECONDS = 60.0  # services note every 20 s
RECENT = 16  # detections that `latest` shows of somebody
AT_ONCE = 5_000  # documents
LEVELS, SPOTS = 7, 57


@contextmanager
def people(site: Site, count: int, rows: int = 0) -> Iterator[None]:
    """Have so many people known, heard just now, and so many detections of the last minutes."""
    detection, entry = _samples(site)
    staff = range(FIRST_STAFF, FIRST_STAFF + count)
    newest = int(time.time()) - 5
    times = (newest - n * WINDOW_SECONDS // max(1, rows) for n in range(rows))
    with _stored(
        site,
        (_row(detection, staff[n % count], at) for n, at in enumerate(times)),
        (_entry(entry, who, newest) for who in staff),
        staff,
    ):
        yield


@contextmanager
def window(site: Site, rows: int) -> Iterator[None]:
    """Have so many detections in the window of `/retrieveformonitoring`."""
    with people(site, WINDOW_STAFF, rows):
        time.sleep(CACHED_SECONDS)
        yield


@contextmanager
def history(site: Site) -> Iterator[None]:
    """Have somebody with a long history, older than the window."""
    detection, entry = _samples(site)
    newest = int(time.time()) - 86_400
    rows = (_row(detection, EXPORTED, newest - 4 * n) for n in range(HISTORY))
    with _stored(site, rows, [_entry(entry, EXPORTED, newest)], [EXPORTED]):
        yield


@contextmanager
def campus(site: Site, count: int) -> Iterator[None]:
    """Have so many people, heard all the time, and somebody with a long history."""
    with people(site, count, 20 * count), history(site):
        yield


def _samples(site: Site) -> tuple[Document, Document]:
    """Store detections of one person through a service; return how it stored them."""
    items = site.ledger.backlog(RECENT)
    for one in items:
        if site.gateway.send(endpoints.insert(one)).status in endpoints.STORED:
            site.ledger.acknowledge([one])
    who = items[0]["staff_id"]
    until = time.monotonic() + NOTED_SECONDS
    with MongoClient[Document](site.mongodb_uri) as client:
        while time.monotonic() < until:
            detection = client[DATABASE]["staff"].find_one({"staff_id": who})
            entry = client[DATABASE]["latest"].find_one({"_id": who})
            position = client[DATABASE]["notes"].find_one() or {"at": 0}
            if detection and entry and len(entry["recent"]) == RECENT and position["at"]:
                return detection, entry
            time.sleep(1)
    raise OSError("the stack noted no detection to learn their shape from")


def _row(sample: Document, who: int, timestamp: int) -> Document:
    heard = {"_id": ObjectId(), "staff_id": who, "timestamp": timestamp}
    # Stored then, and noted since: what the services have to note is not measured here.
    stamp = {"stored": Timestamp(timestamp - WINDOW_SECONDS, random.getrandbits(31))}
    return sample | heard | _place(who, timestamp) | stamp


def _entry(sample: Document, who: int, newest: int) -> Document:
    recent = [
        one
        | {"id": ObjectId(), "timestamp": newest - 4 * n, "heard": newest - 4 * n}
        | _place(who, newest)
        for n, one in enumerate(sample["recent"])
    ]
    return sample | {"_id": who, "recent": recent}


def _place(who: int, timestamp: int) -> Document:
    """Return where somebody is at a time, and what is heard there."""
    spot = (who + timestamp // STAY_SECONDS) % SPOTS
    where = {"level": str(1 + spot % LEVELS), "location": f"Lobby {spot}"}
    return where | {"mac": f"C2A6{spot:08X}"}


@contextmanager
def _stored(
    site: Site, rows: Iterable[Document], entries: Iterable[Document], whose: Sequence[int]
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
            delete(database, whose)
