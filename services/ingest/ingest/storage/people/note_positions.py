"""Up to where it is noted who was heard: one document, the position, in the collection `notes`.

It also says whose turn it is to note: one service at a time.
"""

import secrets
import time
from array import array
from typing import Any, NamedTuple

from pymongo.client_session import ClientSession
from pymongo.database import Database
from pymongo.errors import DuplicateKeyError
from pymongo.read_concern import ReadConcern

from common import schema
from ingest.errors import StoreUnavailable
from ingest.storage.database.driver import domain_errors
from ingest.storage.detections.stamps import WRITE_SECONDS, second_of, settled, start_of

# After that the commits of whatever was stamped before are there, or it is stamped again.
COMMITTED_SECONDS = WRITE_SECONDS + 2
# No turn is longer; a clock that was set back makes none longer either.
LONGEST_TURN_SECONDS = 150
_ID = "staff"


class NotePosition(NamedTuple):
    """All with a stamp up to `at` is noted, and of newer seconds those that have these names."""

    at: int
    seconds: dict[int, int]
    name: int = 0  # of this write of it

    def advanced(self, at: int, seconds: dict[int, int]) -> "NotePosition":
        """Return it with all up to a stamp, and these seconds, noted as well."""
        at = max(at, self.at)
        names = self.seconds | seconds
        newer = {second: name for second, name in names.items() if start_of(second) >= at}
        return self._replace(at=at, seconds=newer)


NOWHERE_YET = NotePosition(0, {})


class NotePositions:
    """Reads and writes the position."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        majority = ReadConcern("majority")
        self._positions = database[schema.NOTES.name].with_options(read_concern=majority)
        self._us = secrets.token_hex(8)

    def read(self, session: ClientSession) -> NotePosition:
        """Return the position. Raises StoreUnavailable."""
        with domain_errors():
            document = self._positions.find_one({"_id": _ID}, session=session)
        if document is None:
            return NOWHERE_YET
        packed = array("Q", document.get("seconds", b""))  # the release before has none
        seconds = dict(zip(packed[::2], packed[1::2], strict=True))
        return NotePosition(document["at"], seconds, document["name"])

    def write(self, position: NotePosition, turn_seconds: float) -> NotePosition:
        """Write a position, and have the turn for so long: by the database's clock.

        So a service that dies keeps the others from noting for no longer.
        Raises StoreUnavailable: it is another's turn, or it was since this position was read.
        """
        named = position._replace(name=secrets.randbits(62))
        packed = array("Q", [number for pair in position.seconds.items() for number in pair])
        until = {"$add": ["$$NOW", int(1000 * turn_seconds)]}
        # The release before looks for a list.
        values = named._asdict() | {"seconds": packed.tobytes(), "by": self._us, "listed": b""}
        update = [{"$set": values | {"until": until}}]
        where: dict[str, Any] = {"_id": _ID, "name": position.name}
        if position.name:
            where["$expr"] = {"$or": [{"$eq": ["$by", self._us]}, {"$not": [_RUNS]}]}
        with domain_errors():
            try:
                written = self._positions.update_one(where, update, upsert=not position.name)
            except DuplicateKeyError:
                raise NotOurTurn from None
        if not (written.matched_count or written.upserted_id):
            raise NotOurTurn
        return named


class NotOurTurn(StoreUnavailable):
    """Another service notes, or has noted meanwhile."""


# That a turn is not over.
_RUNS = {
    "$and": [
        {"$gt": ["$until", "$$NOW"]},
        {"$lt": ["$until", {"$add": ["$$NOW", 1000 * LONGEST_TURN_SECONDS]}]},
    ]
}


class Proof:
    """Tells up to which stamp everything is committed that is ever acknowledged.

    One shard's clock may lag behind another's, but a question sets it ahead to what the asker
    knows. So it begins with a time that was known before all shards were asked: either it was
    settled then (see `stamps.py`), or they were asked with it so long ago that what was
    stamped before is committed. When a clock was set back only the second helps.
    """

    def __init__(self) -> None:
        self._proved = 0
        self._asked: tuple[int, float] | None = None  # with which time, and when all had answered

    def before(self, cluster_time: int) -> int:
        """Return it for a question that is to be asked with this time.

        It is the start of a second, for seconds have names; or a time within the present one, when
        the clock does not go on.
        """
        asked = self._asked
        if asked and time.monotonic() - asked[1] > COMMITTED_SECONDS:
            self._proved, self._asked = asked[0], None
        proved = min(cluster_time, self._proved)
        if second_of(proved) < second_of(cluster_time):
            proved = start_of(second_of(proved))
        return max(settled(cluster_time), proved)

    def asked(self, cluster_time: int) -> None:
        """Note that all shards have answered a question with this time."""
        if self._asked is None:
            self._asked = cluster_time, time.monotonic()
