"""The files of a backup: documents of one collection, as BSON, one after the other, in gzip.

Other programs read that, too; `age -d` first, where they are encrypted.
"""

import gzip
import hashlib
import struct
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

from mongo.backup.encryption import Key
from mongo.backup.errors import BackupError
from mongo.backup.shelf import Files

# Of documents, before they are compressed: each chunk is in memory as a whole, up to four times.
CHUNK_BYTES = 2 * 2**20
# Dates that no calendar has, and texts that are none.
_LENIENT: CodecOptions[dict[str, Any]] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS, unicode_decode_error_handler="replace"
)


class Chunk(NamedTuple):
    """A file of a backup, of which collection it has how many documents, and what it must be."""

    file: str
    of: str
    documents: int
    size: int  # bytes
    sha256: str


class Writer:
    """Writes the chunks of a backup."""

    def __init__(self, files: Files, key: Key | None) -> None:
        self._files = files
        self._key = key
        self._zipped = BytesIO()
        self._open: gzip.GzipFile | None = None
        self._of = ""
        self._count = self._size = 0
        self.chunks: list[Chunk] = []

    def add(self, of: str, documents: bytes, count: int) -> None:
        """Add documents of a collection."""
        if of != self._of or self._size >= CHUNK_BYTES:
            self.finish()
        if not self._open:
            self._open = gzip.GzipFile("", "wb", 6, self._zipped, mtime=0)
            self._of = of
        self._open.write(documents)
        self._count += count
        self._size += len(documents)

    def finish(self) -> None:
        """Close the chunk that is open: it is there for good then."""
        if not self._open:
            return
        self._open.close()
        content = self._zipped.getvalue()
        self._zipped = BytesIO()
        name = f"{self._of}.{len(self.chunks):05}.bson.gz"
        self.chunks.append(self.write(name, self._of, self._count, content))
        self._open, self._of, self._count, self._size = None, "", 0, 0

    def write(self, name: str, of: str, count: int, content: bytes) -> Chunk:
        """Write a file, encrypted where there is a key; return what it is."""
        if self._key:
            name, content = self._key.named(name), self._key.encrypt(content)
        self._files.write(name, content)
        return Chunk(name, of, count, len(content), hashlib.sha256(content).hexdigest())


def content_of(chunk: Chunk, files: Files, key: Key | None) -> bytes:
    """Return what was written. Raises BackupError, also where it is another file now."""
    content = files.read(chunk.file)
    if (len(content), hashlib.sha256(content).hexdigest()) != (chunk.size, chunk.sha256):
        raise BackupError(f"{files} is damaged: {chunk.file} was another file")
    return key.decrypt(content) if key else content


def decoded(raw: bytes) -> dict[str, Any]:
    """Return the fields of a document, whatever other hands have put there."""
    return bson.decode(raw, _LENIENT)


def split(documents: bytes) -> Iterator[bytes]:
    """Yield each of documents that follow each other."""
    start = 0
    while start < len(documents):
        end = start + struct.unpack_from("<i", documents, start)[0]
        yield documents[start:end]
        start = end
