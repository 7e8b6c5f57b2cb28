"""Rounds that seal: everybody in turn, and a repeat of what is sealed is no new detection."""

import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.monitoring import CommandListener

from ingest.errors import StoreUnavailable
from ingest.recording.sealing import LAP_SECONDS, PIECE_REST_SECONDS, Sealer, Sealing
from ingest.rules.detection_identity import REUSED_SECONDS
from ingest.rules.request_parameters import StaffId, TimeRange
from ingest.storage.detections.documents import Document
from ingest.storage.detections.expired import Expired
from ingest.storage.detections.inserts import Inserts
from ingest.storage.people.latest import Latest
from ingest.storage.sealed import border as border_module
from ingest.storage.sealed import sealed
from ingest.storage.sealed.border import READ_SECONDS, VALID_SECONDS, Border
from ingest.storage.sealed.repeats import SealedRepeats
from ingest.storage.sealed.sealed import GRACE_SECONDS, Sealed
from scripts.processes.waiting import eventually
from tests.services.ingest.sealed.test_blocks import TIME, row
from tests.services.ingest.sealed.test_sealed import BLOCKS, ME, STAY, History, Killed, _small

__all__ = ["_small"]  # the fixture of `test_sealed.py`
HOURS = 48
EVERY = TimeRange(ME, 0, 2**40)


class Service:
    """What of a service stores and seals, by a clock of the test; it may be killed and frozen."""

    def __init__(self, history: History, writes: int = 10**9) -> None:
        self.history = history
        database = history.staff.database
        self.inserts = Inserts(history.staff)
        self.border = self.inserts._border = Border(database, self.clock)
        turns = Border(database, self.clock)
        turns.now = lambda: history.now  # type: ignore[method-assign]
        self.sealer = Sealer(history.sealer(writes, history.others), turns)

    def clock(self) -> float:
        return self.history.now

    def store(self, rows: list[Document]) -> set[int]:
        """Store rows, as a phone sends them; return which are repeats."""
        self.border.known()  # as any detection does that was stored before, it reads the border
        with self.border._reading:
            pass
        stored = self.inserts.store([dict(row) for row in rows])
        assert not stored.refused
        assert not stored.failed
        return stored.repeated


@pytest.fixture
def history(database: Database[Document], monkeypatch: pytest.MonkeyPatch) -> Iterator[History]:
    """Return one in which what was stored a moment ago may be sealed."""
    monkeypatch.setattr(sealed, "settled", lambda stamp: stamp)
    emptied(database)
    yield History(database, 1)
    emptied(database)


def emptied(database: Database[Document]) -> None:
    for name in ("staff", "sealed", "latest", "directory"):
        database[name].delete_many({})


def known(border: Border) -> float:
    """Return the border when it is read."""
    border.known()
    with border._reading:
        return border.known()


def test_what_is_known_of_the_border_holds_for_some_time(database: Database[Document]) -> None:
    now = 0.0
    emptied(database)
    reader, sealer = Border(database, lambda: now), Border(database)
    assert reader.known() == math.inf
    assert known(reader) == 0
    sealer.move(TIME)
    assert known(reader) == 0
    now = READ_SECONDS + 1.0
    assert reader.known() == 0  # it is read beside
    assert known(reader) == TIME
    sealer.move(TIME - 5)
    assert sealer.turn().before == TIME
    now += VALID_SECONDS + 1
    assert reader.known() == math.inf
    assert VALID_SECONDS + READ_SECONDS // 2 <= GRACE_SECONDS


def test_a_border_that_cannot_be_read_is_not_known(
    database: Database[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    reader = Border(database, lambda: now)
    known(reader)

    def away(_: Border) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(Border, "turn", away)
    now = READ_SECONDS + 1.0
    assert known(reader) < math.inf
    now = VALID_SECONDS + 1.0
    assert known(reader) == math.inf


def test_a_turn_is_taken_once(database: Database[Document]) -> None:
    emptied(database)
    first, second = Border(database), Border(database)
    for staff_id in (ME, "other", None, 0):
        last = first.turn()
        assert second.advance(last, TIME, staff_id)
        assert not first.advance(last, TIME, "mine")
        assert first.turn() == (TIME, staff_id)
    assert abs(first.now() - time.time()) < 60


def test_a_repeat_of_what_is_sealed_is_no_new_detection(history: History) -> None:
    service = Service(history)
    history.store(20)
    rows = list(history.truth.values())
    service.sealer.border.move(TIME + 200)
    history.seal_all(TIME + 200)
    history.settle_all()
    assert history.staff.count_documents({}) < 10
    late = row(TIME + 50, name=b"latecome")
    history.now += READ_SECONDS + 1
    assert service.store([rows[0], late, *rows[1:]]) == {0, *range(2, 21)}
    assert service.store([late]) == {0}
    history.truth[late["_id"].binary] = late
    assert history.read() == history.expected()
    assert Sealed(history.staff).count(EVERY) == 21


def test_a_damaged_block_keeps_nothing_from_being_stored(history: History) -> None:
    service = Service(history)
    history.store(12)
    rows = list(history.truth.values())
    service.sealer.border.move(TIME + 200)
    history.seal_all(TIME + 200)
    history.settle_all()
    history.blocks.update_many(BLOCKS, {"$set": {"names": b"??"}})
    history.now += READ_SECONDS + 1
    service.store(rows)
    assert history.staff.count_documents({}) == 12


class Counting:
    """A phone whose event ids have no timestamps, of which one is sealed since a while."""

    def __init__(self, history: History, *times: int) -> None:
        """Store it at some times, seconds against the border of what is sealed."""
        self.service, self.history = Service(history), history
        self.border = int(time.time()) - HOURS * 3600
        history.now = self.border + HOURS * 3600
        for at in times:
            assert not self.send(at)
        self.service.store([row(self.border + number) for number in range(STAY)])
        self.service.sealer.border.move(self.border)
        history.seal_all(self.border)
        history.settle_all()
        assert history.staff.count_documents({}) == STAY
        history.now += READ_SECONDS + 1

    def send(self, at: int) -> bool:
        """Store it as what came at a time; tell whether it is a repeat."""
        timeless = row(self.border + at, name=b"the hash", id_time=1)
        return self.service.store([timeless]) == {0}


@pytest.mark.parametrize("apart", [-REUSED_SECONDS, -1, 0, 1, REUSED_SECONDS])
def test_a_repeat_without_a_timestamp_that_waited_for_days_is_one(
    history: History, apart: int
) -> None:
    """Its first copy was sealed meanwhile, and was heard at another second."""
    counter = Counting(history, -60)
    assert counter.send(-60 + apart)
    beyond = REUSED_SECONDS + 1 if apart > 0 else -REUSED_SECONDS - 1
    assert not counter.send(-60 + beyond)
    assert history.staff.count_documents({}) == STAY + 1


def test_a_repeat_of_a_counter_that_began_anew_is_one(history: History) -> None:
    late = 2 * REUSED_SECONDS
    counter = Counting(history, -60 - 2 * late, -60 - late, -60)
    assert counter.send(-60 - late + 5)
    assert counter.send(5)
    assert counter.send(-60 - 2 * late - 5)


def test_where_blocks_cannot_be_read_only_what_a_block_tells_from_a_row_is_stored(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(history)
    history.store(20)
    service.sealer.border.move(TIME + 200)
    history.seal_all(TIME + 200)
    history.settle_all()
    stay = {one["_id"] for one in history.staff.find({}, {"_id": 1})}
    rows = [one for one in history.truth.values() if one["_id"] not in stay]
    history.now += READ_SECONDS + 1
    find = SealedRepeats.find

    def away(repeats: SealedRepeats, wanted: list[Document]) -> Iterator[int]:
        yield from islice(find(repeats, wanted), 1)
        if wanted:
            raise StoreUnavailable("away")

    monkeypatch.setattr(SealedRepeats, "find", away)
    assert len(service.store(rows)) == 1  # what was known by then
    with pytest.raises(StoreUnavailable):
        service.store([row(TIME, name=b"the hash", id_time=1)])
    assert history.read() == history.expected()


class Asked(CommandListener):
    """Notes which collections were asked for what."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, str]] = []

    def started(self, event: Any) -> None:
        self.commands.append((event.command_name, str(event.command.get(event.command_name))))

    def succeeded(self, event: Any) -> None:
        pass

    def failed(self, event: Any) -> None:
        pass


def test_who_stores_what_is_heard_now_asks_for_no_block(mongod: str) -> None:
    asked = Asked()
    with MongoClient[Document](mongod, event_listeners=[asked]) as client:
        staff = client["ICT3102"]["staff"]
        inserts, now = Inserts(staff), int(time.time())
        Border(staff.database).move(now - HOURS * 3600)
        known(inserts._border)
        inserts.store([row(now)])  # the first one is stamped twice
        asked.commands.clear()
        inserts.store([row(now)])
        assert asked.commands == [("insert", "staff")]
        asked.commands.clear()
        inserts.store([row(now - HOURS * 3600 - 1)])
        assert asked.commands == [("aggregate", "sealed"), ("insert", "staff")]
        staff.delete_many({})


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 30))]
)
def test_what_is_acknowledged_is_there_once(
    database: Database[Document], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Two services store, late and repeated, and seal; who seals is killed anywhere."""
    monkeypatch.setattr(sealed, "settled", lambda stamp: stamp)
    emptied(database)
    history = History(database, seed)
    chance, services = history.chance, [Service(history), Service(history)]
    sent: list[Document] = []
    for _ in range(60):
        service, kind = chance.choice(services), chance.random()
        if kind < 0.3:
            rows = [row(TIME + chance.randint(0, 100)) for _ in range(chance.randint(1, 8))]
            again = chance.sample(sent, min(len(sent), chance.randint(0, 6)))
            mixed = chance.sample(rows + again, len(rows + again))
            repeated = service.store(mixed)
            ids = {one["_id"] for one in again}
            assert {n for n, one in enumerate(mixed) if one["_id"] in ids} == repeated
            sent += rows
            history.truth |= {one["_id"].binary: one for one in rows}
        elif kind < 0.5:
            history.now += chance.choice((1, READ_SECONDS, GRACE_SECONDS + 1))
        elif kind < 0.6:
            services[services.index(service)] = Service(history)  # started anew
        else:
            sealer = Service(history, chance.choice((0, 1, 2, 5, 10**9))).sealer
            history.others = lambda: None  # type: ignore[method-assign]
            before = TIME + chance.randint(0, 150)
            with suppress(Killed):
                sealer.border.move(before)
                for _ in sealer.all_of(ME, before):
                    pass
        assert history.read() == history.expected()
        assert Sealed(history.staff).count(EVERY) == len(history.truth)
    emptied(database)


def people(database: Database[Document], *staff_ids: StaffId) -> None:
    database["latest"].insert_many([{"_id": one, "recent": []} for one in staff_ids])


def rounds(history: History, clock: Any = None, hours: int = HOURS) -> Sealing:
    database = history.staff.database
    sealer = Sealer(Sealed(history.staff), Border(database))
    return Sealing(
        hours, sealer, Latest(database["latest"]), Expired(history.staff), clock or time.time
    )


def old(history: History, staff_id: StaffId, count: int) -> None:
    begin = int(time.time()) - (HOURS + 2) * 3600
    history.staff.insert_many(
        [row(begin + number) | {"staff_id": staff_id} for number in range(count)]
        + [row(int(time.time())) | {"staff_id": staff_id}]
    )


def lap(service: Sealing, turns: int) -> None:
    """Do so many turns, with all their pieces."""
    while turns:
        turns -= service.work().least != PIECE_REST_SECONDS


def test_everybody_has_a_turn_and_two_services_share_them(
    history: History, caplog: pytest.LogCaptureFixture
) -> None:
    everybody: list[StaffId] = [3, 20, 2**53 - 1, "", "a", "b2"]
    people(history.staff.database, *everybody)
    for staff_id in everybody:
        old(history, staff_id, 10)
    first, second = rounds(history), rounds(history)
    turns: list[StaffId | None] = []
    border = Border(history.staff.database)
    for number in range(7):
        lap((first, second)[number % 2], 1)
        turns.append(border.turn().staff_id)
    assert turns == [*everybody, everybody[0]]
    sealed_of = history.blocks.distinct("staff_id", BLOCKS)
    assert {*sealed_of} == {*everybody}
    assert border.turn().before % 3600 == 0
    assert not caplog.records


def test_turns_are_spread_over_some_hours(history: History) -> None:
    service = rounds(history)
    assert service.work().least == LAP_SECONDS
    people(history.staff.database, *range(5000))
    assert service.work().least == pytest.approx(LAP_SECONDS / 5000)


def test_a_damaged_block_is_told_once_and_others_go_on(
    history: History, caplog: pytest.LogCaptureFixture
) -> None:
    people(history.staff.database, 1, 2)
    for staff_id in (1, 2):
        old(history, staff_id, 10)
    service = rounds(history)
    lap(service, 2)
    history.blocks.update_many({"staff_id": 1} | BLOCKS, {"$set": {"names": b"??"}})
    long_ago = {"$set": {"sealed_at": int(time.time()) - GRACE_SECONDS - 5}}
    history.blocks.update_many(BLOCKS, long_ago)
    with caplog.at_level(logging.WARNING):
        lap(service, 4)
    lasts = sorted(block["last"] for block in history.blocks.find({"staff_id": 1} | BLOCKS))
    assert [record.message for record in caplog.records] == [
        "somebody's block is damaged, its rows stay:"
        f" the block whose last is {last}: its checksum is another"
        for last in lasts
    ]
    assert history.staff.count_documents({"staff_id": 1}) == 11
    assert history.staff.count_documents({"staff_id": 2}) < 5


def test_nothing_is_sealed_by_a_clock_that_was_set_or_to_which_all_is_old(
    history: History, caplog: pytest.LogCaptureFixture
) -> None:
    people(history.staff.database, 1)
    old(history, 1, 10)
    history.staff.delete_many({"timestamp": {"$gt": int(time.time()) - HOURS * 3600}})
    lap(rounds(history), 2)
    ahead = 0.0
    service = rounds(history, lambda: time.time() + ahead)
    ahead = -7300.0
    lap(service, 2)
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "the clock of this machine tells that all is old",
        "the clock of this machine was set back by 2 hours since the service started",
    ]
    assert history.blocks.count_documents({}) == 0
    assert Border(history.staff.database).turn().before == 0


def test_where_nothing_is_sealed_there_is_no_thread(history: History) -> None:
    off, on = rounds(history, hours=0), rounds(history)
    for service in (off, on):
        service.start()
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("sealing") == 1
    on.close()


def test_two_who_store_and_two_who_seal_at_once(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In real time, with each time a hundredth of what it is."""
    monkeypatch.setattr(sealed, "GRACE_SECONDS", 0)  # whole seconds: the next one
    monkeypatch.setattr(border_module, "READ_SECONDS", 0.05)
    monkeypatch.setattr(border_module, "VALID_SECONDS", 0.2)
    stop, failures = threading.Event(), []
    sent: list[Document] = []

    def store() -> None:
        inserts = Inserts(history.staff)
        try:
            while not stop.is_set():
                rows = [row(TIME + history.chance.randint(0, 300)) for _ in range(20)]
                again = history.chance.sample(sent, min(20, len(sent)))
                inserts.store([dict(one) for one in rows + again])
                sent.extend(rows)
        except Exception as error:
            failures.append(error)

    def seal() -> None:
        sealer = Sealer(Sealed(history.staff), Border(history.staff.database))
        try:
            while not stop.is_set():
                sealer.border.move(TIME + 400)
                for _ in sealer.all_of(ME, TIME + 400):
                    pass
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for work in (store, store, seal, seal)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: bool(failures) or len(sent) > 1500, 60)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert history.blocks.count_documents(BLOCKS) > 10
    assert Sealed(history.staff).count(EVERY) == len(sent)
    read = Sealed(history.staff).newest_first(EVERY)
    assert sum(1 for _ in read) == len(sent)
