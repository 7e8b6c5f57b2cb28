"""The feed /changes: everything that was acknowledged, once, in one order."""

import itertools
import json
import random
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from pymongo import MongoClient
from pymongo.database import Database
from werkzeug.test import TestResponse

from ingest.api.changes import changes
from ingest.storage.detections.documents import detection
from mongo import clients, topology
from mongo.servers import Server
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.service import Service, running
from tests.services.ingest.api.conftest import MAC, Api

Lines = list[dict[str, Any]]

# What a spool takes: two of them are more than the small oplog.
SPOOL = 4000


def parse(text: str) -> tuple[Lines, str]:
    """Return the changes of an answer and its cursor; fail when it was cut off."""
    *lines, last = [json.loads(line) for line in text.splitlines()]
    assert list(last) == ["next"]
    return lines, last["next"]


def read(api: Api, **query: Any) -> tuple[Lines, str]:
    answer = ask(api, **query)
    assert answer.status_code == 200, answer.text
    assert answer.mimetype == "application/x-ndjson"
    return parse(answer.text)


def ask(api: Api, **query: Any) -> TestResponse:
    return api.client.get("/api/v1/changes", query_string=query)


def test_it_begins_now_and_goes_on_where_it_was(api: Api) -> None:
    api.hear(1)
    lines, cursor = read(api)
    assert lines == []
    timestamp = api.hear("SDA-1", event_id="a")
    api.hear("SDA-1", event_id="a", timestamp=timestamp)  # a repeat changes nothing
    api.hear(2, ago=500)
    lines, after = read(api, after=cursor)
    assert [change["staff_id"] for change in lines] == ["SDA-1", 2]
    assert lines[0] | {"id": "", "time": "", "received_at": 0} == {
        "type": "detection",
        "id": "",
        "staff_id": "SDA-1",
        "timestamp": timestamp,
        "time": "",
        "received_at": 0,
        "mac": MAC,
        "rssi": -60,
        "level": "4",
        "location": "Lobby B",
    }
    assert read(api, after=cursor)[0] == lines
    assert read(api, after=after)[0] == []


@pytest.mark.long
def test_many_changes_take_little_memory(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.storage.histories.change_stream.FOLLOWING_SECONDS", 60)
    _, cursor = read(api)
    now = int(time.time())
    items = [{"staff_id": n, "mac": MAC, "rssi": -60, "timestamp": now} for n in range(1000)]
    assert api.client.post("/api/v1/detections", json={"detections": items}).status_code == 200
    assert len(read(api, after=cursor, limit=1000)[0]) == 1000
    tracemalloc.start()
    try:
        answer = ask(api, after=cursor, limit=1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(parse(answer.text)[0]) == 1000
    assert peak < 2**20


def test_a_limit_cuts_nothing_off(api: Api) -> None:
    _, cursor = read(api)
    for number in range(10):
        api.hear(number, event_id=f"e{number}")
    seen = []
    for expected in (3, 3, 3, 1, 0):
        lines, cursor = read(api, after=cursor, limit=3)
        assert len(lines) == expected
        seen += [change["staff_id"] for change in lines]
    assert seen == list(range(10))


def test_from_a_time_on(api: Api, database: Database[Any]) -> None:
    def now() -> int:
        return int(database.command("hello")["operationTime"].time)

    api.hear(1)
    heard = now()
    eventually(lambda: now() > heard + 1, 60)  # it goes on when something is written, by itself too
    began = now()
    api.hear(2)
    assert [row["staff_id"] for row in read(api, **{"from": began})[0]] == [2]
    assert {row["staff_id"] for row in read(api, **{"from": began - 1})[0]} >= {2}


def test_a_correction_is_a_change(api: Api) -> None:
    _, cursor = read(api)
    api.hear(1, "AABBCCDDEEFF")
    place = {"level": "2", "location": "Library"}
    api.client.put("/api/v1/beacons/AABBCCDDEEFF?correct_past=1", json=place)
    (stored, corrected), _ = read(api, after=cursor)
    assert (stored["type"], corrected["type"]) == ("detection", "corrected")
    assert corrected == stored | {"type": "corrected"} | place


def test_waiting_ends_with_the_first_change(api: Api) -> None:
    _, cursor = read(api)
    with ThreadPoolExecutor() as threads:
        began = time.monotonic()
        waiting = threads.submit(read, api, after=cursor, wait=20)
        time.sleep(0.5)
        api.hear(1)
        assert len(waiting.result()[0]) == 1
    assert time.monotonic() - began < 15
    began = time.monotonic()
    assert read(api, wait=1)[0] == []
    assert time.monotonic() - began >= 1


def test_only_a_few_may_wait(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_waiting", threading.BoundedSemaphore(1))
    assert changes._waiting.acquire()
    answer = ask(api, wait=1)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert ask(api).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        {"after": "zz"},
        {"after": "82"},
        {"limit": 1001},
        {"wait": 21},
        {"from": "soon"},
        {"from": int(time.time()) + 1_000_000},
    ],
)
def test_bad_questions(api: Api, query: dict[str, Any]) -> None:
    answer = ask(api, **query)
    assert answer.status_code == 400
    assert answer.json is not None
    assert [error["field"] for error in answer.json["errors"]] == list(query)


def test_a_damaged_cursor_is_told_from_another(api: Api) -> None:
    api.hear(1)
    _, cursor = read(api)
    for damaged in (cursor[:-1], cursor[:-2], cursor + "00", cursor[2:], cursor.lower()):
        assert ask(api, after=damaged).status_code == 400
    assert ask(api, after=cursor, **{"from": 5}).status_code == 400


class Forgetful(Cluster):
    """Has a small oplog, and forgets what need not be kept every second, not every minute."""

    def servers(self) -> dict[str, Server]:
        small = ["--oplogSize=1", "--syncdelay=1"]
        every = super().servers()
        return {n: one._replace(command=[*one.command, *small]) for n, one in every.items()}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Forgetful(topology.load(topology.EMBEDDED), tmp_path_factory.mktemp("feed"))
    with cluster.running():
        yield cluster


@pytest.fixture(scope="module")
def services(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Service]]:
    folder = tmp_path_factory.mktemp("services")
    two = (Service(cluster.uri(), folder, spool_max_detections=SPOOL) for _ in range(2))
    with running(*two) as services:
        yield services


def insist(services: list[Service], method: str, path: str, body: Any = None) -> requests.Response:
    """Ask one service or the other until it is done, as phones and readers do."""
    while True:
        service = random.choice(services)
        try:
            answer = requests.request(method, f"{service.url}/api/v1{path}", json=body, timeout=30)
        except requests.RequestException:
            time.sleep(0.05)
            continue
        if answer.status_code not in (429, 503):  # 429: others wait for changes already
            assert answer.status_code in (200, 202), answer.text
            return answer
        time.sleep(0.05)


class Phone(threading.Thread):
    """Posts detections in batches of random size until told to stop."""

    def __init__(self, services: list[Service], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.services = services
        self.enough = threading.Event()
        self.acknowledged = 0

    def run(self) -> None:
        while not self.enough.is_set():
            items = [
                {
                    "staff_id": random.randrange(20),
                    "mac": MAC,
                    "rssi": -60,
                    "timestamp": int(time.time()),
                    "event_id": f"{self.name}-{self.acknowledged + number}",
                }
                for number in range(random.choice([1, 2, 50]))
            ]
            insist(self.services, "POST", "/detections", {"detections": items})
            self.acknowledged += len(items)


class Reader(threading.Thread):
    """Follows the feed; now and then it forgets an answer, as a reader that is killed does."""

    def __init__(self, services: list[Service]) -> None:
        super().__init__(daemon=True)
        self.services = services
        self.cursor = parse(insist(services, "GET", "/changes").text)[1]
        self.ids: list[str] = []
        self.enough = threading.Event()

    def step(self, wait: int) -> int:
        query = f"after={self.cursor}&limit={random.choice([1, 10, 1000])}&wait={wait}"
        lines, cursor = parse(insist(self.services, "GET", f"/changes?{query}").text)
        if random.random() < 0.8:
            self.ids += [change["id"] for change in lines]
            self.cursor = cursor
        return len(lines)

    def run(self) -> None:
        while not self.enough.is_set():
            self.step(1)


@pytest.mark.long
def test_nothing_is_missed_or_doubled_whatever_dies(
    cluster: Cluster, services: list[Service]
) -> None:
    """By eight followers, twice as many as may wait, and one who begins when they have all."""
    readers = [Reader(services) for _ in range(8)]
    slow = Reader(services)
    phones = [Phone(services, f"phone-{number}") for number in range(3)]
    for thread in (*readers, *phones):
        thread.start()
    mongod = next(iter(cluster.servers()))
    for victim in (0, 1, None, 1, 0):
        time.sleep(0.7)
        if victim is None:
            cluster.kill(mongod)
            time.sleep(0.3)
            cluster.start()
        else:
            services[victim].kill()
            services[victim].start()
    for phone in phones:
        phone.enough.set()
    for phone in phones:
        phone.join(60)
        assert not phone.is_alive()
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        staff = client["ICT3102"]["staff"]
        acknowledged = sum(phone.acknowledged for phone in phones)
        until = time.monotonic() + 60
        while staff.count_documents({}) < acknowledged:  # the spools drain
            assert time.monotonic() < until
            time.sleep(0.1)
        stored = [detection(row).id for row in staff.find()]
    assert len(stored) == acknowledged > 100
    for reader in readers:
        reader.enough.set()
    for reader in (*readers, slow):
        if reader is not slow:
            reader.join(60)
        until = time.monotonic() + 60
        while len(reader.ids) < len(stored):
            assert time.monotonic() < until, f"{len(reader.ids)} of {len(stored)}"
            reader.step(1)
        assert sorted(reader.ids) == sorted(stored)
    assert all(reader.ids == slow.ids for reader in readers)


@pytest.mark.long
def test_a_follower_survives_a_full_drain_of_both_spools(
    cluster: Cluster, services: list[Service]
) -> None:
    """As long as the oplog is kept, whatever its size. Later he is told that he missed some."""
    reader = Reader(services)
    behind = reader.cursor
    mongod = next(iter(cluster.servers()))
    with cluster.away(mongod, "killed"):
        queued = sum(fill(service) for service in services)
    assert queued == 2 * SPOOL
    with clients.as_system(cluster.local.users_set.members[0], cluster.secrets) as client:
        eventually(lambda: all(queue(service) == 0 for service in services), 120)
        oplog = client["local"].command("collStats", "oplog.rs")
        assert oplog["size"] > 2 * oplog["maxSize"]  # two more than its size would have kept
        while len(reader.ids) < queued:
            reader.step(1)
        assert len(set(reader.ids)) == len(reader.ids) == queued
        client.admin.command("replSetResizeOplog", 1, minRetentionHours=0.0)
        junk = client["ICT3102"]["junk"]

        def is_expired() -> bool:
            junk.insert_one({"text": "x" * 1_000_000})  # it looks only when something comes
            return services[0].get("/api/v1/changes", after=behind).status_code != 200

        eventually(is_expired, 60)
    answer = services[0].get("/api/v1/changes", after=behind)
    assert (answer.status_code, answer.json()["code"]) == (410, "cursor_expired")
    assert "without `after`" in answer.json()["detail"]


def fill(service: Service) -> int:
    """Send detections until the spool is full; return how many wait there."""
    count = itertools.count()

    def is_full() -> bool:
        items = [
            {
                "staff_id": n % 20,
                "mac": MAC,
                "rssi": -60,
                "event_id": f"{service.url}-{next(count)}",
            }
            for n in range(500)
        ]
        insist([service], "POST", "/detections", {"detections": items})
        return queue(service) == SPOOL

    eventually(is_full, 120)
    return queue(service)


def queue(service: Service) -> int:
    return int(service.read("/api/v1/system").json()["queued"])


def test_waiting_ends_where_changes_never_do(api: Api) -> None:
    _, cursor = read(api)
    ended = threading.Event()
    count = 0

    def walk() -> None:
        nonlocal count
        while not ended.wait(0.1):
            api.hear(1)
            count += 1

    seen: Lines = []
    with ThreadPoolExecutor() as threads:
        walking = threads.submit(walk)
        try:
            for _ in range(3):
                began = time.monotonic()
                lines, cursor = read(api, after=cursor, wait=20)
                assert lines
                assert time.monotonic() - began < 15
                seen += lines
        finally:
            ended.set()
        walking.result()
    lines, _ = read(api, after=cursor)
    assert len({change["id"] for change in seen + lines}) == len(seen + lines) == count
