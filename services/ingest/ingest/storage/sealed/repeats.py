"""Which detections have their first copy in a block, and maybe no row any more."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from bson import ObjectId
from pymongo import ASCENDING
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from common import schema
from ingest.rules.detection_identity import REUSED_SECONDS, is_reused, next_id
from ingest.rules.request_parameters import StaffId, TimeRange
from ingest.storage.database.driver import domain_errors
from ingest.storage.detections.documents import Document, is_timeless, key_bytes
from ingest.storage.sealed.blocks import Block, of_row
from ingest.storage.sealed.damage import readable
from ingest.storage.sealed.sealed import tiles_since

# Of how many people a block is looked for with one command: MongoDB takes 1000 stages.
PEOPLE_AT_ONCE = 100
# How many blocks the driver holds at once: 13 KiB each.
BLOCKS_AT_ONCE = 8
# How many names of a chain are looked for, beginning with that which is free among the rows: those
# after it are of counters that began anew, and went with one turn of sealing each.
MAX_NAMES = 50


class SealedRepeats:
    """Looks into the collection `sealed` for detections by their names."""

    def __init__(self, staff: Collection[Document]) -> None:
        sealed = staff.database[schema.SEALED.name]
        self._sealed = sealed.with_options(read_concern=ReadConcern("majority"))

    def find(self, rows: Sequence[Document]) -> Iterator[int]:
        """Yield the positions of those of some documents that blocks have, some perhaps again.

        What a damaged block may have is none of them. Raises StoreUnavailable.
        """
        timeless = [n for n, row in enumerate(rows) if is_timeless(row)]
        timed = set(range(len(rows))).difference(timeless)
        with domain_errors():
            yield from self._of_their_seconds(rows, timed)
            for _, of_person in groupby(
                sorted(timeless, key=lambda n: (str(rows[n]["staff_id"]), rows[n]["timestamp"])),
                lambda n: rows[n]["staff_id"],
            ):
                yield from self._of_any_second(rows, list(of_person))

    def _of_their_seconds(
        self, rows: Sequence[Document], positions: Iterable[int]
    ) -> Iterator[int]:
        """Yield those whose names hold their times: the first copy is of the same second."""
        waiting: dict[StaffId, list[int]] = {}  # of each person the newest first
        for n in sorted(positions, key=lambda n: int(rows[n]["timestamp"]), reverse=True):
            waiting.setdefault(rows[n]["staff_id"], []).append(n)
        while waiting:
            people = {person: waiting.pop(person) for person in [*waiting][:PEOPLE_AT_ONCE]}
            oldest = [(person, rows[newer[-1]]["timestamp"]) for person, newer in people.items()]
            for stored in self._tiles(oldest):
                newer, within = people[stored["staff_id"]], []
                while newer and rows[newer[-1]]["timestamp"] <= stored["last"]:
                    within.append(newer.pop())
                if newer:
                    waiting[stored["staff_id"]] = newer
                if block := readable(stored):
                    yield from _of_block(block, rows, within)

    def _tiles(self, times: Sequence[tuple[StaffId, int]]) -> Iterator[Document]:
        """Yield the block of each person and time, or else the next one after it."""
        parts: list[list[Document]] = [
            [{"$match": tiles_since(*time)}, {"$sort": {"_id": ASCENDING}}, {"$limit": 1}]
            for time in times
        ]
        joined = [
            {"$unionWith": {"coll": self._sealed.name, "pipeline": steps}} for steps in parts[1:]
        ]
        yield from self._sealed.aggregate([*parts[0], *joined], batchSize=BLOCKS_AT_ONCE)

    def _of_any_second(self, rows: Sequence[Document], positions: Sequence[int]) -> Iterator[int]:
        """Yield those of a person whose names hold no time: the first copy is of any near time."""
        by_name: dict[str, list[int]] = {}
        for near in _near([rows[n] for n in positions]):
            for block in self._blocks(near):
                by_name = by_name or _by_name(rows, positions)
                for known in block.detections(block.named_otherwise()):
                    for n in by_name.get(known.id, ()):
                        if not is_reused(known.timestamp, rows[n]["timestamp"]):
                            yield n

    def _blocks(self, near: TimeRange) -> Iterator[Block]:
        """Yield the blocks that reach into a range, the oldest first."""
        query = tiles_since(near.staff_id, near.start)
        with self._sealed.find(query).sort("_id", ASCENDING) as every:
            for stored in every.batch_size(BLOCKS_AT_ONCE):
                if stored["first"] > near.end:
                    return
                if block := readable(stored):
                    yield block


def _of_block(block: Block, rows: Sequence[Document], positions: Sequence[int]) -> Iterator[int]:
    seconds = block.of_seconds({rows[n]["timestamp"] for n in positions})
    names = {(known.timestamp, known.id) for known in block.detections(seconds)}
    for n in positions:
        if (rows[n]["timestamp"], of_row(rows[n]).id) in names:
            yield n


def _by_name(rows: Sequence[Document], positions: Iterable[int]) -> dict[str, list[int]]:
    """Return of which documents each name may be: 0.3 ms for each, so only where blocks are."""
    by_name: dict[str, list[int]] = {}
    for n in positions:
        for name in _names(rows[n]):
            by_name.setdefault(name, []).append(n)
    return by_name


def _names(row: Document) -> Iterator[str]:
    """Yield by which names the first copy of a document may be told."""
    name = key_bytes(row)
    for _ in range(MAX_NAMES):
        yield of_row(row | {"_id": ObjectId(name)}).id
        name = next_id(name)


def _near(rows: Iterable[Document]) -> Iterator[TimeRange]:
    """Yield the ranges in which first copies of a person's documents may be, which come in time."""
    near: TimeRange | None = None
    for row in rows:
        start, end = row["timestamp"] - REUSED_SECONDS, row["timestamp"] + REUSED_SECONDS
        if near and start <= near.end:
            near = near._replace(end=end)
            continue
        if near:
            yield near
        near = TimeRange(row["staff_id"], start, end)
    if near:
        yield near
