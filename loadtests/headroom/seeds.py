"""What is in the database before a case, in the shape that the services themselves store.

Each function is a context: at its end what it stored is gone.
"""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from bson import ObjectId, Timestamp
from pymongo import DESCENDING, MongoClient

from common.schema import DATABASE
from loadtests import targets
from loadtests.engine import endpoints
from loadtests.headroom.ledger import Document, delete
from loadtests.headroom.site import Site

FIRST_STAFF = 100_000
EXPORTED = 90_000_000  # who has the long history
HISTORY = 10_000  # detections of it: 0.9 MB as CSV
WINDOW_SECONDS = 780  # of the 900 in the window: none leaves it during a case
OLD_SECONDS = 1000  # not of the window any more
WINDOW_STAFF = 300  # each heard every 4 s makes 57,000 rows
STAY_SECONDS = 120  # of somebody at one spot
CACHED_SECONDS = 6.0  # after it the gateway no longer answers with the window before
NOTED_SECONDS = 60.0  # services note every 20 s
SENT = 40  # detections of one person, to see how many `latest` shows: fewer
AT_ONCE = 5_000  # documents
LEVELS, SPOTS = 7, 57


@contextmanager
def people(site: Site, count: int, rows: int = 0) -> Iterator[None]:
    """Have so many people known, and so many detections of the last minutes.

    They are at least those that are shown; without any, all but the newest of these are older.
    """
    detection, entry = _samples(site)
    staff = range(FIRST_STAFF, FIRST_STAFF + count)
    shown = len(entry["recent"])
    newest = int(time.time()) - 5
    if rows:
        times = [newest - n * WINDOW_SECONDS // rows for n in range(rows)]
    else:
        times = [newest] * count + [newest - OLD_SECONDS] * (count * (shown - 1))
    with _stored(
        site,
        (_row(detection, staff[n % count], n // count, at) for n, at in enumerate(times)),
        (_entry(entry, staff_id, times[n::count][:shown]) for n, staff_id in enumerate(staff)),
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
    times = range(newest, newest - 4 * HISTORY, -4)
    rows = (_row(detection, EXPORTED, n, at) for n, at in enumerate(times))
    shown = times[: len(entry["recent"])]
    with _stored(site, rows, [_entry(entry, EXPORTED, shown)], [EXPORTED]):
        yield


@contextmanager
def campus(site: Site, count: int) -> Iterator[None]:
    """Have so many people, heard all the time, and somebody with a long history."""
    with people(site, count, 20 * count), history(site):
        yield


def _samples(site: Site) -> tuple[Document, Document]:
    """Store detections of one person through a service; return how it stored them."""
    items = site.ledger.backlog(SENT)
    for item in items:
        if site.gateway.send(endpoints.insert(item)).status in targets.STORED:
            site.ledger.acknowledge([item])
    staff_id = items[0]["staff_id"]
    until = time.monotonic() + NOTED_SECONDS
    with MongoClient[Document](site.mongodb_uri) as client:
        while time.monotonic() < until:
            position = client[DATABASE]["notes"].find_one() or {"at": 0}
            staff = client[DATABASE]["staff"]
            detection = staff.find_one({"staff_id": staff_id}, sort=[("stored", DESCENDING)])
            entry = client[DATABASE]["latest"].find_one({"_id": staff_id})
            if detection and entry and position["at"] >> 32 > detection["stored"].time:
                return detection, entry
            time.sleep(1)
    raise OSError("the stack noted no detection to learn their shape from")


def _name(staff_id: int, number: int) -> ObjectId:
    """Return what names somebody's detection of this number, the newest first."""
    return ObjectId(f"{staff_id:08x}{number:016x}")


def _row(sample: Document, staff_id: int, number: int, timestamp: int) -> Document:
    heard = {"_id": _name(staff_id, number), "staff_id": staff_id, "timestamp": timestamp}
    # Stored then, and noted since: what the services have to note is not measured here.
    stamp = {"stored": Timestamp(timestamp - WINDOW_SECONDS, random.getrandbits(31))}
    return sample | heard | _place(staff_id, timestamp) | stamp


def _entry(sample: Document, staff_id: int, times: Sequence[int]) -> Document:
    """Return what is shown of somebody: a person without stored detections is soon removed."""
    recent = [
        shown | {"id": _name(staff_id, n), "timestamp": at, "heard": at} | _place(staff_id, at)
        for n, (shown, at) in enumerate(zip(sample["recent"], times, strict=True))
    ]
    return sample | {"_id": staff_id, "recent": recent}


def _place(staff_id: int, timestamp: int) -> Document:
    """Return where somebody is at a time, and what is heard there."""
    spot = (staff_id + timestamp // STAY_SECONDS) % SPOTS
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
                while piece := list(islice(left, AT_ONCE)):
                    database[collection].insert_many(piece, ordered=False)
            yield
        finally:
            delete(database, whose)
