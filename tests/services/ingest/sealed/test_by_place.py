"""What is told by place and by beacon of rows and blocks is what rows alone would tell."""

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.database import Database

from common.beacon import Beacon
from ingest.recording.corrections import Corrections
from ingest.rules.request_parameters import StaffId
from ingest.rules.retention import Retention
from ingest.storage.database.cluster_usage import Cluster
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.documents import Document
from ingest.storage.directory.beacons import Beacons
from ingest.storage.directory.directory import Place
from ingest.storage.directory.past_places import PastPlaces
from ingest.storage.places import visits
from ingest.storage.places.coverage import Coverage
from ingest.storage.places.visits import TooMany, Visits
from ingest.storage.sealed import by_place
from ingest.storage.sealed.blocks import of_row, sealed
from ingest.storage.sealed.past_places import Corrected
from ingest.storage.sealed.sealed import GRACE_SECONDS, Sealed
from mongo import topology
from scripts.processes.cluster import Cluster as Servers
from tests.services.ingest.api.test_visits import UNEXPLAINED
from tests.services.ingest.sealed.test_blocks import TIME, row
from tests.services.ingest.sealed.test_sealed import BLOCKS, _small  # noqa: F401 - a fixture
from tests.services.ingest.test_indexes import Heard

PEOPLE: list[StaffId] = [7, 12, "ann"]
HANGS = {
    "C2A628384B08": {"level": "4", "location": "Lobby B"},
    "A0B1C2D3E4F5": {"level": "5", "location": "Lobby B"},
    "AABB00000001": {"level": "4", "location": "Lobby A"},
    "AABB00000002": {"level": "unknown", "location": "unknown"},
}
ALIASES = {"C2A628384B08": ("AABB00000002",)}
BEACONS = [
    Beacon(mac, place["level"], place["location"], aliases=ALIASES.get(mac, ()))
    for mac, place in list(HANGS.items())[:3]
]
MAC = "C2A628384B08"
PLACES = list(HANGS.values())[:3]
SECONDS = 3000
# By how much somebody's clock is ahead for a part of the time.
AHEAD = {7: 900, "ann": -700}


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_place, "BLOCKS_AT_ONCE", 2)


class Twins:
    """A database that is sealed, and one that holds the same and never is."""

    def __init__(self, database: Database[Document], twin: Database[Document]) -> None:
        self.chance = random.Random(1)
        self.database, self.twin = database, twin
        for each in (self.database, self.twin):
            each["staff"].delete_many({})
            each["sealed"].delete_many({})
            each["beacons"].delete_many({})
            each["beacons"].insert_many([beacon.document() for beacon in BEACONS])
        self.now = TIME + SECONDS + 1000
        self.cleared = 0

    @property
    def both(self) -> tuple[Collection[Document], Collection[Document]]:
        return self.database["staff"], self.twin["staff"]

    def step(self) -> None:
        kind, person = self.chance.random(), self.chance.choice(PEOPLE)
        sealer = Sealed(self.database["staff"])
        if kind < 0.25:
            self.walk(person)
        elif kind < 0.3:
            self.correct_rows()
        elif kind < 0.38:
            self.correct(f"c{self.chance.randint(0, 3)}")
        elif kind < 0.42:
            self.undo(f"c{self.chance.randint(0, 3)}")
        elif kind < 0.5:
            self.now += GRACE_SECONDS + 1
        elif kind < 0.8:
            before = TIME + self.chance.randint(0, SECONDS)
            for _ in range(self.chance.choice((1, 2, 9))):
                sealer.seal(person, before, self.now)
        else:
            self.settle(person)

    def settle(self, person: StaffId) -> None:
        sealer = Sealed(self.database["staff"])
        self.cleared += sum(piece.deleted for piece in sealer.settle(person, self.now))

    def walk(self, person: StaffId) -> None:
        """Store what somebody heard on a way; as likely as not it comes late."""
        at = TIME + self.chance.randrange(SECONDS)
        ahead = self.chance.choice((0, 0, AHEAD.get(person, 0)))
        rows = []
        for _ in range(self.chance.randint(1, 15)):
            mac = self.chance.choice(list(HANGS))
            fields: Document = {"mac": mac, "staff_id": person, **HANGS[mac]}
            fields |= {"received": at + 1, "rssi": self.chance.choice((None, -60, -70))}
            fields |= {"heard": at} if ahead else {}
            names = [self.chance.randbytes(8)]
            if self.chance.random() < 0.1:  # of which no more is kept than of the other
                names.append(self.chance.randbytes(6) + names[0][-2:])
            rows += [row(at + ahead, name=name, **fields) for name in names]
            at += self.chance.choice((0, 4, 4, 60, 301))
        for collection in self.both:
            collection.insert_many([dict(stored) for stored in rows])

    def correct(self, name: str) -> None:
        """Let a beacon hang somewhere else, and its past too."""
        mac, (level, location) = (
            self.chance.choice(list(HANGS)),
            self.chance.choice(PLACES).values(),
        )
        beacon = Beacon(mac, level, location)
        counts = []
        for staff in self.both:
            beacons = staff.database["beacons"]
            beacons.delete_many({"mac": mac})
            beacons.insert_one(beacon.document())
            past = PastPlaces(staff)
            places = {mac: [Place(level, location)]}
            moved = Corrections(past, Beacons(staff.database), 5)._move(places, name, 60)
            counts.append((moved, past.count_corrected(mac, name)))
        assert counts[0] == counts[1]

    def undo(self, name: str) -> None:
        first, second = (
            Corrections(PastPlaces(staff), Beacons(staff.database), 5).undo(list(HANGS), name)
            for staff in self.both
        )
        assert first == second

    def correct_rows(self) -> None:
        """Correct some rows, but not what blocks have of them: whoever did so was killed."""
        database, twin = self.both
        rows = list(database.find(skip=self.chance.randint(0, 20), limit=3))
        place = self.chance.choice(PLACES)
        for stored in rows:
            for staff in (database, twin):
                was = {name: stored[name] for name in place} | {"correction": "c0"}
                staff.update_one({"_id": stored["_id"]}, {"$set": place | {"was": was}})

    def check(self) -> None:
        start = TIME + self.chance.randint(-1000, SECONDS)
        end = start + self.chance.choice((60, 600, 2 * SECONDS))
        gap = self.chance.choice((60, 300))
        floor = TIME + self.chance.randint(0, SECONDS) if self.chance.random() < 0.3 else 0
        both, rows = (told(staff, Kept(floor), start, end, gap) for staff in self.both)
        assert both == rows


class Kept(Retention):
    """What is older than a time is due."""

    def __init__(self, floor: int) -> None:
        super().__init__(0)
        self._floor = floor

    def floor(self) -> int:
        return self._floor


def told(
    staff: Collection[Document], retention: Retention, start: int, end: int, gap: int
) -> dict[str, Any]:
    """Return all that is told."""
    answers: dict[str, Any] = {}
    reader = Visits(staff, retention)
    for level in ("4", "5", None):
        try:
            of_level = sorted(reader.read("Lobby B", level, start, end, gap), key=repr)
            answers[f"visits of {level}"] = of_level
        except TooMany as error:
            answers[f"visits of {level}"] = error.start
    for people, since in ((None, 0), (PEOPLE[1:], start)):
        last = Coverage(staff, retention).last_visits(BEACONS, people, since)
        answers[f"last visits by {people}"] = {mac: visit.timestamp for mac, visit in last.items()}
    recent = Detections(staff, retention)
    rows = list(recent.list_recent(start, end))
    assert rows == sorted(rows, key=attrgetter("timestamp"), reverse=True)
    answers["last minutes"] = Counter(rows)
    answers["how many"] = recent.count_recent(start, end, None)
    answers["minutes"] = Cluster(staff).minutes(end)
    past = PastPlaces(staff)
    for mac in HANGS:
        places = [Place(**place) for place in PLACES[:2]]
        answers[f"elsewhere {mac}"] = past.count_elsewhere(mac, places)
        answers[f"people elsewhere {mac}"] = past.people_elsewhere([mac], places[0])
        answers[f"corrected {mac}"] = past.count_corrected(mac, "c0")
    for known in ([], list(HANGS)[:2]):
        for since in (0, start):
            unknown = Coverage(staff, retention).unknown_beacons(known, since)
            answers[f"unknown since {since} beside {len(known)}"] = [
                dataclasses.replace(beacon, staff=sorted(beacon.staff, key=str))
                for beacon in unknown
            ]
    return answers


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database[Document]]:
    folder = tmp_path_factory.mktemp("twin")
    with (
        Servers(topology.load(topology.EMBEDDED), folder).running() as cluster,
        MongoClient[Document](cluster.uri()) as client,
    ):
        yield client["ICT3102"]


@pytest.fixture
def twins(database: Database[Document], twin: Database[Document]) -> Iterator[Twins]:
    yield Twins(database, twin)
    for name in ("staff", "sealed", "beacons"):
        database[name].delete_many({})


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 20))]
)
def test_every_answer_is_that_of_rows_alone(
    twins: Twins, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    twins.chance.seed(seed)
    for _ in range(30):
        monkeypatch.setattr(visits, "MAX_DETECTIONS", twins.chance.choice((5, 20, 10**6)))
        twins.step()
        twins.check()
    for person in PEOPLE:
        while Sealed(twins.database["staff"]).seal(person, TIME + 2 * SECONDS, twins.now):
            pass
    twins.now += 2 * GRACE_SECONDS
    for person in PEOPLE:
        twins.settle(person)
    twins.check()
    assert twins.cleared
    assert twins.database["sealed"].count_documents(BLOCKS)


@pytest.mark.parametrize(
    ("newest", "is_moved"),
    [
        ({"timestamp": TIME + 900}, True),
        ({"timestamp": TIME + 9000, "heard": TIME + 900}, True),
        ({"timestamp": TIME + 100, "heard": TIME + 900}, False),  # it is due, by its own clock
    ],
)
def test_the_newest_that_a_block_tells_of_may_not_count(
    database: Database[Document], newest: Document, *, is_moved: bool
) -> None:
    rows = [
        row(at.pop("timestamp"), received=TIME + 900, mac=MAC, **HANGS[MAC], **at)
        for at in ({"timestamp": TIME + 500}, dict(newest))
    ]
    every = sorted(map(of_row, rows), key=attrgetter("timestamp", "id"))
    database["sealed"].insert_one(sealed(7, every) | {"sealed_at": TIME})
    try:
        if is_moved:  # since it was sealed
            database["staff"].insert_one(rows[1] | HANGS["AABB00000001"])
        last = Coverage(database["staff"], Kept(TIME + 200)).last_visits(BEACONS[:1])
        assert last == {MAC: (TIME + 500, 7)}
    finally:
        database["sealed"].delete_many({})
        database["staff"].delete_many({})


def test_the_block_that_ends_last_need_not_have_the_last_visit(
    database: Database[Document],
) -> None:
    for person, here, elsewhere in ((7, 100, 900), ("ann", 700, 800)):
        rows = [
            row(TIME + at, mac=mac, **HANGS[mac])
            for at, mac in ((here, MAC), (elsewhere, "AABB00000001"))
        ]
        block = sealed(person, list(map(of_row, rows))) | {"sealed_at": TIME}
        database["sealed"].insert_one(block)
    last = Coverage(database["staff"]).last_visits(BEACONS[:1])
    database["sealed"].delete_many({})
    assert last == {MAC: (TIME + 700, "ann")}


def test_what_is_due_is_no_visit_whenever_it_was_heard(database: Database[Document]) -> None:
    rows = [row(TIME, mac=MAC, heard=TIME + 900, received=TIME + 900, **HANGS[MAC])]
    rows += [row(TIME + 950, mac=MAC, **HANGS[MAC])]
    database["sealed"].insert_one(sealed(7, list(map(of_row, rows))) | {"sealed_at": TIME})
    reader = Visits(database["staff"], Kept(TIME + 200))
    visits_read = list(reader.read("Lobby B", "4", TIME, TIME + 1000, 300))
    database["sealed"].delete_many({})
    assert visits_read == [(7, "4", TIME + 950, TIME + 950, 1)]


DAYS, OF_A_DAY = 40, 4
DAY, NEWEST = TIME + DAYS // 2 * 86_400, TIME + (DAYS - 1) * 86_400


@pytest.fixture
def long_ago(mongod: str, database: Database[Document]) -> Iterator[tuple[MongoClient[Any], Heard]]:
    """Return a client of a database with blocks of many days, and what it asks."""
    for person in PEOPLE:
        every = [
            of_row(row(TIME + day * 86_400 + n, mac=mac, **HANGS[mac]))
            for day in range(DAYS)
            for mac in list(HANGS)[:3]
            for n in range(OF_A_DAY)
        ]
        every.sort(key=attrgetter("timestamp", "id"))
        made = [sealed(person, every[n : n + 6]) for n in range(0, len(every), 6)]
        database["sealed"].insert_many([block | {"sealed_at": TIME} for block in made])
    heard = Heard()
    with MongoClient[dict[str, Any]](mongod, event_listeners=[heard]) as client:
        yield client, heard
    database["sealed"].delete_many({})


def test_not_each_row_between_blocks_is_looked_for_in_them(
    long_ago: tuple[MongoClient[Any], Heard], database: Database[Document]
) -> None:
    """A phone sends what it heard in days without a connection, and newer ones are sealed."""
    client, heard = long_ago
    late = [row(DAY + 7200 + n, mac=MAC, **HANGS[MAC]) for n in range(100)]
    database["staff"].insert_many(late)
    past_places = PastPlaces(client["ICT3102"]["staff"])
    heard_there = len(PEOPLE) * DAYS * OF_A_DAY + len(late)
    assert past_places.count_elsewhere(MAC, [Place("9", "Attic")]) == heard_there
    assert len(heard.of("find")) < 10
    database["staff"].delete_many({})


@pytest.mark.parametrize(
    ("ask", "most"),
    [
        (lambda staff: list(Visits(staff).read("Lobby B", None, DAY, DAY + 600, 60)), 40),
        (lambda staff: Coverage(staff).last_visits(BEACONS), 90),
        (lambda staff: Coverage(staff).last_visits(BEACONS, [7], NEWEST - 600), 40),
        (lambda staff: Coverage(staff).unknown_beacons(list(HANGS)[:2], NEWEST - 600), 60),
        (lambda staff: Coverage(staff).unknown_beacons(HANGS, 0), 0),
        (lambda staff: PastPlaces(staff).count_elsewhere(MAC, [Place(**HANGS[MAC])]), 0),
        (lambda staff: PastPlaces(staff).people_elsewhere([MAC], Place(**HANGS[MAC])), 0),
        (lambda staff: PastPlaces(staff).sealed.find(Corrected(["nobody"], "c1")), 0),
        (lambda staff: list(Detections(staff).list_recent(NEWEST + 60, NEWEST + 120)), 0),
        (lambda staff: sum(at.count for at in Cluster(staff).minutes(NEWEST + 2 * 86_400)), 0),
    ],
)
def test_no_question_reads_all_blocks(
    long_ago: tuple[MongoClient[Any], Heard],
    database: Database[Document],
    ask: Callable[[Collection[Document]], object],
    most: int,
) -> None:
    """`most`: documents, of some 240 blocks."""
    client, heard = long_ago
    answer = ask(client["ICT3102"]["staff"])
    assert bool(answer) == bool(most)
    examined = 0
    for command in (*heard.of("find"), *heard.of("aggregate")):
        bare = {name: command[name] for name in command if name not in UNEXPLAINED}
        plan = str(database.command("explain", bare, verbosity="executionStats"))
        assert "COLLSCAN" not in plan
        examined += sum(map(int, re.findall(r"'totalDocsExamined': ([0-9]+)", plan)))
    assert examined <= most
