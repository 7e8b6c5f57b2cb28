"""Up to where it is noted who was heard: one document, the position, in the collection `notes`."""

import random
import time
from typing import Any, NamedTuple

from pymongo.client_session import ClientSession
from pymongo.database import Database
from pymongo.errors import DuplicateKeyError
from pymongo.read_concern import ReadConcern

from ingest.storage.driver import domain_errors
from ingest.storage.stamps import WRITE_SECONDS, settled

# After that the commits of whatever was stamped before are there, or it is stamped again.
COMMITTED_SECONDS = WRITE_SECONDS + 2
_ID = "staff"


class NotePosition(NamedTuple):
    """All with a stamp up to `at` is noted, and of what is newer all that is listed."""

    at: int
    listed: frozenset[int]
    name: int = 0  # of this write of it


NOWHERE_YET = NotePosition(0, frozenset())


class NotePositions:
    """Reads and writes the position."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        majority = ReadConcern("majority")
        self._positions = database["notes"].with_options(read_concern=majority)

    def read(self, session: ClientSession) -> NotePosition:
        """Return the position. StoreUnavailable."""
        with domain_errors():
            found = self._positions.find_one({"_id": _ID}, session=session)
        if found is None:
            return NOWHERE_YET
        return NotePosition(found["at"], frozenset(found["listed"]), found["name"])

    def write(self, position: NotePosition) -> NotePosition:
        """Write a position, unless another service did so meanwhile: then that stands."""
        name = random.getrandbits(62)  # nobody gains by guessing it
        named = position._replace(name=name)
        values = named._asdict() | {"listed": list(named.listed)}
        with domain_errors():
            try:
                where = {"_id": _ID, "name": position.name}
                self._positions.update_one(where, {"$set": values}, upsert=not position.name)
            except DuplicateKeyError:
                pass  # another service was the first
        return named


class Proof:
    """Tells up to which stamp everything is committed that is ever acknowledged.

    One shard's clock may lag behind another's, but a question sets it ahead to what the asker
    knows. So it begins with a time that was known before all shards were asked: either it was
    settled then (see `storage/stamps.py`), or they were asked with it so long ago that what was
    stamped before is committed. When a clock was set back only the second helps.
    """

    def __init__(self) -> None:
        self._proved = 0
        self._asked: tuple[int, float] | None = None  # with which time, and when all had answered

    def before(self, told: int) -> int:
        """Return it for a question that is to be asked with this time."""
        if self._asked and time.monotonic() - self._asked[1] > COMMITTED_SECONDS:
            self._proved, self._asked = self._asked[0], None
        return max(settled(told), min(told, self._proved))

    def asked(self, told: int) -> None:
        """Note that all shards have answered a question with this time."""
        if self._asked is None:
            self._asked = told, time.monotonic()
