"""What older data need, to be found by the programs of today; each may be run again.

Services may run meanwhile, of this release or the one before. What only looks different is
normalised where it leaves the services' storage, and needs nothing here.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from pymongo import UpdateOne
from pymongo.client_session import ClientSession
from pymongo.database import Database

from common import beacon_id, revisions, schema
from common.beacon import Beacon

Document = dict[str, Any]
Say = Callable[[str], None]
# What is sent to the database at once, and after how many progress is told.
BATCH, TOLD = 500, 20_000
MAX_EXACT = 2**53 - 1  # up to there a staff id is a number
_DECIMAL = "^(0|[1-9][0-9]{0,15})$"
_NUMBER = "^ *-?[0-9]+([.][0-9]+)? *$"
_STORED_MAC = f"^({beacon_id.STORED})$"
# As each service does with what it changes: whoever has a history in memory reads it again.
_STAMPED = {"$currentDate": {schema.STAMP: {"$type": "timestamp"}}}


class Migration(NamedTuple):
    """What brings data to a version, and the words for it."""

    version: int
    what: str
    run: Callable[[Database[Document], Say], None]


def texts_become_values(database: Database[Document], say: Say) -> None:
    """Store ids, times, strengths and beacons as services look for them.

    The source system, and imports from it, have what a form sent: "7" is another shard's than 7.
    """
    _normalise_beacons(database)
    staff = database[schema.STAFF.name]
    odd: Document = {
        "$or": [
            {"staff_id": {"$type": "string", "$regex": _DECIMAL}},
            {"timestamp": {"$type": "string", "$regex": _NUMBER}},
            {"rssi": {"$type": "string", "$regex": _NUMBER}},
            {"mac": {"$type": "string", "$not": re.compile(_STORED_MAC)}},
        ]
    }
    fields = {"staff_id": 1, "timestamp": 1, "rssi": 1, "mac": 1}
    done = 0
    changes = _with_changes(staff.find(odd, fields, batch_size=BATCH))
    while rows := list(islice(changes, BATCH)):
        for row, changed in rows:
            if "staff_id" in changed:  # alone: it may become another shard's
                staff.update_one(_named(row), {"$set": changed} | _STAMPED)
        others = [
            UpdateOne(_named(row), {"$set": changed} | _STAMPED)
            for row, changed in rows
            if "staff_id" not in changed
        ]
        if others:
            staff.bulk_write(others, ordered=False)
        if done // TOLD != (done + len(rows)) // TOLD:
            say(f"{done + len(rows):,} detections")
        done += len(rows)
    if done:
        say(f"{done:,} detections in all")
    # Who was known by such a text is known by the number: the services note it with its new stamp.
    texts = database[schema.LATEST.name].find({"_id": {"$type": "string", "$regex": _DECIMAL}})
    for person in texts:
        if _staff_id(person["_id"]) != person["_id"]:
            database[schema.LATEST.name].delete_one({"_id": person["_id"]})


def _named(row: Document) -> Document:
    return {"_id": row["_id"], "staff_id": row.get("staff_id")}


def _with_changes(rows: Any) -> Iterator[tuple[Document, Document]]:
    """Yield rows that are to be changed, each with what is to be set."""
    for row in rows:
        values = {
            "staff_id": _staff_id(row.get("staff_id")),
            "timestamp": _number(row.get("timestamp")),
            "rssi": _number(row.get("rssi")),
            "mac": _mac(row.get("mac")),
        }
        if changed := {name: new for name, new in values.items() if new != row.get(name)}:
            yield row, changed


def _staff_id(value: Any) -> Any:
    if isinstance(value, str) and re.match(_DECIMAL, value) and int(value) <= MAX_EXACT:
        return int(value)
    return value


def _number(value: Any) -> Any:
    return int(float(value)) if isinstance(value, str) and re.match(_NUMBER, value) else value


def _mac(value: Any) -> Any:
    known = beacon_id.read(value)[0] if isinstance(value, str) else ""
    return known or value


def _normalise_beacons(database: Database[Document]) -> None:
    """Let each beacon of another program be found by its id, as the directory spells it."""
    beacons = database[schema.BEACONS.name]
    of_others = list(beacons.find({"_id": {"$type": "objectId"}}))

    def replace(session: ClientSession | None) -> None:
        for old in of_others:
            mac, level, location = (old.get(name) for name in ("mac", "level", "location"))
            if isinstance(mac, str) and level is not None and location is not None:
                beacon = Beacon(_mac(mac), str(level), str(location))
                if beacons.find_one({"_id": beacon.mac}, session=session) is None:
                    beacons.insert_one(beacon.document(), session=session)
                beacons.delete_one({"_id": old["_id"], "level": level}, session=session)

    if of_others:
        revisions.change(database, schema.BEACONS, replace)


MIGRATIONS = (Migration(2, "texts of the source system become numbers", texts_become_values),)
VERSION = MIGRATIONS[-1].version
