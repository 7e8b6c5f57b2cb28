"""Up to which time detections may be in blocks, and whose turn it is to be sealed.

Whoever seals stores the border before he does so, and what is sealed stays a row for GRACE_SECONDS.
So who has read the border within VALID_SECONDS knows: what is not older has its first copy in
`staff`, and needs no look into blocks.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from pymongo.database import Database
from pymongo.errors import DuplicateKeyError
from pymongo.read_concern import ReadConcern

from common import schema
from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.driver import domain_errors, reading
from ingest.storage.detections.documents import Document

# How old what is known of the border may be until it is read again, and until it counts no more:
# shorter than GRACE_SECONDS of `sealed.py` by what clocks and a database's time may be apart.
READ_SECONDS, VALID_SECONDS = 30, 100
_THE_ONE = {"_id": schema.SEALED.name}


class Turn(NamedTuple):
    """Up to which time was sealed (unix seconds), and who was looked at last."""

    before: int
    staff_id: StaffId | None


class Border:
    """Owns the small document that tells both, in `directory`."""

    def __init__(
        self, database: Database[Document], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        directory = database[schema.DIRECTORY.name]
        self._directory = directory.with_options(read_concern=ReadConcern("majority"))
        self._monotonic = monotonic
        self._before = 0
        self._read_at = -math.inf
        self._reading = threading.Lock()

    def known(self) -> float:
        """Return the border as far as it is known, at once; infinite: it is not.

        Where that is old it is read again, in a thread: a shard that is frozen holds nobody up.
        """
        age, before = self._monotonic() - self._read_at, self._before
        if age > READ_SECONDS and self._reading.acquire(blocking=False):
            threading.Thread(target=self._read, name="border", daemon=True).start()
        return before if age <= VALID_SECONDS else math.inf

    def turn(self) -> Turn:
        """Return whose turn was the last. Raises StoreUnavailable."""
        with domain_errors():
            stored = self._directory.find_one(_THE_ONE) or {}
        return Turn(int(stored.get("before", 0)), stored.get("staff_id"))

    def advance(self, last: Turn, before: int, staff_id: StaffId | None) -> bool:
        """Have it known that somebody's detections of before a time are sealed from now on.

        False: another service has taken this turn. Raises StoreUnavailable.
        """
        query = _THE_ONE | {"staff_id": last.staff_id}
        change = {"$max": {"before": before}, "$set": {"staff_id": staff_id}}
        try:
            with domain_errors():
                self._directory.update_one(query, change, upsert=True)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, DuplicateKeyError):
                return False
            raise
        return True

    def move(self, before: int) -> None:
        """Have it known that everybody's detections of before a time may be sealed from now on.

        Raises StoreUnavailable.
        """
        while not self.advance(last := self.turn(), before, last.staff_id):
            pass

    def forget(self, staff_id: StaffId) -> None:
        """Forget whose turn was the last, if it was somebody's: the first one is next then.

        Raises StoreUnavailable.
        """
        with domain_errors():
            query = _THE_ONE | {"staff_id": staff_id}
            self._directory.update_one(query, {"$set": {"staff_id": None}})

    def now(self) -> int:
        """Return the database's time, in unix seconds: one clock for all services.

        Raises StoreUnavailable.
        """
        with reading(self._directory) as session:
            self._directory.find_one(_THE_ONE, {"_id": 1}, session=session)
            told = session.cluster_time
            return int(told["clusterTime"].time) if told else 0

    def _read(self) -> None:
        began = self._monotonic()
        try:
            self._before, self._read_at = max(self._before, self.turn().before), began
        except StoreUnavailable:
            pass  # until it is read, each detection is looked for
        finally:
            self._reading.release()
