"""The places in detections of one beacon that are in blocks."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from pymongo.collection import Collection

from common import schema
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.driver import domain_errors, snapshot
from ingest.storage.detections.documents import UNKNOWN, Document, text
from ingest.storage.directory.directory import Place
from ingest.storage.sealed import blocks, damage
from ingest.storage.sealed.blocks import Block
from ingest.storage.sealed.by_place import BY_BEACON, SealedPlaces, indexes_at, without_rows
from ingest.storage.sealed.sealed import Sealed

# The field of a corrected detection: the place that it was stored with, and which correction took
# it. The last correction of a detection can be taken back.
WAS = "was"
# How many blocks are looked for at once, and how many are rewritten with one transaction.
LOOK, GROUP = 100, 8


class Blocks(NamedTuple):
    """Some blocks of a person, by their `_id`s."""

    staff_id: StaffId
    names: Sequence[Any]


class Elsewhere:
    """What was heard of a beacon's ids at none of some places."""

    def __init__(self, ids: Sequence[str], places: Sequence[Place]) -> None:
        self.ids, self._places = ids, places

    @property
    def queries(self) -> list[Document]:
        """Return two, for the index: of all that is nested deeper it knows nothing."""
        (level, location), *others = self._places
        of_beacon: Document = {"mac": {"$in": list(self.ids)}}
        if others:
            of_beacon["$nor"] = [place._asdict() for place in others]
        return [
            of_beacon | {"level": {"$ne": level}},
            of_beacon | {"level": level, "location": {"$ne": location}},
        ]

    def has(self, place: Document) -> bool:
        """Tell whether a place is one of these."""
        is_there = Place(place["level"], place["location"]) in self._places
        return place["mac"] in self.ids and not is_there


class Corrected:
    """What has the place that a correction gave it."""

    def __init__(self, ids: Sequence[str], correction: str) -> None:
        self.ids, self._correction = ids, correction

    @property
    def queries(self) -> list[Document]:
        """Return what finds it."""
        return [{"mac": {"$in": list(self.ids)}, f"{WAS}.correction": self._correction}]

    def has(self, place: Document) -> bool:
        """Tell whether a place is one of these."""
        was = place.get(WAS) or {}
        return place["mac"] in self.ids and was.get("correction") == self._correction


# Which places of blocks are meant: as queries of which one has to match, and told here.
Wanted = Elsewhere | Corrected


class SealedPastPlaces:
    """Finds, counts and rewrites places of blocks."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff
        self._collection = staff.database[schema.SEALED.name]
        self._sealed = Sealed(staff)
        self._places = SealedPlaces(staff)

    def find(self, wanted: Wanted) -> list[Blocks]:
        """Return some of the blocks that have such a place. Raises StoreUnavailable."""
        with domain_errors():
            stored = self._collection.find(_with(wanted), {"staff_id": 1}).limit(LOOK)
            rows = sorted(stored, key=lambda row: str(row["_id"]))
        groups: list[Blocks] = []
        for person, of_person in groupby(rows, lambda row: row["staff_id"]):
            names = [row["_id"] for row in of_person]
            groups += [Blocks(person, names[n : n + GROUP]) for n in range(0, len(names), GROUP)]
        return groups

    def move(self, found: Blocks, wanted: Wanted, place: Place, correction: str) -> int:
        """Give such places of some blocks another one; return of how many detections.

        Of those that are no rows: rows count by themselves. 0 also where somebody else changed
        this person's blocks meanwhile: look again. Raises StoreUnavailable, DamagedBlock.
        """

        def moved(known: Document) -> Document:
            was = {name: known[name] for name in Place._fields} | {"correction": correction}
            return known | place._asdict() | {WAS: was}

        return self._change(found, wanted, moved)

    def give_back(self, found: Blocks, wanted: Corrected) -> int:
        """Give such places of some blocks back what they were; as `move`."""

        def as_it_was(known: Document) -> Document:
            place = {name: text(known[WAS].get(name), UNKNOWN) for name in Place._fields}
            return {name: value for name, value in known.items() if name != WAS} | place

        return self._change(found, wanted, as_it_was)

    def count(self, wanted: Wanted) -> Counter[StaffId]:
        """Count by person the detections at such places that are no rows.

        Raises StoreUnavailable, DamagedBlock.
        """
        of_person = {"$mergeObjects": ["$places", {"staff_id": "$staff_id"}]}
        steps: list[Document] = [
            {"$match": _with(wanted)},
            {"$unwind": "$places"},
            {"$replaceWith": of_person},
            {"$match": {"$or": wanted.queries}},
            {"$group": {"_id": "$staff_id", "count": {"$sum": "$count"}}},
        ]
        with snapshot(self._staff) as session:
            rows = self._collection.aggregate(steps, hint=BY_BEACON, session=session)
            counts = Counter({row["_id"]: int(row["count"]) for row in rows})
            macs = {"$in": list(wanted.ids)}
            for person, block, indexes in self._places.that_are_rows(
                _with(wanted), macs, 0, session
            ):
                counts[person] -= sum(wanted.has(block.places[block.at[n]]) for n in indexes)
        return +counts

    def _change(
        self, found: Blocks, wanted: Wanted, changed: Callable[[Document], Document]
    ) -> int:
        count = 0

        def corrected(block: Block) -> Document | None:
            nonlocal count
            at = {index for index, place in enumerate(block.places) if wanted.has(place)}
            (rows,) = self._places.rows([block.document], [at])
            count += len(without_rows(block, indexes_at(block, at), rows))
            places = [changed(p) if n in at else p for n, p in enumerate(block.places)]
            return blocks.corrected(block.document, places) if at else None

        return count if self._sealed.correct(*found, corrected) else 0


def _with(wanted: Wanted) -> Document:
    queries = [{"places": {"$elemMatch": query}} for query in wanted.queries]
    return {"$or": queries} | damage.not_left_out()
