"""Up to where it is noted who was heard: one document, the position, in the collection `notes`."""

import secrets
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from pymongo.client_session import ClientSession
from pymongo.database import Database
from pymongo.errors import DuplicateKeyError
from pymongo.read_concern import ReadConcern

from ingest.storage.documents import Document
from ingest.storage.driver import domain_errors
from ingest.storage.stamps import STAMP, WRITE_SECONDS, number, settled

# After that the commits of whatever was stamped before are there, or it is stamped again.
COMMITTED_SECONDS = WRITE_SECONDS + 2
# How many the position lists, 8 bytes each. The rest is noted again each time, for some seconds: as
# at more than 2000 detections a second.
MAX_LISTED = 16_000
_ID = "staff"


class NotePosition(NamedTuple):
    """All with a stamp up to `at` is noted, and of what is newer all that is listed."""

    at: int
    listed: "array[int]"  # their keys
    name: int = 0  # of this write of it


NOWHERE_YET = NotePosition(0, array("q"))


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
        # Packed; the release before had a list of numbers.
        return NotePosition(found["at"], array("q", found["listed"]), found["name"])

    def write(self, position: NotePosition) -> NotePosition:
        """Write a position, unless another service did so meanwhile: then that stands."""
        name = secrets.randbits(62)
        named = position._replace(name=name)
        values = named._asdict() | {"listed": named.listed.tobytes()}
        with domain_errors():
            try:
                where = {"_id": _ID, "name": position.name}
                self._positions.update_one(where, {"$set": values}, upsert=not position.name)
            except DuplicateKeyError:
                pass  # another service was the first
        return named


def advance(
    position: NotePosition,
    proved: int,
    pieces: Iterable[tuple[list[Document], bool]],
    note: Callable[[list[Document]], None],
    kept: Callable[[NotePosition], NotePosition],
) -> NotePosition:
    """Note what is after a position, piece by piece; return the position then.

    `proved`: up to which stamp the pieces have all that is ever acknowledged.
    """
    left = set(position.listed)  # less what the pieces have told
    keys, stamps = array("q"), array("Q")  # of what is listed now, by the stamps
    last_keys: Collection[int] = ()  # a piece begins with the last stamp of the one before
    for found, is_all in pieces:
        keyed = {_key(one): one for one in found}
        fresh = {key: one for key, one in keyed.items() if key not in last_keys}
        new = [one for key, one in fresh.items() if key not in left]
        note(new)
        at = max(position.at, proved if is_all else min(proved, last_stamp(found, proved)))
        left.difference_update(left if is_all else fresh)
        keys.extend(fresh)
        stamps.extend(number(one[STAMP]) for one in fresh.values())
        first = max(bisect_right(stamps, at), len(stamps) - MAX_LISTED)
        del keys[:first], stamps[:first]
        last_keys = keyed.keys()
        # Who does not come to the end gets further each time, also when nothing is new.
        is_less = at > position.at and first > 0
        if new or (set(keys) != set(position.listed) if is_all else is_less):
            fits = len(keys) + len(left) <= MAX_LISTED
            listed = keys + array("q", left) if fits else keys[:]
            position = kept(position._replace(at=at, listed=listed))
    return position


def last_stamp(found: list[Document], otherwise: int = 0) -> int:
    """Return after which stamp to go on: two shards may have stamped at once."""
    return number(found[-1][STAMP]) - 1 if found else otherwise


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


def _key(found: Document) -> int:
    named = f"{found['_id']} {number(found[STAMP])}".encode()
    return int.from_bytes(blake2b(named, digest_size=8).digest(), "big", signed=True)
