"""Makes a backup while detections come in, as of one moment.

First all collections are copied, however long that takes. A change stream tells which documents
were changed meanwhile: they are copied again, round by round, and what is left in the end at one
time of the database's clock (read concern `snapshot`). That time is the backup's. A snapshot of
all of it would not do: MongoDB keeps one for 5 minutes.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import bson
from bson import ObjectId, Timestamp
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo.change_stream import ChangeStream
from pymongo.client_session import ClientSession
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from common.schema import COLLECTIONS, DATABASE
from mongo.backup import spools
from mongo.backup.backup import CHANGES, DIGEST, Backup, Manifest, change, write_manifest
from mongo.backup.chunks import Chunk, Writer, decoded, split
from mongo.backup.digest import Digest
from mongo.backup.encryption import Key
from mongo.backup.errors import BackupError
from mongo.backup.keys import Keys
from mongo.backup.marks import MARKS, mark_copy, remove_copy
from mongo.backup.shelf import Shelf
from mongo.clients import Client

# What the driver holds at once: blocks have 8 KiB each, and so has somebody in `latest`.
BATCH = 100
# How many changed documents may be left for the end, which has 5 minutes for them.
LAST = 5000
ROUNDS = 20
# The oplog reaches back for two hours (mongod.conf): the stream is read far more often.
AWAIT_MS = 1
HISTORY_LOST = 286
# Of an event all that is needed.
_EVENT: list[dict[str, Any]] = [
    {"$project": {"operationType": 1, "ns.coll": 1, "documentKey._id": 1}}
]
_NAMES = [collection.name for collection in COLLECTIONS]

Stream = ChangeStream[dict[str, Any]]


def make(
    client: Client,
    shelf: Shelf,
    spool_folder: Path | None,
    version: str,
    say: Callable[[str], None],
    public_keys: str = "",
) -> Backup:
    """Make a backup on a shelf, encrypted to public keys if there are any; return it.

    Raises BackupError, PyMongoError, OSError: then the shelf has no new backup.
    """
    key = Key.to(public_keys)
    with shelf.being_made() as files:
        writer = Writer(files, key)
        with closing(Keys()) as changed:
            at, copied = _Copy(client, writer, changed, say).whole(
                lambda: spools.copy(spool_folder, writer) if spool_folder else []
            )
        manifest = Manifest(
            (at.time, at.inc),
            (0, 0),
            version,
            tuple(_NAMES),
            tuple(writer.chunks),
            tuple(copied),
            tuple(public_keys.split()),
        )
        say("reading it back")
        digest = Digest()
        for of, document in Backup(files, manifest, key).documents():
            digest.add(of, document)
        written = len(writer.chunks)
        for entry in digest.entries():
            writer.add(DIGEST, entry, 1)
        writer.finish()
        newest = max(at, digest.newest)
        manifest = manifest._replace(newest=(newest.time, newest.inc), chunks=tuple(writer.chunks))
        backup = Backup(files, manifest, key)
        for chunk in (*writer.chunks[written:], *copied):
            backup.content(chunk)
        write_manifest(files, manifest)
    return Backup(shelf.files(files.name), manifest, key)


class _Copy:
    """One run over a database."""

    def __init__(
        self, client: Client, writer: Writer, changed: Keys, say: Callable[[str], None]
    ) -> None:
        self._client = client
        durable = ReadConcern("majority")
        self._database = client.get_database(DATABASE, read_concern=durable)
        self._writer = writer
        self._say = say
        self._changed = changed

    def whole(
        self, copy_spools: Callable[[], Sequence[Chunk]]
    ) -> tuple[Timestamp, Sequence[Chunk]]:
        """Copy everything; return as of which time, and the spools.

        What waits in a spool is stored soon, and gone there. So they are copied before that time:
        what was acknowledged before is in the one or the other.
        """
        with (
            self._client.start_session() as session,
            self._database.watch(_EVENT, session=session, max_await_time_ms=AWAIT_MS) as stream,
        ):
            for name in _NAMES:
                self._copy(name, session, stream)
            for _ in range(ROUNDS):
                self._follow(stream)
                if len(self._changed) <= LAST:
                    break
                self._say(f"{len(self._changed)} were changed meanwhile")
                self._copy_changed(session)
            else:
                raise BackupError("more is changed than can be copied: try it at a quieter time")
            copied = copy_spools()
            at = self._finish(session, stream)
        return at, copied

    def _copy(self, name: str, session: ClientSession, stream: Stream) -> None:
        """Copy a collection, and follow what is changed."""
        collection = self._database[name]
        total, count, chunks = collection.estimated_document_count(), 0, len(self._writer.chunks)
        batches: Any = collection.find_raw_batches({}, session=session, batch_size=BATCH)
        for documents in batches:  # bytes, whatever the driver's types say
            number = len(list(split(documents)))
            self._writer.add(name, documents, number)
            count += number
            if len(self._writer.chunks) > chunks:
                chunks = len(self._writer.chunks)
                self._follow(stream)
                self._say(f"{name}: {count:,} of {max(count, total):,}")
        self._writer.finish()
        self._say(f"{name}: {count:,}")

    def _follow(self, stream: Stream, until: ObjectId | None = None) -> None:
        """Note what was changed: what the stream has, or up to the mark of a number."""
        try:
            while (event := stream.try_next()) is not None or until is not None:
                if event is None:
                    continue
                of = event.get("ns", {}).get("coll", "")
                if of == MARKS and until is not None and event["documentKey"]["_id"] == until:
                    return
                if of in _NAMES and "documentKey" in event:
                    self._changed.put(of, event["documentKey"]["_id"])
                elif of in _NAMES or event["operationType"] in ("dropDatabase", "invalidate"):
                    raise BackupError(f"{of or DATABASE} was dropped meanwhile")
        except OperationFailure as error:
            if error.code != HISTORY_LOST:
                raise
            raise BackupError("it took so long that the oplog lacks what was changed") from error

    def _copy_changed(self, session: ClientSession) -> None:
        """Copy once more what was changed, as it is now."""
        while (changed := self._changed.take(BATCH))[1]:
            of, names = changed
            query = {"_id": {"$in": names}}
            batches: Any = self._database[of].find_raw_batches(query, session=session)
            self._write_changed(of, names, chain.from_iterable(map(split, batches)))
        self._writer.finish()

    def _finish(self, session: ClientSession, stream: Stream) -> Timestamp:
        """Copy the rest as of one time, and return that."""
        mark = mark_copy(self._database, session)
        at = session.operation_time
        if at is None:
            raise BackupError("the database tells no time: is it no replica set?")
        self._follow(stream, mark)
        remove_copy(self._database, mark)
        concern = {"level": "snapshot", "atClusterTime": at}
        raw = CodecOptions(document_class=RawBSONDocument)
        database = self._database.with_options(codec_options=raw)
        while (changed := self._changed.take(BATCH))[1]:
            of, names = changed
            find = {"find": of, "filter": {"_id": {"$in": names}}, "readConcern": concern}
            rows = database.cursor_command(find, codec_options=raw)
            self._write_changed(of, names, (bytes(row.raw) for row in rows))
        self._writer.finish()
        return at

    def _write_changed(self, of: str, names: list[Any], documents: Iterable[bytes]) -> None:
        deleted = {bson.encode({"": name}): name for name in names}
        for raw in documents:
            name = decoded(raw)["_id"]
            deleted.pop(
                bson.encode({"": name}), None
            )  # while it moves to another shard, it is on two
            self._writer.add(CHANGES, change(of, name, raw), 1)
        for name in deleted.values():
            self._writer.add(CHANGES, change(of, name, None), 1)
