"""Rows and blocks together are somebody's history, whatever was sealed, and wherever it was cut."""

import random
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any
from unittest.mock import Mock

import pytest
from pymongo.collection import Collection
from pymongo.database import Database

from ingest.rules.request_parameters import TimeRange
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.documents import Detection, Document, detection
from ingest.storage.sealed import blocks, sealed
from ingest.storage.sealed.repeats import SealedRepeats
from ingest.storage.sealed.sealed import GRACE_SECONDS, Sealed, Settled
from tests.services.ingest.sealed.test_blocks import TIME, WAS, row

ME, OTHER = 7, "other"
BLOCKS = {"count": {"$exists": True}}
# How many of the newest stay rows.
STAY = 2


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few detections make a few blocks."""
    for name, size in (("MAX_DETECTIONS", 8), ("FEW", 4), ("MAX_LATE", 12), ("ROWS_AT_ONCE", 3)):
        monkeypatch.setattr(sealed, name, size)
    monkeypatch.setattr(sealed, "MAX_SECOND", 5)
    monkeypatch.setattr(sealed, "RECENT", STAY)
    monkeypatch.setattr(sealed, "BLOCKS_AT_ONCE", 2)
    monkeypatch.setattr(blocks, "MAX_DETECTIONS", 8)


class Killed(Exception):
    """Whoever seals ends here."""


class Cut:
    """A collection with which so many writes succeed, with others in between, and then none."""

    def __init__(
        self,
        collection: Collection[Document],
        left: list[int],
        meanwhile: Callable[[], object],
    ) -> None:
        self._collection = collection
        self._left = left  # of the writes of both collections
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._collection, name)
        if name == "with_options":
            return lambda **options: Cut(attribute(**options), self._left, self._meanwhile)
        if name == "database":
            return self
        is_write = name.split("_")[0] in ("insert", "delete", "update")
        return self._cut(attribute) if is_write else attribute

    def __getitem__(self, name: str) -> "Cut":
        """Return another collection of the same database."""
        return Cut(self._collection.database[name], self._left, self._meanwhile)

    @property
    def client(self) -> Any:
        return self._collection.database.client

    def _cut(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def cut(*arguments: Any, **options: Any) -> Any:
            if not self._left[0]:
                raise Killed
            self._left[0] -= 1
            self._meanwhile()
            return write(*arguments, **options)

        return cut


class History:
    """The database, and what it has to hold: every detection that was stored, once."""

    def __init__(self, database: Database[Document], seed: int) -> None:
        self.chance = random.Random(seed)
        self.staff, self.blocks = database["staff"], database["sealed"]
        for collection in (self.staff, self.blocks):
            collection.delete_many({})
        self.truth: dict[bytes, Document] = {}
        self.now = TIME + 1000

    def sealer(self, writes: int = 10**9, meanwhile: Callable[[], object] = lambda: None) -> Sealed:
        cut: Any = Cut(self.staff, [writes], meanwhile)
        return Sealed(cut)

    def step(self, sealer: Sealed) -> None:
        """Do something at random; who seals may be killed, or frozen for minutes."""
        kind = self.chance.random()
        if kind < 0.2:
            self.store(self.chance.randint(1, 12))
        elif kind < 0.4:
            self.correct()
        elif kind < 0.55:
            self.now += GRACE_SECONDS + 1
        else:
            with suppress(Killed):
                if kind < 0.8:
                    sealer.seal(ME, TIME + self.chance.randint(0, 120), self.now)
                else:
                    deque(sealer.settle(ME, self.now), 0)

    def others(self) -> None:
        """Let others do so."""
        for _ in range(self.chance.choice((0, 0, 1, 3))):
            self.step(self.sealer())

    def store(self, count: int, start: int = TIME, end: int = TIME + 100) -> None:
        rows = []
        for _ in range(count):
            fields: Document = {"mac": self.chance.choice(("C2A628384B08", "A0B1C2D3E4F5"))}
            fields |= {"heard": TIME} if self.chance.random() < 0.1 else {}
            name = self.chance.randbytes(8)
            rows.append(row(self.chance.randint(start, end), name=name, rssi=None, **fields))
        self.staff.insert_many([dict(one) for one in rows])
        self.truth |= {one["_id"].binary: one for one in rows}

    def correct(self) -> None:
        """Give a row that is there another place, as a correction of the past does."""
        if some := self.staff.find_one({"staff_id": ME}, skip=self.chance.randint(0, 3)):
            change = {"location": f"Room {self.chance.random()}", "was": WAS}
            self.staff.update_one({"_id": some["_id"]}, {"$set": change})
            self.truth[some["_id"].binary] |= change

    def seal_all(self, before: int) -> None:
        while self.sealer().seal(ME, before, self.now):
            pass

    def settle(self) -> int:
        return sum(piece.deleted for piece in self.sealer().settle(ME, self.now))

    def settle_all(self) -> None:
        pieces = [Settled(1, 0)]
        while any(map(any, pieces)):
            self.now += GRACE_SECONDS + 1
            pieces = list(self.sealer().settle(ME, self.now))

    def read(self, start: int = 0, end: int = 2**40) -> list[Detection]:
        read = Sealed(self.staff).newest_first(TimeRange(ME, start, end))
        return [known._replace(received_at=int(known.received_at)) for known in read]

    def expected(self, start: int = 0, end: int = 2**40) -> list[Detection]:
        rows = [detection(row) for row in self.truth.values() if start <= row["timestamp"] <= end]
        rows.sort(key=attrgetter("timestamp", "id"), reverse=True)
        return [known._replace(received_at=int(known.received_at)) for known in rows]

    def check(self) -> None:
        self.check_range(0, 2**40)
        start = self.chance.randint(TIME - 20, TIME + 120)
        self.check_range(start, start + self.chance.randint(0, 60))

    def check_range(self, start: int, end: int) -> None:
        expected, wanted = self.expected(start, end), TimeRange(ME, start, end)
        assert self.read(start, end) == expected
        reader = Sealed(self.staff)
        assert reader.count(wanted) == len(expected)
        for limit in (10**6, self.chance.randint(1, 20)):
            at: dict[tuple[str, str], list[int]] = {}
            for known in expected[:limit]:
                at.setdefault((known.level, known.location), []).append(known.timestamp)
            read = reader.times_by_place(wanted, limit)
            if limit < len(expected) and expected[limit - 1].timestamp == (
                expected[limit].timestamp
            ):
                times = [timestamp for place in read for timestamp in place.timestamps]
                assert sorted(times) == sorted(known.timestamp for known in expected[:limit])
                continue  # which of a second is cut off does not matter
            times_at = {place[:2]: sorted(place.timestamps, reverse=True) for place in read}
            assert times_at == at
        within = [row for row in self.truth.values() if start <= row["timestamp"] <= end]
        strange = [row | {"rssi": -99} for row in within]
        repeats = set(SealedRepeats(self.staff).find(within + strange))
        rows = {row["_id"] for row in self.staff.find({}, {"_id": 1})}
        once = [row for n, row in enumerate(within) if n in repeats or row["_id"] in rows]
        assert len(once) == len(within)
        assert all(n < len(within) for n in repeats)


@pytest.fixture
def history(database: Database[Document]) -> Iterator[History]:
    yield History(database, 1)
    for name in ("staff", "sealed"):
        database[name].delete_many({})


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 40))]
)
def test_every_answer_is_that_of_rows_alone(database: Database[Document], seed: int) -> None:
    """What is late, corrected, sealed by two, cleared or cut anywhere: each detection is once."""
    history = History(database, seed)
    for _ in range(30):
        writes = history.chance.choice((0, 1, 2, 3, 10**9))
        history.step(history.sealer(writes, history.others))
        history.check()
    history.seal_all(TIME + 200)
    history.settle_all()
    history.check()
    newest = sorted(row["timestamp"] for row in history.truth.values())[-STAY:]
    left = [row["timestamp"] for row in history.staff.find()]
    seconds = Counter(row["timestamp"] for row in history.truth.values())
    assert all(timestamp >= newest[0] or seconds[timestamp] > sealed.FEW for timestamp in left)
    assert Sealed(history.staff).forget(ME, history.now)
    assert history.blocks.count_documents({}) == 0


def test_two_who_seal_at_once_store_nothing_twice(history: History) -> None:
    history.store(30)
    first, second = history.sealer(1), history.sealer()
    while True:
        with suppress(Killed):
            first.seal(ME, TIME + 200, history.now)
        if not second.seal(ME, TIME + 200, history.now):
            break
        history.check()
        first = history.sealer(1)
    history.check()


def test_rows_stay_while_a_read_may_go_on_that_knows_no_block(history: History) -> None:
    history.store(10)
    reading = Sealed(history.staff).newest_first(TimeRange(ME, 0, 2**40))
    some = [next(reading)]
    history.seal_all(TIME + 200)
    history.now += GRACE_SECONDS - 1
    assert history.settle() == 0
    assert [known.id for known in (*some, *reading)] == [one.id for one in history.expected()]
    history.now += 2
    assert 10 - STAY - 2 <= history.settle() < 10
    assert history.read() == history.expected()


def test_a_row_that_is_corrected_while_it_is_cleared_stays(history: History) -> None:
    history.store(6)
    history.seal_all(TIME + 200)

    def correct() -> None:
        history.staff.update_many({}, {"$set": {"location": "Attic"}})

    history.now += GRACE_SECONDS + 1
    deque(history.sealer(meanwhile=correct).settle(ME, history.now), 0)
    assert {detection.location for detection in history.read()} == {"Attic"}


def test_others_and_what_is_newer_stay_rows(history: History) -> None:
    history.store(10, TIME, TIME + 9)
    history.store(10, TIME + 100, TIME + 110)
    history.staff.insert_one(row(TIME) | {"staff_id": OTHER})
    history.seal_all(TIME + 50)
    history.now += GRACE_SECONDS + 1
    history.settle()
    assert history.staff.count_documents({"staff_id": ME}) == 10
    assert history.staff.count_documents({"staff_id": OTHER}) == 1
    history.check()


def test_a_second_of_more_than_a_block_stays_rows(history: History) -> None:
    history.store(3, TIME, TIME)
    history.store(9, TIME + 5, TIME + 5)
    history.seal_all(TIME + 50)
    assert history.blocks.count_documents(BLOCKS) == 1
    history.check()


def test_such_a_second_is_counted_but_not_read(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.store(3, TIME, TIME)
    history.store(30, TIME + 5, TIME + 5)
    history.store(9, TIME + 10, TIME + 20)
    history.seal_all(TIME + 50)
    history.settle_all()
    assert history.blocks.count_documents(BLOCKS) > 1
    of_row = Mock(wraps=blocks.of_row)
    monkeypatch.setattr(blocks, "of_row", of_row)
    assert Sealed(history.staff).count(TimeRange(ME, 0, 2**40)) == 42
    assert of_row.call_count <= STAY


def test_such_a_second_is_settled_in_pieces(history: History) -> None:
    history.store(40, TIME + 5, TIME + 5)
    history.store(9, TIME + 10, TIME + 20)
    history.seal_all(TIME + 50)
    history.settle_all()
    assert history.staff.count_documents({"timestamp": TIME + 5}) == 40
    assert len([*history.sealer().settle(ME, history.now)]) >= 40 / sealed.MAX_LATE
    history.check()


def test_such_a_second_is_told_without_holding_it(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a million rows a list would take more than a service has."""
    known = detection(row(TIME))
    count = 100_000
    every = (known._replace(location=f"Lobby {n % 2}") for n in range(count))
    monkeypatch.setattr(Sealed, "reaches", lambda *_: True)
    monkeypatch.setattr(Sealed, "newest_first", lambda *_: every)
    tracemalloc.start()
    try:
        told = Counter(Detections(history.staff).list_between(TimeRange(ME, TIME, TIME)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told == {(TIME, "4", f"Lobby {n}"): count // 2 for n in range(2)}
    assert peak < 2**20


def test_few_are_sealed_again_with_what_follows(history: History) -> None:
    """Else a person who is seldom heard has a block for each time that it is sealed."""
    for number in range(12):
        history.store(1, TIME + number, TIME + number)
        history.seal_all(TIME + 200)
    history.check()
    counts = [block["count"] for block in history.blocks.find(BLOCKS)]
    assert sum(counts) == 12 - STAY
    assert len(counts) <= 3


def test_what_grows_beyond_the_range_of_a_read_is_in_it(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest block has few; before it is read, it has what follows the range, too."""
    history.store(3, TIME, TIME + 2)
    history.store(3, TIME + 50, TIME + 52)
    history.store(STAY, TIME + 100, TIME + 100)
    history.seal_all(TIME + 10)
    history.settle_all()
    assert history.staff.count_documents({}) == 3 + STAY
    tile = Sealed._tile

    def slow_tile(reader: Sealed, *asked: Any) -> Document | None:
        told = tile(reader, *asked)
        monkeypatch.setattr(Sealed, "_tile", tile)
        history.seal_all(TIME + 60)
        return told

    monkeypatch.setattr(Sealed, "_tile", slow_tile)
    assert history.read(TIME, TIME + 20) == history.expected(TIME, TIME + 20)
    assert history.blocks.count_documents(BLOCKS) == 1


@pytest.mark.parametrize("rssi", [127, 300, -500, 0, "x"])
def test_a_strength_that_nobody_measures_is_sealed_as_not_known(
    history: History, rssi: int | str
) -> None:
    """Another program may have stored it."""
    history.store(6)
    history.staff.update_many({}, {"$set": {"rssi": rssi}})
    history.seal_all(TIME + 200)
    assert history.blocks.count_documents(BLOCKS)
    history.check()
    history.settle_all()
    history.check()


def test_times_with_fractions_are_sealed(history: History) -> None:
    """An older database has them."""
    history.store(6)
    history.staff.update_many({}, {"$inc": {"timestamp": 0.5}})
    history.seal_all(TIME + 200)
    assert history.blocks.count_documents(BLOCKS)
    history.check()


def test_a_damaged_block_is_told_and_its_rows_stay(history: History) -> None:
    history.store(6)
    history.seal_all(TIME + 200)
    history.blocks.update_one(BLOCKS, {"$set": {"names": b"??"}})
    with pytest.raises(blocks.DamagedBlock):
        history.read()
    history.now += GRACE_SECONDS + 1
    assert history.settle() == 0
    assert history.staff.count_documents({}) == 6


def test_whoever_is_forgotten_keeps_what_came_later_and_nobody_opens_it(history: History) -> None:
    history.store(6)
    history.seal_all(TIME + 200)
    history.settle_all()
    history.blocks.update_one(BLOCKS, {"$set": {"names": b"??"}})
    assert Sealed(history.staff).forget(ME, TIME - 1)
    assert history.blocks.count_documents(BLOCKS) == 1
    assert Sealed(history.staff).reaches(TimeRange(ME, TIME, TIME + 200))
    assert not Sealed(history.staff).reaches(TimeRange(ME, 0, TIME - 1))
    assert Sealed(history.staff).forget(ME, TIME + 200)
    assert history.blocks.count_documents({}) == 0
