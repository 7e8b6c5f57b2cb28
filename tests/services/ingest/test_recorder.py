"""What becomes of detections when MongoDB dies, freezes and comes back."""

import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo import MongoClient

from ingest import create_app
from ingest.assembly import Context
from ingest.config import Config
from ingest.storage.detections.documents import document
from mongo import topology
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.phones import Phones, inside
from tests.reads import read_while_frozen

GOOD = {"user_address": "0", "beacon_address": "C2A628384B08", "rssi": "-20"}
SENDERS = 20


@pytest.fixture
def cluster(tmp_path: Path, root: Path) -> Iterator[Cluster]:
    cluster = Cluster(topology.load(topology.EMBEDDED), tmp_path / "mongod")
    with cluster.running(root / "mongo" / "directory.csv"):
        yield cluster


def service(cluster: Cluster, **more: Any) -> Flask:
    spool = str(cluster.folder.parent / "spool.db")
    settings = {"mongodb_timeout_ms": 1000} | more
    return create_app(Config(mongodb_uri=cluster.uri(), spool_file=spool, **settings))


def stored(cluster: Cluster) -> list[dict[str, Any]]:
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        return list(client["ICT3102"]["staff"].find())


def drained(app: Flask, seconds: float = 60) -> None:
    context: Context = app.extensions["context"]
    eventually(
        lambda: not (context.recording.recorder.queued or context.database.availability.degraded),
        seconds,
    )


def test_each_sender_learns_what_became_of_its_own(client: FlaskClient) -> None:
    outcomes: list[str] = []

    def send(event: str) -> None:
        answer = client.application.test_client().post(
            "/newbeacondetect", json=GOOD | {"event_id": event}
        )
        outcomes.append(answer.headers["X-Detection"])

    threads = [threading.Thread(target=send, args=(f"e{n % 10}",)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["duplicate"] * 30 + ["stored"] * 10


@pytest.mark.parametrize("how", ["killed", pytest.param("frozen", marks=pytest.mark.long)])
def test_an_outage_loses_and_doubles_nothing(cluster: Cluster, how: str) -> None:
    app = service(cluster)
    with Phones(inside(app), [*range(SENDERS)]) as senders:
        senders.wait_for(200, more=1, seconds=60)
        if how == "killed":
            cluster.kill("mongod")
        else:
            cluster.send_signal("mongod", signal.SIGSTOP)
        time.sleep(3)
        waits = []
        for _ in range(5):  # the quickest of them: to ask the database would take each 1 s
            began = time.monotonic()
            answer = app.test_client().get("/extractbeacon?staff_id=0&start_time=0&end_time=1")
            waits.append(time.monotonic() - began)
            assert answer.status_code == 503
        assert min(waits) < 0.6
        if how == "killed":
            cluster.start()
        else:
            cluster.send_signal("mongod", signal.SIGCONT)
        time.sleep(1)
    assert set(senders.answers) == {200, 202}
    assert senders.longest_seconds < 12  # one time-out of 1 s, and not one after the other for all
    drained(app)
    assert len(stored(cluster)) == len(senders.confirmed)
    app.extensions["context"].close()


def test_a_restarted_service_drains_its_spool_and_finds_the_places(cluster: Cluster) -> None:
    cluster.kill("mongod")
    app = service(cluster)  # it has never seen the directory
    for number in range(20):
        body = GOOD | {"user_address": number, "event_id": "x"}
        assert app.test_client().post("/newbeacondetect", json=body).status_code == 202
    app.extensions["context"].close()  # as good as dead: its spool cannot drain any more
    cluster.start()
    again = service(cluster)
    drained(again)
    assert {row["location"] for row in stored(cluster)} == {"Team 6 Beacon 1"}
    assert len(stored(cluster)) == 20
    again.extensions["context"].close()


@pytest.mark.long
def test_what_is_read_from_a_database_that_just_froze_is_a_503_soon(cluster: Cluster) -> None:
    spool = str(cluster.folder.parent / "spool.db")
    slow = Config(mongodb_uri=cluster.uri(), mongodb_timeout_ms=10_000, spool_file=spool)
    app = create_app(slow)
    client = app.test_client()
    assert read_while_frozen(client, cluster, "mongod", 1) == {}
    app.extensions["context"].close()


@pytest.mark.long
def test_a_full_spool_asks_the_phone_to_keep_it(cluster: Cluster) -> None:
    app = service(cluster, spool_max_detections=3)
    cluster.kill("mongod")
    client = app.test_client()
    answers = [client.post("/newbeacondetect", json=GOOD | {"event_id": n}) for n in range(5)]
    assert [answer.status_code for answer in answers] == [202, 202, 202, 503, 503]
    assert answers[4].headers["Retry-After"] == "2"
    cluster.start()
    drained(app)
    assert client.post("/newbeacondetect", json=GOOD).status_code == 200
    assert len(stored(cluster)) == 4
    app.extensions["context"].close()


@pytest.mark.long
def test_a_spool_that_takes_no_deletions_drains_all_the_same(cluster: Cluster) -> None:
    app = service(cluster)
    context: Context = app.extensions["context"]
    client = app.test_client()
    for event in "ab":  # the second is kept in a file that was made anew
        cluster.kill("mongod")
        assert client.post("/newbeacondetect", json=GOOD | {"event_id": event}).status_code == 202
        file = context.recording.spools.own._file()
        file.execute("PRAGMA query_only = 1")  # what a full disk does: a deletion is written too
        cluster.start()
        drained(app)
        # The drain makes the file anew after it has counted that nothing waits.
        eventually(lambda: context.recording.spools.own._open_file is not file, 20)  # noqa: B023
    assert len(stored(cluster)) == 2
    context.close()


def test_a_document_that_mongodb_refuses_takes_no_neighbour_along(cluster: Cluster) -> None:
    app = service(cluster, mongodb_timeout_ms=10_000)  # a machine that is full has time
    context: Context = app.extensions["context"]
    with MongoClient[dict[str, Any]](cluster.uri(user="admin")) as client:
        client["ICT3102"].command("collMod", "staff", validator={"rssi": {"$lt": 0}})
    assert app.test_client().post("/newbeacondetect", json=GOOD | {"rssi": 5}).status_code == 400
    documents = [
        document(7, ("1", "x"), 1, rssi, "A" * 12, 1.0, (str(rssi), 1)) for rssi in (-1, 1, -2)
    ]
    assert [how.value for how in context.recording.recorder.record(documents)] == [
        "stored",
        "rejected",
        "stored",
    ]
    context.recording.spools.own.append(documents)  # as after an outage
    context.database.availability.drain_wanted.set()
    drained(app)
    assert sorted(row["rssi"] for row in stored(cluster)) == [-2, -1]
    context.close()
    with sqlite3.connect(cluster.folder.parent / "spool.db") as file:
        assert file.execute("SELECT count(*) FROM refused").fetchone() == (1,)
