"""Restores a backup into a running stack that is empty.

Meanwhile the services' user may do nothing: what comes in goes to the spools, and nobody is shown
half of it. That stays so when it is interrupted, until it is run again.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bson import Timestamp
from bson.raw_bson import RawBSONDocument
from pymongo import UpdateOne
from pymongo.database import Database
from pymongo.errors import BulkWriteError, PyMongoError
from pymongo.read_concern import ReadConcern

from common import schema
from common.schema import COLLECTIONS, DATABASE, STAMP
from mongo import data, services_role
from mongo.backup import marks, spools
from mongo.backup.backup import Backup, Stored
from mongo.backup.chunks import decoded, split
from mongo.backup.digest import Digest
from mongo.backup.errors import BackupError
from mongo.clients import Client

Document = dict[str, Any]

# What is read and sent at once.
READ = 100
BATCH, BATCH_BYTES = 500, 2**20
# What the services had begun before they might do nothing any more is over by then.
OVER_SECONDS = 3.0
SAY_SECONDS = 5.0
DUPLICATE_KEY = 11000
# A stack has these before anybody does anything; they are replaced.
REPLACED = (
    schema.LATEST,
    schema.NOTES,
    schema.BEACONS,
    schema.DIRECTORY,
    schema.TELEMETRY,
)
# MongoDB puts its own time in the place of this where it is inserted, but not where it is set.
_NO_TIME = b"\x11" + STAMP.encode() + bytes(9)


def restore(
    client: Client,
    routers: Sequence[Client],
    backup: Backup,
    spool_folder: Path | None,
    say: Callable[[str], None],
    forget_again: Callable[[], None] = lambda: None,
) -> None:
    """Restore a backup, prove that it is restored, and let the services see it.

    `forget_again` deletes before that whoever was forgotten since the backup.
    Raises BackupError, NewerDataError, PyMongoError, OSError: run again it goes on.
    """
    say("checking the files")
    backup.check()
    database = client.get_database(DATABASE, read_concern=ReadConcern("majority"))
    services_role.ensure(client)  # one that was killed at its end may not have done so
    _check_can_be(database, backup)
    if not marks.begin_restore(database, backup.identity):
        raise BackupError("another backup is being restored")
    services_role.ensure(client)
    name = data.current(database).get("name")  # for a backup of a version that gave none
    for router in routers:
        router.admin.command("invalidateUserCache")
    time.sleep(OVER_SECONDS)
    for collection in REPLACED:
        database[collection.name].delete_many({})
    _insert_all(database, backup, say)
    say("comparing")
    if differences := differing(database, backup):
        raise BackupError(f"it differs from the backup: {'; '.join(differences[:3])}")
    if spool_folder:
        spools.give_back(backup, spool_folder)
    data.bring_up(database, say, name)
    forget_again()
    marks.end_restore(database)
    services_role.ensure(client)
    for router in routers:
        with suppress(PyMongoError):  # it looks within half a minute
            router.admin.command("invalidateUserCache")


def differing(database: Database[Document], backup: Backup) -> list[str]:
    """Return in what a database differs from a backup, but for what came in afterwards."""
    digest = Digest()
    for name in backup.manifest.collections:
        query = _not_since(backup) if name == schema.STAFF.name else {}
        batches: Any = database[name].find_raw_batches(query, batch_size=READ)
        for documents in batches:
            for raw in split(documents):
                digest.add(name, Stored(decoded(raw), raw))
    return digest.differences(backup.digest())


def _check_can_be(database: Database[Document], backup: Backup) -> None:
    """Raise BackupError for a database that is not empty, but for half of this backup."""
    known = {collection.name for collection in COLLECTIONS}
    if newer := set(backup.manifest.collections) - known:
        made_by = backup.manifest.version
        raise BackupError(f"Waymark {made_by} made it, and this one has no {', '.join(newer)}")
    for chunk in backup.manifest.chunks:
        for document in backup.read(chunk) if chunk.of == schema.DIRECTORY.name else ():
            if document.fields["_id"] == schema.DATA:
                data.check(document.fields)
    present = marks.restoring(database)
    if present == backup.identity:
        return
    if present:
        raise BackupError("the restore of another backup was interrupted: go on with that one")
    for collection in COLLECTIONS:
        query = _not_since(backup) if collection == schema.STAFF else {}
        if collection not in REPLACED and database[collection.name].find_one(query):
            raise BackupError(
                f"the stack is not empty: it has {collection.name}. Start one with another --data"
            )


def _not_since(backup: Backup) -> Document:
    return {STAMP: {"$not": {"$gt": Timestamp(*backup.manifest.newest)}}}


def _insert_all(database: Database[Document], backup: Backup, say: Callable[[str], None]) -> None:
    total, said_at = backup.manifest.documents, time.monotonic()
    shard_keys = {collection.name: collection.shard_key for collection in COLLECTIONS}
    batch: list[Stored] = []
    of, size = "", 0
    for count, (name, document) in enumerate(backup.documents()):
        if batch and (name != of or len(batch) >= BATCH or size >= BATCH_BYTES):
            _insert(database, of, shard_keys[of], batch)
            batch, size = [], 0
        of = name
        batch.append(document)
        size += len(document.raw)
        if time.monotonic() - said_at > SAY_SECONDS:
            said_at = time.monotonic()
            say(f"{count:,} of {total:,} documents")
    if batch:
        _insert(database, of, shard_keys[of], batch)


def _insert(
    database: Database[Document], of: str, shard_key: str, documents: Sequence[Stored]
) -> None:
    """Insert documents; those that are there become as they were."""
    set_later = [document for document in documents if _NO_TIME in document.raw]
    new = [document for document in documents if _NO_TIME not in document.raw]
    try:
        if new:
            database[of].insert_many([RawBSONDocument(each.raw) for each in new], ordered=False)
    except BulkWriteError as error:
        failed = (error.details or {})["writeErrors"]
        if others := [why["errmsg"] for why in failed if why["code"] != DUPLICATE_KEY]:
            raise BackupError(f"MongoDB refuses a document of {of}: {others[0]}") from error
        set_later += [new[why["index"]] for why in failed]
    if set_later:
        updates = [_setting(document, shard_key) for document in set_later]
        database[of].bulk_write(updates, ordered=False)


def _setting(document: Stored, shard_key: str) -> UpdateOne:
    names = {"_id", shard_key} - {""}
    query = {name: document.fields[name] for name in names}
    whole = [{"$replaceWith": {"$literal": RawBSONDocument(document.raw)}}]
    return UpdateOne(query, whole, upsert=True)
