"""What is in blocks though it is of the last hour: where somebody sealed by hand."""

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby
from operator import attrgetter

from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern

from common import schema
from ingest.errors import StoreUnavailable
from ingest.storage.database.driver import snapshot
from ingest.storage.detections.documents import Detection, Document, staff_id
from ingest.storage.sealed.by_place import BLOCKS_AT_ONCE, BY_TIME, SealedPlaces
from ingest.storage.sealed.damage import opened

# How many fit, some 300 bytes each: 90 people of a quarter of an hour. A 503 is better than to be
# killed; after that time they are none of the last minutes.
MAX_RECENT = 20_000
TOO_MANY = f"more than {MAX_RECENT} detections of the last minutes are sealed"

_TIME = attrgetter("timestamp")


class SealedRecent:
    """Reads the collection `sealed` by time."""

    def __init__(self, staff: Collection[Document]) -> None:
        self._staff = staff
        self._places = SealedPlaces(staff)
        sealed = staff.database[schema.SEALED.name]
        self._sealed = sealed.with_options(read_concern=ReadConcern("majority"))

    def newest_first(self, start: int, end: int, session: ClientSession) -> list[Detection]:
        """Return what blocks have between two unix seconds, both included, of everybody.

        Read before the rows of that time. Raises StoreUnavailable, DamagedBlock.
        """
        sealed: list[Detection] = []
        stored = self._sealed.find(_within(start, end), hint=BY_TIME, session=session)
        for block in opened(stored.batch_size(BLOCKS_AT_ONCE)):
            person = staff_id(block.document["staff_id"])
            sealed += block.newest_first(person, start, end)
            if len(sealed) > MAX_RECENT:
                raise StoreUnavailable(TOO_MANY)
        return sorted(sealed, key=_TIME, reverse=True)

    def count_by(self, seconds: int, start: int, end: int) -> Counter[int]:
        """Count what is no row, by the beginnings of times of so many seconds.

        Raises StoreUnavailable, DamagedBlock.
        """
        counts: Counter[int] = Counter()
        with snapshot(self._staff) as session:
            for _, block, indexes in self._places.newest_first(
                _within(start, end), BY_TIME, lambda _: True, session
            ):
                times = (block.times[index] for index in indexes)
                counts.update(at - at % seconds for at in times if start <= at <= end)
        return counts


def beside(rows: Iterable[Detection], sealed: Iterable[Detection]) -> Iterator[Detection]:
    """Yield everybody's rows and what blocks have, both newest first: what is both once."""
    every = merge(
        ((False, row) for row in rows),
        ((True, detection) for detection in sealed),
        key=lambda read: read[1].timestamp,
        reverse=True,
    )
    for _, second in groupby(every, key=lambda read: read[1].timestamp):
        of_rows: Counter[tuple[object, str]] = Counter()
        # Rows come first: of what is equal those of the first source.
        for is_sealed, detection in second:
            name = detection.staff_id, detection.id
            if is_sealed and of_rows[name]:
                of_rows[name] -= 1
                continue
            if not is_sealed:
                of_rows[name] += 1
            yield detection


def _within(start: int, end: int) -> Document:
    return {"until": {"$gte": start}, "last": {"$gte": start}, "first": {"$lte": end}}
