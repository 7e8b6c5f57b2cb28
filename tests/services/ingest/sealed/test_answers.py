"""Nobody sees that a history was sealed: each answer is that of before, to the byte."""

import random
import re
import time
from typing import Any, NamedTuple

import pytest
from flask import Flask
from pymongo.database import Database

from ingest.api.places import coverage
from ingest.rules.request_parameters import TimeRange
from ingest.storage.sealed import border, sealed
from ingest.storage.sealed.sealed import GRACE_SECONDS, Sealed
from tests.services.ingest.api.conftest import MAC, Api

OTHERS = ["AABB00000001", "AABB00000002"]
PEOPLE: list[int | str] = [7, "ann", 12]
PLACES = {MAC: ("4", "Lobby B"), OTHERS[0]: ("5", "50% off"), OTHERS[1]: ("4", 'The "Attic"')}
STRANGER = "FFEE00000009"
HOURS = 30
# How many of the newest of each stay rows.
STAY = 3


class Answer(NamedTuple):
    """What a client gets, but for the names of states."""

    status: int
    body: bytes


@pytest.fixture
def office(app: Flask, database: Database[Any], monkeypatch: pytest.MonkeyPatch) -> Api:
    """Return a service whose blocks are small, with a directory."""
    for name, size in (("MAX_DETECTIONS", 16), ("FEW", 8), ("ROWS_AT_ONCE", 9)):
        monkeypatch.setattr(sealed, name, size)
    monkeypatch.setattr(sealed, "RECENT", STAY)
    # Here rows go at once, not when all have long read what is sealed.
    monkeypatch.setattr(border, "VALID_SECONDS", -1)
    # Several who ask within a few seconds get one answer: not in this test.
    monkeypatch.setattr(coverage._shared, "get", lambda _key, read: read())
    api = Api(app)
    for mac in OTHERS:
        place = dict(zip(("level", "location"), PLACES[mac], strict=True))
        answer = api.client.put(f"/api/v1/beacons/{mac}", json=place)
        assert answer.status_code < 300, answer.text
    return api


class Walks:
    """People who walk, and phones that repeat themselves."""

    def __init__(self, api: Api, database: Database[Any], seed: int) -> None:
        self.api, self.database = api, database
        self.chance = random.Random(seed)
        self.now = int(time.time())
        self.sent: list[dict[str, Any]] = []

    def walk(self, count: int) -> None:
        """Let somebody be heard for a while, some hours ago."""
        person = self.chance.choice(PEOPLE)
        at = self.now - self.chance.randint(600, HOURS * 3600)
        mac = self.chance.choice([*PLACES, STRANGER])
        for _ in range(count):
            mac = mac if self.chance.random() < 0.7 else self.chance.choice([*PLACES, STRANGER])
            self.sent.append(
                {
                    "staff_id": person,
                    "mac": mac,
                    "rssi": self.chance.randint(-90, -40),
                    "timestamp": at,
                    "event_id": f"e{len(self.sent)}",
                }
            )
            at += self.chance.choice([0, 0, 4, 4, 4, 60, 301])
        behind = self.chance.choice([0, 0, 7200])  # by so much his clock is wrong
        body: dict[str, Any] = {"detections": self.sent[-count:], "sent_at": self.now - behind}
        answer = self.api.client.post("/api/v1/detections", json=body)
        assert answer.status_code == 200, answer.text

    def repeat(self) -> None:
        """Let phones send again what they have sent: all of it is known."""
        again = self.chance.sample(self.sent, min(20, len(self.sent)))
        answer = self.api.client.post("/api/v1/detections", json={"detections": again})
        assert answer.json
        assert [result["status"] for result in answer.json["results"]] == ["duplicate"] * len(again)

    def seal(self) -> None:
        """Make blocks of some of it, and delete rows, as services do from time to time."""
        sealer = Sealed(self.database["staff"])
        before = self.now - self.chance.randint(0, HOURS * 3600)
        for person in PEOPLE:
            if self.chance.random() < 0.7:
                while sealer.seal(person, before, self.now):
                    pass
            if self.chance.random() < 0.7:
                list(sealer.settle(person, self.now + GRACE_SECONDS + 1))

    def answers(self) -> dict[str, Answer]:
        """Return what every address tells that reads detections."""
        end, chance = self.now + 60, random.Random(len(self.sent))
        start = end - chance.randint(0, HOURS * 3600)
        paths = ["/retrieveformonitoring", "/api/v1/coverage", "/api/v1/now", "/api/v1/staff"]
        paths += [f"/api/v1/beacons/unknown?since={start}", "/api/v1/beacons/unknown"]
        for level, location in PLACES.values():
            at = f"level={level}&location={location.replace('%', '%25')}"
            paths += [f"/api/v1/visits?{at}&from={start}&to={end}"]
        for person in PEOPLE:
            for first in (0, start):
                times = f"start_time={first}&end_time={end - chance.randint(0, 9999)}"
                paths.append(f"/extractbeacon?staff_id={person}&{times}")
            of = f"/api/v1/staff/{person}/detections"
            paths += [f"{of}?limit=1", f"{of}?from={start}&limit=7", f"{of}?limit=3000"]
            paths += [f"{of}?format=csv", f"{of}?format=geojson&from={start}"]
        answers = {path: self.answer(path) for path in paths}
        for person in PEOPLE:
            answers |= self.pages(
                f"/api/v1/staff/{person}/detections?limit={chance.randint(5, 30)}"
            )
        return answers

    def pages(self, first: str) -> dict[str, Answer]:
        pages, path = {}, first
        while path:
            answer = self.api.client.get(path)
            pages[path] = Answer(answer.status_code, answer.data)
            following = answer.json["next"] if answer.status_code == 200 and answer.json else None
            path = f"{first}&cursor={following}" if following else ""
        return pages

    def answer(self, path: str) -> Answer:
        answer = self.api.client.get(path)
        return Answer(
            answer.status_code,
            re.sub(rb'"(now|at|as_of|age_seconds|minutes_ago)":[0-9.]+', b"", answer.data),
        )

    def forget_caches(self) -> None:
        """Have histories be read from the database again."""
        cache = self.api.context.histories.cache
        cache._cached.clear()
        cache._windows.clear()


def difference(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Return some of each from where they begin to differ."""
    pairs = zip(before, after, strict=False)
    at = next((n for n, (was, is_) in enumerate(pairs) if was != is_), len(before))
    return before[max(0, at - 200) : at + 200], after[max(0, at - 200) : at + 200]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3))])
def test_every_answer_is_that_of_before(office: Api, database: Database[Any], seed: int) -> None:
    walks = Walks(office, database, seed)
    for _ in range(5):
        for _ in range(walks.chance.randint(1, 4)):
            walks.walk(walks.chance.randint(1, 30))
        walks.forget_caches()
        before = walks.answers()
        walks.seal()
        walks.repeat()
        if walks.chance.random() < 0.5:
            walks.forget_caches()
        after = walks.answers()
        changed = [path for path in before if before[path] != after[path]]
        assert not changed, difference(before[changed[0]].body, after[changed[0]].body)
    assert database["sealed"].count_documents({}) > len(PEOPLE)
    for person in PEOPLE:
        count = office.context.histories.detections.count(TimeRange(person, 0, 2**40), None)
        assert count == sum(detection["staff_id"] == person for detection in walks.sent)
