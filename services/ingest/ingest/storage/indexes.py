"""The indexes of the collection `staff`, made in the background where they are missing."""

import logging
import threading
from typing import Any

import pymongo
from pymongo import DESCENDING, IndexModel
from pymongo.collection import Collection

from ingest.errors import StoreUnavailable
from ingest.storage.driver import domain_errors
from ingest.storage.stamps import STAMP

log = logging.getLogger(__name__)

_BY_BEACON = IndexModel(
    [("mac", 1), ("level", 1), ("location", 1), ("timestamp", DESCENDING), ("staff_id", 1)]
)
# Covers who was where last, the unknown beacons, and what a correction has to change.
BY_BEACON: str = _BY_BEACON.document["name"]
_BY_STAMP_OF_STAFF = IndexModel([("staff_id", 1), (STAMP, 1), ("timestamp", 1)])
_BY_STAMP = IndexModel([(STAMP, 1)])
# What is new of a person; what is new of everybody.
BY_STAMP_OF_STAFF: str = _BY_STAMP_OF_STAFF.document["name"]
BY_STAMP: str = _BY_STAMP.document["name"]
# What a wrong clock stamped, by its place: of all others the database only sees that they are none.
_BY_TRUE_TIME = IndexModel(
    [("level", 1), ("location", 1), ("heard", 1), ("timestamp", 1), ("staff_id", 1)],
    partialFilterExpression={"heard": {"$exists": True}},
)
BY_TRUE_TIME: str = _BY_TRUE_TIME.document["name"]
INDEXES = [
    # A history, read from the index alone.
    IndexModel([("staff_id", 1), ("timestamp", DESCENDING), ("level", 1), ("location", 1)]),
    # The last 15 minutes.
    IndexModel([("timestamp", DESCENDING)]),
    _BY_BEACON,
    _BY_STAMP_OF_STAFF,
    _BY_STAMP,
    _BY_TRUE_TIME,
]

# Who restores a database may leave them out.
LOOK_SECONDS, RETRY_SECONDS = 60.0, 5.0
# The driver's time-out for a request would cut the making of an index of millions of rows.
MAKE_SECONDS = 86_400


class Indexes:
    """Keeps the indexes there: looks for them, and makes those that are missing, in a thread."""

    def __init__(self, staff: Collection[dict[str, Any]]) -> None:
        self._staff = staff
        self._present = threading.Event()
        self._closed = threading.Event()
        self._failing = False

    @property
    def present(self) -> bool:
        """Tell whether all were there when they were last looked for."""
        return self._present.is_set()

    def start(self, wait_seconds: float) -> None:
        """Begin; return when all are there, or so much later while they are still being made."""
        threading.Thread(target=self._run, name="indexes", daemon=True).start()
        self._present.wait(wait_seconds)

    def close(self) -> None:
        """End soon; MongoDB completes what it has begun."""
        self._closed.set()

    def ensure(self) -> None:
        """Make what is missing. Two services may do so at once. Raises StoreUnavailable."""
        with domain_errors():
            found = self._staff.index_information()
        missing = [index for index in INDEXES if index.document["name"] not in found]
        if missing:
            self._present.clear()
            log.info("making %d indexes", len(missing))
            with domain_errors(), pymongo.timeout(MAKE_SECONDS):
                self._staff.create_indexes(missing)
        self._present.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self.ensure()
                self._failing = False
            except StoreUnavailable as error:
                if not self._failing:  # once, not for as long as the database is away
                    log.warning("the indexes are not looked after: %s", error)
                self._failing = True
            self._closed.wait(RETRY_SECONDS if self._failing else LOOK_SECONDS)
