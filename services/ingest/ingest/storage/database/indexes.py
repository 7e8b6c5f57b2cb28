"""The indexes of the collection `staff`, made in the background where they are missing."""

import logging
import threading
from typing import Any

import pymongo
from pymongo import IndexModel
from pymongo.collection import Collection

from common import schema
from ingest.storage.database.driver import domain_errors
from ingest.tasks.repeated import Repeated, Rest

log = logging.getLogger(__name__)

BY_BEACON = schema.BY_BEACON.name
BY_STAMP_OF_STAFF = schema.BY_STAMP_OF_STAFF.name
BY_STAMP = schema.BY_STAMP.name
BY_TIME = schema.BY_TIME.name
BY_TRUE_TIME = schema.BY_TRUE_TIME.name
SEALED_BY_TIME = schema.SEALED_BY_TIME.name

# Who restores a database may leave them out.
LOOK_SECONDS, RETRY_SECONDS = 60.0, 5.0
# The driver's time-out for a request would cut the making of an index of millions of rows.
MAKE_SECONDS = 86_400


class Indexes:
    """Keeps the indexes there: looks for them, and makes those that are missing, in a thread."""

    def __init__(self, staff: Collection[dict[str, Any]]) -> None:
        self._staff = staff
        self._present = threading.Event()
        self._looks = Repeated(
            "indexes", self._look, "the indexes are not looked after", RETRY_SECONDS
        )

    @property
    def present(self) -> bool:
        """Tell whether all were there when they were last looked for."""
        return self._present.is_set()

    def start(self, wait_seconds: float) -> None:
        """Begin; return when all are there, or so much later while they are still being made."""
        self._looks.start()
        self._present.wait(wait_seconds)

    def close(self) -> None:
        """End soon; MongoDB completes what it has begun."""
        self._looks.close()

    def ensure(self) -> None:
        """Make what is missing. Two services may do so at once. Raises StoreUnavailable."""
        with domain_errors():
            existing = self._staff.index_information()
        missing = [index for index in schema.STAFF.indexes if index.name not in existing]
        if missing:
            self._present.clear()
            log.info("making %d indexes", len(missing))
            with domain_errors(), pymongo.timeout(MAKE_SECONDS):
                self._staff.create_indexes(
                    [IndexModel(index.keys, name=index.name, **index.options) for index in missing]
                )
        self._present.set()

    def _look(self) -> Rest:
        self.ensure()
        return Rest(LOOK_SECONDS)
