"""The collection `people`: names and teams, changed in transactions, one writer at a time."""

import hashlib
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import bson
import msgspec
import pymongo
from pymongo.client_session import ClientSession
from pymongo.collation import Collation
from pymongo.database import Database

from common import revisions, schema
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.driver import domain_errors, readable
from ingest.storage.detections import documents
from ingest.storage.people.person import Person

# All services hold all of it, compressed: so many people, and so many bytes of documents.
MAX_PEOPLE, MAX_PEOPLE_BYTES = 20_000, 4 * 1024 * 1024
READ_TIMEOUT_SECONDS = 0.9
# All of it, sorted by the database.
READ_ALL_SECONDS = 5.0
# A whole import, and the writers that it waits for.
WRITE_TIMEOUT_SECONDS = 10
# How many are decoded, and written, at once.
PIECE = 250
# Of how many that a write changed it tells what they were.
MAX_CHANGES = 100
# As `by_name` sorts places: "Room 2" before "Room 10", whatever the case. The database does it,
# since 20,000 names would take us megabytes.
_AS_READ = Collation("en", numericOrdering=True)

Document = dict[str, Any]
Result = TypeVar("Result")


class TooManyPeople(Exception):
    """There are more than can be kept: the text says how many would be, and may be."""


class Change(NamedTuple):
    """A person as they stood in the directory, and as they do then."""

    before: Person
    after: Person


class Changes(NamedTuple):
    """What a write did, in people; `others` stand in the directory and not in the write."""

    added: int
    changed: int
    unchanged: int
    others: int
    first: list[Change]  # of those that are changed


class Snapshot(NamedTuple):
    """All people as they were read; `tag` changes with the content."""

    revision: int
    tag: str
    teams: Mapping[StaffId, str]
    is_ascii: bool
    pieces: list[bytes]

    def people(self) -> Iterator[list[Person]]:
        """Yield all by name, some at a time."""
        for piece in self.pieces:
            yield msgspec.msgpack.decode(zlib.decompress(piece), type=list[Person])


class People:
    """Owns the collection `people`, which lies on one shard, and its revision."""

    def __init__(self, database: Database[Document]) -> None:
        self._database = database
        self._people = database[schema.PEOPLE.name]

    def revision(self) -> int:
        """Return a number that grows with every write through this class, by any service."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            return revisions.current(self._database, schema.PEOPLE)

    def read(self, revision: int) -> Snapshot:
        """Return everybody; never more than PIECE as objects. Raises StoreUnavailable."""
        teams: dict[StaffId, str] = {}
        pieces = []
        content = hashlib.blake2b(digest_size=8)
        is_ascii = True
        with domain_errors(), pymongo.timeout(READ_ALL_SECONDS):
            stored = self._people.find(batch_size=PIECE).collation(_AS_READ)
            people = readable(_person, stored.sort([("name", 1), ("_id", 1)]))
            while piece := list(islice(people, PIECE)):
                teams |= {person.staff_id: sys.intern(person.team) for person in piece}
                is_ascii &= all(text.isascii() for person in piece for text in person[1:4])
                packed = msgspec.msgpack.encode(piece)
                content.update(packed)
                pieces.append(zlib.compress(packed))
        return Snapshot(revision, content.hexdigest(), teams, is_ascii, pieces)

    def find(self, staff_id: StaffId) -> Person | None:
        """Return one person as the directory has them now. Raises StoreUnavailable."""
        with domain_errors(), pymongo.timeout(READ_TIMEOUT_SECONDS):
            return self._find([staff_id]).get(staff_id)

    def put(self, person: Person, check: Callable[[Person | None], None]) -> None:
        """Add or replace one, unless `check` raises something of what there was.

        Raises TooManyPeople, StoreUnavailable.
        """

        def work(session: ClientSession) -> None:
            check(self._find([person.staff_id], session).get(person.staff_id))
            self._put([person], Person._fields, session)

        self._change(work)

    def put_all(
        self, people: Sequence[Person], fields: Collection[str], *, dry_run: bool
    ) -> Changes:
        """Add or change all of them or none; a dry run only tells what that would do.

        Only these fields of those who are there already. Raises TooManyPeople, StoreUnavailable.
        """
        if dry_run:
            with domain_errors(), pymongo.timeout(WRITE_TIMEOUT_SECONDS):
                return self._put(people, fields, None)
        return self._change(lambda session: self._put(people, fields, session))

    def remove(self, staff_id: StaffId) -> None:
        """Take a person out; not to be there is success. Raises StoreUnavailable."""
        self._change(lambda session: self._people.delete_one({"_id": staff_id}, session=session))

    def _put(
        self, people: Sequence[Person], fields: Collection[str], session: ClientSession | None
    ) -> Changes:
        """Write in a session; without one only tell what that would do."""
        count, size = self._size(session)
        added = known = changed = 0
        first: list[Change] = []
        for start in range(0, len(people), PIECE):
            group = people[start : start + PIECE]
            stored = self._find([person.staff_id for person in group], session)
            pairs = [_change(stored.get(person.staff_id), person, fields) for person in group]
            writes = [(before, after) for before, after in pairs if before != after]
            moves = [Change(before, after) for before, after in writes if before]
            known += len(stored)
            changed += len(moves)
            added += len(writes) - len(moves)
            first += moves[: MAX_CHANGES - len(first)]
            size += sum(_bytes(after) - _bytes(before) for before, after in writes)
            if writes and session:
                replaced = [
                    pymongo.ReplaceOne({"_id": after.staff_id}, _document(after), upsert=True)
                    for _, after in writes
                ]
                self._people.bulk_write(replaced, session=session)
        _check_room(count + added, size)
        return Changes(added, changed, len(people) - added - changed, count - known, first)

    def _size(self, session: ClientSession | None) -> tuple[int, int]:
        """Return how many people there are, and the bytes of their documents."""
        total = {"people": {"$sum": 1}, "bytes": {"$sum": {"$bsonSize": "$$ROOT"}}}
        rows = list(self._people.aggregate([{"$group": {"_id": None} | total}], session=session))
        return (rows[0]["people"], rows[0]["bytes"]) if rows else (0, 0)

    def _find(
        self, staff_ids: Sequence[StaffId], session: ClientSession | None = None
    ) -> dict[StaffId, Person]:
        stored = self._people.find({"_id": {"$in": list(staff_ids)}}, session=session)
        return {person.staff_id: person for person in readable(_person, stored)}

    def _change(self, work: Callable[[ClientSession], Result]) -> Result:
        with domain_errors(), pymongo.timeout(WRITE_TIMEOUT_SECONDS):
            return revisions.change(self._database, schema.PEOPLE, work)


def _change(
    before: Person | None, person: Person, fields: Collection[str]
) -> tuple[Person | None, Person]:
    """Return somebody as they are, and with these fields of what was sent."""
    if before is None:
        return None, person
    return before, before._replace(**{name: getattr(person, name) for name in fields})


def _check_room(people: int, size: int) -> None:
    """Raise TooManyPeople where these do not fit."""
    if people > MAX_PEOPLE:
        raise TooManyPeople(f"there would be {people} people, at most {MAX_PEOPLE} are kept")
    if size > MAX_PEOPLE_BYTES:
        reason = f"the names and notes of {people} people would take {size} bytes"
        raise TooManyPeople(f"{reason}, at most {MAX_PEOPLE_BYTES} are kept")


def _person(stored: Document) -> Person:
    texts = (str(stored["name"]), str(stored["team"]), str(stored["note"]))
    return Person(documents.staff_id(stored["_id"]), *texts, bool(stored["on_duty"]))


def _document(person: Person) -> Document:
    document = person._asdict()
    return {"_id": document.pop("staff_id")} | document


def _bytes(person: Person | None) -> int:
    return len(bson.encode(_document(person))) if person else 0
