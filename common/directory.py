"""How the directory of beacons is written: in a transaction that raises its revision."""

import secrets
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from common.beacon import Beacon
from common.schema import BEACONS, DIRECTORY

if TYPE_CHECKING:  # the driver is the caller's
    from pymongo.client_session import ClientSession
    from pymongo.database import Database

MAX_STEP = 2**31 - 1

Result = TypeVar("Result")


class Moved(NamedTuple):
    """A beacon as it was in the directory, and as it is then."""

    before: Beacon
    after: Beacon


class Changed(NamedTuple):
    """What a write did, in beacons; `others` are in the directory but were not in the write."""

    added: int
    moves: list[Moved]
    unchanged: int
    others: int

    def __str__(self) -> str:
        """Return one line for people."""
        text = f"{self.added} added, {len(self.moves)} changed, {self.unchanged} unchanged"
        return f"{text}, {self.others} not in the file and left alone" if self.others else text


def change(
    database: "Database[dict[str, Any]]", work: "Callable[[ClientSession], Result]"
) -> Result:
    """Run a write and raise the revision with it: both or neither, on all shards."""
    revisions = database[DIRECTORY.name]
    only = {"_id": BEACONS.name}

    def whole(session: "ClientSession") -> Result:
        # First, since it makes another writer wait and then see all that we wrote.
        # By a random step, as in `latest`: a restored directory comes to no known revision.
        step = 1 + secrets.randbelow(MAX_STEP)
        revisions.update_one(only, {"$inc": {"revision": step}}, session=session)
        return work(session)

    # Not in the transaction: that may not make a collection on a sharded cluster.
    revisions.update_one(only, {"$setOnInsert": {"revision": 0}}, upsert=True)
    with database.client.start_session() as session:
        return session.with_transaction(whole)


def put(
    database: "Database[dict[str, Any]]",
    beacons: Iterable[Beacon],
    session: "ClientSession | None",
    *,
    dry_run: bool = False,
) -> Changed:
    """Add or replace these beacons; others stay. A dry run only tells what that would do."""
    collection = database[BEACONS.name]
    wanted = {beacon.mac: beacon for beacon in beacons}
    stored = [Beacon.from_document(document) for document in collection.find(session=session)]
    known = {beacon.mac: beacon for beacon in stored if beacon.mac in wanted}
    write = [beacon for mac, beacon in wanted.items() if known.get(mac) != beacon]
    if write and not dry_run:
        # `level` is the shard key: on another level it is another shard's document.
        old = {"_id": {"$in": [beacon.mac for beacon in write]}}
        collection.delete_many(old, session=session)
        now = {"registered_at": int(time.time())}
        collection.insert_many([beacon.document() | now for beacon in write], session=session)
    moves = [Moved(known[beacon.mac], beacon) for beacon in write if beacon.mac in known]
    return Changed(
        added=len(write) - len(moves),
        moves=moves,
        unchanged=len(wanted) - len(write),
        others=len(stored) - len(known),
    )
