"""Counts and hashes of what a database has, whatever the order: of each person and collection."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import bson
from bson import Timestamp

from common import schema
from mongo.backup.backup import Stored

# Whose documents are told apart; of the others a collection has one hash.
OF_PERSONS = (schema.STAFF.name, schema.SEALED.name)
HASH_BYTES = 16
ROOM = 1 << 8 * HASH_BYTES


class Group(NamedTuple):
    """How many documents, and the sum of their hashes."""

    documents: int
    total: int


class Digest:
    """Grows with each document; some 300 bytes for each person."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, bytes], Group] = {}
        self.newest = Timestamp(0, 0)  # stamp of a detection

    def add(self, of: str, document: Stored) -> None:
        """Count a document."""
        key = of, _person(of, document.fields)
        count, total = self._groups.get(key, (0, 0))
        hashed = int.from_bytes(hashlib.blake2b(document.raw, digest_size=HASH_BYTES).digest())
        self._groups[key] = Group(count + 1, (total + hashed) % ROOM)
        if of == schema.STAFF.name:
            stamp = document.fields.get(schema.STAMP)
            if isinstance(stamp, Timestamp):
                self.newest = max(self.newest, stamp)

    def entries(self) -> Iterator[bytes]:
        """Yield it as a backup keeps it."""
        for (of, person), (count, total) in self._groups.items():
            hashed = total.to_bytes(HASH_BYTES)
            yield bson.encode({"of": of, "person": person, "count": count, "hash": hashed})

    def differences(self, entries: Iterable[dict[str, Any]]) -> list[str]:
        """Return where it differs from one that was kept."""
        groups = dict(self._groups)
        differ = []
        for entry in entries:
            group = groups.pop((entry["of"], entry["person"]), Group(0, 0))
            kept = Group(entry["count"], int.from_bytes(entry["hash"]))
            if group != kept:
                differ.append(_said(entry["of"], entry["person"], group.documents, kept.documents))
        return differ + [
            _said(of, person, group.documents, 0) for (of, person), group in groups.items()
        ]


def _person(of: str, fields: dict[str, Any]) -> bytes:
    return bson.encode({"": fields.get("staff_id")}) if of in OF_PERSONS else b""


def _said(of: str, person: bytes, count: int, kept: int) -> str:
    which = f" of staff {bson.decode(person)['']}" if person else ""
    return f"{of}{which}: {count} documents, {kept} in the backup"
