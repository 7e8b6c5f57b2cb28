"""How beacons are written to the directory, in a transaction of `revisions`."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from common.beacon import MAX_ALIASES, TOO_MANY_ALIASES, Beacon
from common.schema import BEACONS

if TYPE_CHECKING:  # the driver is the caller's
    from pymongo.client_session import ClientSession
    from pymongo.database import Database


# How many documents are written with one command: with all aliases one is 3 kB in memory.
GROUP = 200


class Moved(NamedTuple):
    """A beacon as it was in the directory, and as it is then."""

    before: Beacon
    after: Beacon


class Changed(NamedTuple):
    """What a write did, in beacons; `others` are in the directory but were not in the write."""

    added: int
    moves: list[Moved]  # to another place, or other aliases
    unchanged: int
    others: int
    beacons: list[Beacon]  # those of the write, as the directory has them then
    gone: list[str]  # entries whose ids these have now

    def __str__(self) -> str:
        """Return one line for people."""
        text = f"{self.added} added, {len(self.moves)} changed, {self.unchanged} unchanged"
        return f"{text}, {self.others} not in the file and left alone" if self.others else text


class Refusal(NamedTuple):
    """Why a beacon cannot be as it was to be written."""

    mac: str  # of the beacon
    field: str
    reason: str


class IdsRefused(ValueError):
    """Beacons were to have ids that others have, or too many; nothing was written."""

    def __init__(self, refusals: list[Refusal]) -> None:
        super().__init__("; ".join(f"{mac}: {field} {reason}" for mac, field, reason in refusals))
        self.refusals = refusals


def put(
    database: "Database[dict[str, Any]]",
    beacons: Iterable[Beacon],
    session: "ClientSession | None",
    *,
    keeps_aliases: bool = False,
    takes_ids: bool = False,
    dry_run: bool = False,
) -> Changed:
    """Add or replace these beacons; others stay. A dry run only tells what that would do.

    With `keeps_aliases` those that they have stay, beside those of the write. An id belongs to one
    beacon. With `takes_ids` it is taken from the one that has it; that one goes when it is its own
    id, and its aliases come along. Raises IdsRefused.
    """
    collection = database[BEACONS.name]
    stored: dict[str, Beacon] = {}
    since: dict[str, int] = {}
    for document in collection.find(session=session):
        stored[document["_id"]] = Beacon.from_document(document)
        if "registered_at" in document:  # older versions wrote none
            since[document["_id"]] = document["registered_at"]
    wanted = {}
    for beacon in beacons:
        kept = stored[beacon.mac].aliases if keeps_aliases and beacon.mac in stored else ()
        wanted[beacon.mac] = beacon.with_aliases((*beacon.aliases, *kept))
    reduced, gone = _take(wanted, stored, takes_ids=takes_ids)
    write = [beacon for beacon in wanted.values() if stored.get(beacon.mac) != beacon]
    if (write or reduced) and not dry_run:
        # `level` is the shard key: on another level it is another shard's document.
        old = [*gone, *(beacon.mac for beacon in (*write, *reduced))]
        collection.delete_many({"_id": {"$in": old}}, session=session)
        new, now = [*write, *reduced], int(time.time())
        for first in range(0, len(new), GROUP):
            documents = []
            for beacon in new[first : first + GROUP]:
                registered_at = since.get(beacon.mac) if _hangs_there(beacon, stored) else now
                registered = {} if registered_at is None else {"registered_at": registered_at}
                documents.append(beacon.document() | registered)
            collection.insert_many(documents, session=session)
    known = wanted.keys() & stored.keys()
    return Changed(
        added=len(wanted) - len(known),
        moves=[Moved(stored[beacon.mac], beacon) for beacon in write if beacon.mac in stored],
        unchanged=len(wanted) - len(write),
        others=len(stored) - len(known) - len(gone),
        beacons=list(wanted.values()),
        gone=gone,
    )


def _take(
    wanted: dict[str, Beacon], stored: dict[str, Beacon], *, takes_ids: bool
) -> tuple[list[Beacon], list[str]]:
    """Return which other beacons lose aliases to the wanted ones, without these, and which go.

    The wanted ones get the other ids of those that go. Raises IdsRefused.
    """
    owners: dict[str, str] = {}
    reduced, gone = [], []
    refusals = [
        _refusal(beacon, name, owners[name])
        for beacon in wanted.values()
        for name in beacon.ids
        if owners.setdefault(name, beacon.mac) != beacon.mac
    ]
    for other in stored.values():
        lost = [name for name in other.ids if name in owners]
        if other.mac in wanted or not lost:
            continue
        if not takes_ids:
            refusals += [_refusal(wanted[owners[name]], name, other.mac) for name in lost]
        elif other.mac in owners:
            taker = wanted[owners[other.mac]]
            wanted[taker.mac] = taker.with_aliases(
                (*taker.aliases, *(name for name in other.aliases if name not in owners))
            )
            gone.append(other.mac)
        else:
            reduced.append(other.with_aliases(set(other.aliases) - owners.keys()))
    refusals += [
        Refusal(beacon.mac, "aliases", TOO_MANY_ALIASES)
        for beacon in wanted.values()
        if len(beacon.aliases) > MAX_ALIASES
    ]
    if refusals:
        raise IdsRefused(refusals)
    return reduced, gone


def _refusal(beacon: Beacon, name: str, owner: str) -> Refusal:
    if name == beacon.mac:
        return is_alias(name, owner)
    return Refusal(beacon.mac, "aliases", f"{name} is an id of the beacon {owner}")


def is_alias(mac: str, owner: str) -> Refusal:
    """Return why nothing is written of an id that another beacon has."""
    return Refusal(mac, "mac", f"is another id of the beacon {owner}")


def _hangs_there(beacon: Beacon, stored: dict[str, Beacon]) -> bool:
    """Tell whether a beacon hangs already where it is to hang."""
    before = stored.get(beacon.mac)
    return before is not None and before.with_aliases(()) == beacon.with_aliases(())
