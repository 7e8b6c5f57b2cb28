"""A backup: chunks of documents and, written last, the manifest, which is never encrypted.

The chunks `changes` have documents that were changed while others were copied; they count more
than the same documents in other chunks, the later more than the earlier. So all of it is as of one
moment.
"""

import gzip
import hashlib
import json
import struct
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from typing import Any, NamedTuple

import bson
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument

from mongo.backup.chunks import Chunk, content_of, decoded
from mongo.backup.encryption import Key
from mongo.backup.errors import BackupError
from mongo.backup.keys import Keys
from mongo.backup.shelf import MANIFEST, Files

FORMAT = 1
CHANGES, DIGEST = "changes", "digest"


class Manifest(NamedTuple):
    """What a backup has. Times are of the database's clock, as seconds and a count within them.

    `newest`: the last stamp that any detection has; what has a later one came in afterwards.
    """

    at: tuple[int, int]
    newest: tuple[int, int]
    version: str  # of Waymark
    collections: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    spools: tuple[Chunk, ...]
    encrypted_to: tuple[str, ...] = ()  # public keys
    format: int = FORMAT

    @property
    def documents(self) -> int:
        """Count them all, some twice."""
        return sum(chunk.documents for chunk in self.chunks if chunk.of != DIGEST)


class Stored(NamedTuple):
    """A document, decoded and as it is stored."""

    fields: dict[str, Any]
    raw: bytes


class Backup:
    """A backup that is read; its chunks are looked at again each time."""

    def __init__(self, files: Files, manifest: Manifest, key: Key | None = None) -> None:
        self.files = files
        self.manifest = manifest
        self._key = key

    @classmethod
    def opened(cls, files: Files, key: Key | None = None) -> "Backup":
        """Open a backup; `key` decrypts one that is encrypted. Raises BackupError."""
        try:
            values = json.loads(files.read(MANIFEST))
            if values["format"] != FORMAT:
                raise BackupError(f"{files} was made by another version: {values['version']}")
            for name in ("chunks", "spools"):
                values[name] = tuple(Chunk(**chunk) for chunk in values[name])
            lists = ("at", "newest", "collections", "encrypted_to")
            tuples = {name: tuple(values.get(name, ())) for name in lists}
            manifest = Manifest(**values | tuples)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupError(f"{files}/{MANIFEST} cannot be read: {error}") from error
        if not manifest.encrypted_to:
            return cls(files, manifest)
        which = f"{files} is encrypted to {' '.join(manifest.encrypted_to)}"
        if not key:
            raise BackupError(f"{which}: give --identity FILE, which has the private key")
        if not set(key.public) & set(manifest.encrypted_to):
            raise BackupError(f"{which}; the identity is of {' '.join(key.public)}")
        return cls(files, manifest, key)

    @property
    def identity(self) -> str:
        """Return what tells it from all others: its manifest names the hashes of all its files."""
        return hashlib.sha256(self.files.read(MANIFEST)).hexdigest()

    def check(self) -> None:
        """Raise BackupError if a file is not as it was written."""
        for chunk in (*self.manifest.chunks, *self.manifest.spools):
            self.content(chunk)

    def content(self, chunk: Chunk) -> bytes:
        """Return what a file has. Raises BackupError."""
        return content_of(chunk, self.files, self._key)

    def documents(self) -> Iterator[tuple[str, Stored]]:
        """Yield each document with its collection, as of the moment of the backup."""
        with closing(Keys()) as changed:
            for number, (of, name, _) in enumerate(self._changes()):
                changed.put(of, name, number)
            collections = changed.collections()
            for chunk in self.manifest.chunks:
                if chunk.of in (CHANGES, DIGEST):
                    continue
                for document in self.read(chunk):
                    name = document.fields["_id"]
                    if chunk.of not in collections or changed.number(chunk.of, name) is None:
                        yield chunk.of, document
            for number, (of, name, raw) in enumerate(self._changes()):
                if raw is not None and changed.number(of, name) == number:
                    yield of, Stored(decoded(raw), raw)

    def digest(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of its digest."""
        for chunk in self.manifest.chunks:
            if chunk.of == DIGEST:
                yield from (document.fields for document in self.read(chunk))

    def read(self, chunk: Chunk) -> Iterator[Stored]:
        """Yield the documents of a chunk. Raises BackupError."""
        count = 0
        content = BytesIO(self.content(chunk))
        try:
            with gzip.open(content) as file:
                while head := file.read(4):
                    raw = head + file.read(struct.unpack("<i", head)[0] - 4)
                    count += 1
                    yield Stored(decoded(raw), raw)
        except (OSError, EOFError, struct.error, BSONError) as error:
            raise BackupError(f"{self.files}/{chunk.file} is damaged: {error}") from error
        if count != chunk.documents:
            raise BackupError(f"{self.files}/{chunk.file} has {count} documents")

    def _changes(self) -> Iterator[tuple[str, Any, bytes | None]]:
        for chunk in self.manifest.chunks:
            if chunk.of == CHANGES:
                for document in self.read(chunk):
                    fields = RawBSONDocument(document.raw)
                    new = fields.get("document")
                    yield fields["of"], document.fields["id"], new.raw if new else None


def change(of: str, name: Any, raw: bytes | None) -> bytes:
    """Return what a chunk of changes has of a document; None: it was deleted."""
    new = {} if raw is None else {"document": RawBSONDocument(raw)}
    return bson.encode({"of": of, "id": name} | new)


def write_manifest(files: Files, manifest: Manifest) -> None:
    """Make a backup whole."""
    values = manifest._asdict()
    for name in ("chunks", "spools"):
        values[name] = [chunk._asdict() for chunk in values[name]]
    files.write(MANIFEST, json.dumps(values, indent=1).encode())
