"""Storing from the event loop, on a real mongod: what is plain, and what the thread has to do."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from common.beacon import Beacon
from ingest import create_app
from ingest.assembly import Context
from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.recording.outcome import Outcome
from ingest.recording.recorder import Recorder
from ingest.rules.detection_identity import event_key
from ingest.storage.database.client import time_limit
from ingest.storage.detections.documents import NOWHERE, Document, document
from ingest.storage.detections.inserts import Inserts
from ingest.storage.detections.loop_inserts import LARGEST, LoopInserts
from ingest.storage.detections.stamps import Clock
from ingest.storage.directory.beacons import Beacons
from mongo import secrets, topology
from mongo.topology import ReplicaSet, Topology
from scripts.processes.cluster import Cluster

STORED, DUPLICATE, QUEUED = Outcome.STORED, Outcome.DUPLICATE, Outcome.QUEUED
# The main thread may have a browser's loop. It lives on, as a server ends with who started it.
ELSEWHERE = ThreadPoolExecutor(1)
MAC = "C2A628010001"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Cluster]:
    cluster = Cluster(topology.load(topology.EMBEDDED), tmp_path_factory.mktemp("loop"))
    with cluster.running(root / "mongo" / "directory.csv"):
        yield cluster


@pytest.fixture
def context(cluster: Cluster, tmp_path: Path) -> Context:
    spool = str(tmp_path / "spool.db")
    settings = Config(mongodb_uri=cluster.uri(), spool_file=spool, mongodb_timeout_ms=2000)
    context: Context = create_app(settings).extensions["context"]
    return context


class Loop:
    """A recorder in an event loop, and how it stored."""

    def __init__(self, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recorder = context.recording.recorder
        self.by_thread = 0
        self._inserts: LoopInserts = self.recorder._loop_inserts
        store = Recorder.store

        def counted(recorder: Recorder, requests: list[Any], *until: float) -> Any:
            self.by_thread += len(requests)
            return store(recorder, requests, *until)

        monkeypatch.setattr(Recorder, "store", counted)

    async def connected(self) -> None:
        """Store until the loop has its connection."""
        for n in range(500):
            if self._inserts.can_take([]):
                self.by_thread = 0
                return
            await self.recorder.submit([heard(f"first {time.time()} {n}")])
            await asyncio.sleep(0.02)
        pytest.fail("the loop has no connection")


def heard(event: str, staff_id: int = 7, **more: Any) -> Document:
    now = time.time()
    return document(staff_id, NOWHERE, int(now), -20, MAC, now, event_key(event, None)) | more


def in_loop(
    context: Context, monkeypatch: pytest.MonkeyPatch, work: Callable[[Loop], Awaitable[None]]
) -> None:
    async def run() -> None:
        loop = Loop(context, monkeypatch)
        loop.recorder.run_in(asyncio.get_running_loop())
        try:
            await work(loop)
        finally:
            await asyncio.to_thread(context.close)  # as a service does
            await asyncio.sleep(0.01)

    ELSEWHERE.submit(asyncio.run, run()).result()


def rows(cluster: Cluster, **query: Any) -> list[Document]:
    with MongoClient[Document](cluster.uri()) as client:
        return list(client["ICT3102"]["staff"].find(query))


def test_what_is_plain_needs_no_thread(
    context: Context, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(loop: Loop) -> None:
        await loop.connected()
        documents = [heard(f"plain {n}", 100 + n) for n in range(20)]
        requests = [loop.recorder.submit([document]) for document in documents]
        before = loop.recorder.tally.outcomes[STORED]
        assert await asyncio.gather(*requests) == [[STORED]] * 20
        assert loop.by_thread == 0
        assert loop.recorder.tally.outcomes[STORED] - before == 20  # for /metrics

    in_loop(context, monkeypatch, work)
    stored = rows(cluster, staff_id={"$gte": 100, "$lt": 120})
    assert len(stored) == 20
    now = time.time()
    for row in stored:
        assert (row["level"], row["location"]) == ("1", "Lobby A")
        assert abs(row["stored"].time - now) < 60  # MongoDB's own


def test_repeats_are_told_apart_within_a_group(
    context: Context, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(loop: Loop) -> None:
        await loop.connected()
        first = heard("once", 8)
        assert await loop.recorder.submit([dict(first)]) == [STORED]
        group = [[heard("new", 8)], [dict(first)], [heard("newer", 8), dict(first)]]
        results = await asyncio.gather(*map(loop.recorder.submit, group))
        assert results == [[STORED], [DUPLICATE], [STORED, DUPLICATE]]
        assert loop.by_thread == 0  # sent once; what was left to do was the thread's

    in_loop(context, monkeypatch, work)
    assert len(rows(cluster, staff_id=8)) == 3


def test_a_stamp_that_may_be_late_is_renewed(
    context: Context, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[Document] = []
    renew = Inserts.renew

    def counted(inserts: Inserts, documents: list[Document]) -> None:
        renewed.extend(documents)
        renew(inserts, documents)

    async def work(loop: Loop) -> None:
        await loop.connected()
        monkeypatch.setattr(Inserts, "renew", counted)
        loop.recorder._loop_inserts._clock = Clock()  # as if nothing was sent for a while
        assert await loop.recorder.submit([heard("late", 9)]) == [STORED]
        assert await loop.recorder.submit([heard("soon", 9)]) == [STORED]
        assert [document["staff_id"] for document in renewed] == [9]

    in_loop(context, monkeypatch, work)
    assert len(rows(cluster, staff_id=9)) == 2


def test_the_thread_takes_what_the_loop_should_not(
    context: Context, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(loop: Loop) -> None:
        await loop.connected()
        many = [heard(f"many {n}", 10) for n in range(LARGEST + 1)]
        assert await loop.recorder.submit(many) == [STORED] * (LARGEST + 1)
        loop.recorder._inserts._border._before = int(time.time()) - 100  # sealed up to then
        old = heard("old", 10) | {"timestamp": int(time.time()) - 200}  # maybe in a block
        assert await loop.recorder.submit([old]) == [STORED]
        assert loop.by_thread == 2
        wrong = heard("wrong", 10) | {"rssi": object()}
        fine = heard("fine", 10)
        results = await asyncio.gather(
            *(loop.recorder.submit([one]) for one in (wrong, fine)), return_exceptions=True
        )
        assert isinstance(results[0], Exception)
        assert results[1] == [STORED]

    in_loop(context, monkeypatch, work)
    assert len(rows(cluster, staff_id=10)) == LARGEST + 3


def test_threads_are_answered_as_well(
    context: Context, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(loop: Loop) -> None:
        await loop.connected()
        calls = (
            asyncio.to_thread(loop.recorder.record, [heard(f"call {n}", 11)]) for n in range(8)
        )
        assert await asyncio.gather(*calls) == [[STORED]] * 8

    in_loop(context, monkeypatch, work)
    assert len(rows(cluster, staff_id=11)) == 8


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_what_the_database_does_not_answer_waits_in_the_spool(
    context: Context, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    staff_id = 12 if how == "killed" else 13

    async def work(loop: Loop) -> None:
        await loop.connected()
        assert await loop.recorder.submit([heard("before", staff_id)]) == [STORED]
        if how == "killed":
            cluster.kill("mongod")
        else:
            cluster.send_signal("mongod", signal.SIGSTOP)
        began = time.monotonic()
        group = [loop.recorder.submit([heard(f"during {n}", staff_id)]) for n in range(5)]
        assert await asyncio.gather(*group) == [[QUEUED]] * 5
        assert time.monotonic() - began < 20  # what is allowed for it, on a busy machine
        if how == "killed":
            cluster.start()
        else:
            cluster.send_signal("mongod", signal.SIGCONT)
        for _ in range(600):
            if not (loop.recorder.queued or context.database.availability.degraded):
                break
            await asyncio.sleep(0.1)
        await loop.connected()
        assert await loop.recorder.submit([heard("after", staff_id)]) == [STORED]
        assert loop.by_thread == 0

    in_loop(context, monkeypatch, work)
    assert len(rows(cluster, staff_id=staff_id)) == 7


def test_the_loop_sees_what_was_written_into_the_directory(
    context: Context, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another service, and 2 s ago: the loop asks itself whether something was."""
    directory = context.directory.cache
    spot = Beacon("AA0000000014", "4", "Old spot")

    async def work(loop: Loop) -> None:
        await loop.connected()
        for place in ("Old spot", "New spot"):
            beacon = spot._replace(location=place)
            await asyncio.to_thread(Beacons(context.database.client.database).put, [beacon])
            directory._check_at = 0.0  # 2 s later
            for event in ("first", "again"):
                found = heard(f"{place} {event}", 14, mac=spot.mac)
                assert await loop.recorder.submit([found]) == [STORED]
                directory._check_at = 0.0
            assert loop.by_thread == 1  # it was another revision once
            loop.by_thread = 0

    in_loop(context, monkeypatch, work)
    places = [row["location"] for row in rows(cluster, staff_id=14)]
    assert sorted(places) == ["New spot"] * 2 + ["Old spot"] * 2


def test_a_new_connection_knows_no_time(
    context: Context, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[Document] = []

    async def work(loop: Loop) -> None:
        await loop.connected()
        inserts = loop.recorder._loop_inserts
        assert await loop.recorder.submit([heard("first", 15)]) == [STORED]
        assert inserts._connection
        inserts._connection.close()
        await asyncio.sleep(0)
        await asyncio.to_thread(inserts.lend, asyncio.get_running_loop())
        for _ in range(500):
            if inserts.can_take([]):
                break
            await asyncio.sleep(0.01)
        monkeypatch.setattr(Inserts, "renew", lambda _, documents: renewed.extend(documents))
        assert await loop.recorder.submit([heard("second", 15)]) == [STORED]
        assert [document["staff_id"] for document in renewed] == [15]

    in_loop(context, monkeypatch, work)


@pytest.mark.parametrize("left", [0.0, -1.0])
def test_no_time_that_is_left_is_not_for_ever(context: Context, left: float) -> None:
    """For the driver it would be."""
    with pytest.raises(StoreUnavailable), time_limit(left):
        Inserts(context.database.client.staff).renew([heard("late", 16)])
    context.close()


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Cluster]:
    names = tuple(f"mongod-{number}:27017" for number in (1, 2, 3))
    three = Topology(ReplicaSet("embedded", names), None, (), ())
    cluster = Cluster(three, tmp_path_factory.mktemp("three"))
    with cluster.running(root / "mongo" / "directory.csv"):
        yield cluster


@pytest.mark.long
@pytest.mark.parametrize("what", ["no majority", "another primary"])
def test_a_200_means_that_a_majority_has_it(
    members: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    settings = Config(
        mongodb_uri=members.uri(), spool_file=str(tmp_path / "spool.db"), mongodb_timeout_ms=2000
    )
    context: Context = create_app(settings).extensions["context"]
    client = context.database.client._client

    def is_primary(host: str) -> bool:
        return client.primary is not None and int(host.rpartition(":")[2]) == client.primary[1]

    def secondaries() -> list[str]:
        hosts = members.local.replica_set.members if members.local.replica_set else ()
        named = zip(members.servers(), hosts, strict=True)
        return [name for name, host in named if not is_primary(host)]

    async def work(loop: Loop) -> None:
        await loop.connected()
        assert await loop.recorder.submit([heard(f"close {what}", 17)]) == [
            STORED
        ]  # so is the next stamp
        if what == "no majority":
            stopped = secondaries()
            for name in stopped:
                members.send_signal(name, signal.SIGSTOP)
            try:
                assert await loop.recorder.submit([heard(what, 17)]) == [QUEUED]
            finally:
                for name in stopped:
                    members.send_signal(name, signal.SIGCONT)
            return
        old = client.primary
        with MongoClient[Document](members.uri(user=secrets.ADMIN_USER)) as admin:
            await asyncio.to_thread(admin.admin.command, "replSetStepDown", 60)
        for _ in range(600):
            if client.primary not in (None, old):
                break
            await asyncio.sleep(0.05)
        assert not loop.recorder._loop_inserts.can_take([])  # the old one would still listen
        assert await loop.recorder.submit([heard(what, 17)]) == [STORED]
        await loop.connected()  # to the new one

    in_loop(context, monkeypatch, work)
