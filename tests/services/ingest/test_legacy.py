"""The legacy contract, on a real mongod."""

import gzip
import itertools
import json
import random
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo.database import Database

from ingest.assembly import Context
from ingest.errors import StoreUnavailable
from ingest.histories import last_minutes
from ingest.rules.request_parameters import EARLIEST
from ingest.storage.detections.arrivals import Arrivals
from ingest.storage.detections.detections import Detections
from scripts.processes.waiting import eventually
from tests.loops import run

MAC = "C2:A6:28:38:4B:08"
GOOD = {"user_address": "0", "beacon_address": MAC, "rssi": "-20"}
Documents = Database[dict[str, Any]]


def history(
    client: FlaskClient, staff_id: object = 0, start: int = 0, end: int = 4102444800
) -> Any:
    query = {"staff_id": staff_id, "start_time": start, "end_time": end}
    answer = client.get("/extractbeacon", query_string=query)
    assert answer.status_code == 200
    return answer.get_json()["location"]


@pytest.mark.parametrize(
    "request_",
    [
        {"method": "GET", "query_string": GOOD},
        {"method": "POST", "query_string": GOOD},
        {"method": "POST", "data": GOOD},
        {"method": "POST", "data": GOOD, "content_type": "multipart/form-data"},
        {"method": "POST", "json": GOOD},
        {"method": "POST", "json": {"user_address": 0, "rssi": -20, "beacon_address": MAC.lower()}},
        {
            "method": "POST",
            "json": {"rssi": -20},
            "query_string": {"user_address": 0, "beacon_address": MAC},
        },
    ],
)
def test_a_detection_comes_in_any_dress(
    client: FlaskClient, database: Documents, request_: dict[str, Any]
) -> None:
    answer = client.open("/newbeacondetect", **request_)
    assert (answer.status_code, answer.text) == (200, "New Beacon Detection Added")
    assert answer.headers.getlist("Access-Control-Allow-Origin") == ["*"]
    stored = database["staff"].find_one(
        {}, {"_id": 0, "timestamp": 0, "received_at": 0, "stored": 0}
    )
    known = {"staff_id": 0, "mac": MAC.replace(":", ""), "rssi": -20}
    assert stored == known | {"level": "4", "location": "Lobby B"}


def test_server_time_is_used_and_the_receive_time_kept(
    client: FlaskClient, database: Documents
) -> None:
    before = int(time.time())
    client.get("/newbeacondetect", query_string=GOOD)
    client.get("/newbeacondetect", query_string=GOOD | {"timestamp": "1600000000"})
    by_server, by_device = database["staff"].find().sort("timestamp", -1)
    assert before <= by_server["timestamp"] <= time.time()
    assert by_device["timestamp"] == 1600000000
    assert abs((by_device["received_at"] - by_server["received_at"]).total_seconds()) < 60


def test_unknown_beacon_is_stored_all_the_same(client: FlaskClient) -> None:
    client.get("/newbeacondetect", query_string=GOOD | {"beacon_address": "FFFFFFFFFFFE"})
    (detection,) = history(client)
    assert (detection["level"], detection["location"]) == ("unknown", "unknown")


def test_history_is_newest_first_inclusive_and_whole(client: FlaskClient) -> None:
    first, *_, last = whole = [EARLIEST + n for n in range(5)]
    for timestamp in random.sample(whole, 5):
        client.get("/newbeacondetect", query_string=GOOD | {"timestamp": timestamp})
    other = {"timestamp": first + 2, "user_address": "1"}
    client.get("/newbeacondetect", query_string=GOOD | other)
    assert [detection["timestamp"] for detection in history(client)] == whole[::-1]
    between = history(client, start=first + 1, end=last - 1)
    assert [detection["timestamp"] for detection in between] == whole[3:0:-1]
    assert history(client, start=last + 1) == []


def test_answers_byte_for_byte(client: FlaskClient) -> None:
    now = int(time.time())
    client.get("/newbeacondetect", query_string=GOOD | {"timestamp": now})
    answer = client.get("/extractbeacon?staff_id=0&start_time=0&end_time=4102444800")
    assert answer.content_type == "application/json"
    assert (
        answer.text == f'{{"location":[{{"level":"4","location":"Lobby B","timestamp":{now}}}]}}\n'
    )
    assert client.get("/retrieveformonitoring").text == (
        f'{{"location":[{{"staff_id":0,"level":"4","location":"Lobby B","timestamp":{now},'
        '"rssi":-20,"mac":"C2A628384B08"}]}\n'
    )


def test_monitoring_holds_everybody_of_the_last_15_minutes(client: FlaskClient) -> None:
    now = int(time.time())
    for staff_id, age in ((1, 890), (2, 5), (2, 10), ("SDA-1", 300), (3, 910)):
        moment = {"user_address": staff_id, "timestamp": now - age}
        client.get("/newbeacondetect", query_string=GOOD | moment)
    heard = client.post("/retrieveformonitoring").get_json()["location"]
    assert [detection["staff_id"] for detection in heard] == [2, 2, "SDA-1", 1]


def test_what_is_dated_ahead_comes_in_when_its_time_has_come(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time())
    for staff_id, ahead in ((1, 0), (2, 50), (3, 100), (4, 80_000)):
        moment = {"user_address": staff_id, "timestamp": now + ahead}
        client.get("/newbeacondetect", query_string=GOOD | moment)

    def heard(later: int) -> list[int]:
        monkeypatch.setattr(time, "time", lambda: now + later)
        detections = client.get("/retrieveformonitoring").get_json()["location"]
        return [row["staff_id"] for row in detections]

    assert heard(0) == [2, 1]
    assert heard(60) == [3, 2, 1]
    assert heard(905) == [3, 2]
    assert heard(1001) == []
    assert heard(80_000) == [4]


def rows(database: Documents, count: int) -> None:
    """Let so many detections have come in the last minutes."""
    now = int(time.time())
    database["staff"].insert_many(
        {"staff_id": n % 500, "mac": f"C2A628384B{n % 57:02X}", "rssi": -40 - n % 50}
        | {"timestamp": now - n * 800 // count, "level": str(n % 7), "location": "Lobby"}
        for n in range(count)
    )


def test_the_last_minutes_are_the_same_bytes_compressed_or_not(
    client: FlaskClient, database: Documents
) -> None:
    rows(database, 3000)
    plain = client.get("/retrieveformonitoring")
    assert plain.content_length == len(plain.data)
    heard = json.loads(plain.data)["location"]
    assert len(heard) == 3000
    compact = json.dumps({"location": heard}, separators=(",", ":")).encode() + b"\n"
    assert plain.data == compact
    packed = client.get("/retrieveformonitoring", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert len(packed.data) == packed.content_length < len(plain.data) / 5
    etag = plain.headers["ETag"]
    assert packed.headers["ETag"] == etag
    again = client.get("/retrieveformonitoring", headers={"If-None-Match": etag})
    assert (again.status_code, again.data) == (304, b"")


@pytest.mark.long
def test_a_crowd_of_rows_takes_little_memory(app: Flask, database: Documents) -> None:
    rows(database, 90_000)
    client = app.test_client()
    for encoding in ("identity", "gzip"):
        tracemalloc.start()
        with client.get("/retrieveformonitoring", headers={"Accept-Encoding": encoding}) as answer:
            length = sum(len(piece) for piece in answer.response)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert length == answer.content_length
        assert peak < 8 * 2**20


@pytest.mark.long
def test_the_last_minutes_are_exact_whatever_came_meanwhile(
    client: FlaskClient, database: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    read = Detections.list_recent
    spans: list[int] = []

    def spied(self: Detections, start: int, end: int, as_of: Any) -> Any:
        spans.append(end - start)
        return read(self, start, end, as_of)

    monkeypatch.setattr(Detections, "list_recent", spied)
    late: dict[str, bool] = {}  # as after a backlog: what came in cannot be told in time

    def late_at_times(name: str) -> Callable[..., Any]:
        tell = getattr(Arrivals, name)

        def tell_or_be_late(*arguments: Any) -> Any:
            if late.get(name):
                raise StoreUnavailable("late")
            return tell(*arguments)

        return tell_or_be_late

    for name in ("after", "first_time"):
        monkeypatch.setattr(Arrivals, name, late_at_times(name))
    rows(database, 1300)  # more than two blocks, of people whom `latest` does not have
    began = int(time.time())
    wrong = []
    for step in range(60):
        now = began + step * 20
        monkeypatch.setattr(time, "time", lambda now=now: now)
        for _ in range(chance.randrange(4)):
            age = chance.choice([0, 1, 5, 30, 400, 890, 2000, -30, -70, -300])
            moment = {"user_address": chance.randrange(6), "timestamp": now - age}
            client.get("/newbeacondetect", query_string=GOOD | moment)
        late.update(after=chance.random() < 0.2, first_time=chance.random() < 0.2)
        heard = client.get("/retrieveformonitoring").get_json()["location"]
        times = [row["timestamp"] for row in heard]
        assert times == sorted(times, reverse=True)
        window = {"timestamp": {"$gte": now - 900, "$lte": now + 60}}
        ours = dict.fromkeys(("_id", "received_at", "stored", "heard"), 0)
        stored = database["staff"].find(window, ours)
        if Counter(map(json.dumps, map(in_order, heard))) != Counter(
            map(json.dumps, map(in_order, stored))
        ):
            wrong.append(step)
    assert wrong == []
    late.clear()
    client.get("/retrieveformonitoring")
    time.sleep(1.1)  # of what was stored since, the second of the stamps is another one
    spans.clear()
    client.get("/newbeacondetect", query_string=GOOD | {"timestamp": now - 5})
    client.get("/retrieveformonitoring")
    assert max(spans) < 200  # only what changed is read


def in_order(row: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(row.items())


def test_too_many_are_refused_before_they_are_held(
    client: FlaskClient, database: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_minutes, "MAX_ROWS", 1000)
    rows(database, 1000)
    assert len(client.get("/retrieveformonitoring").get_json()["location"]) == 1000
    client.get("/newbeacondetect", query_string=GOOD)
    assert client.get("/retrieveformonitoring").status_code == 503


def test_what_is_read_again_is_not_held_beside_what_was(
    app: Flask, client: FlaskClient, database: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With somebody's backlog nearly all is; when that fails, no more is read the next time."""
    context: Context = app.extensions["context"]
    rows(database, 4000)
    read, held, spans = Detections.list_recent, list[int](), list[int]()

    def spied(self: Detections, start: int, end: int, as_of: Any) -> Any:
        assert context.histories.last_minutes._cached
        held.append(
            sum(block.rows for block in context.histories.last_minutes._cached.history.blocks)
        )
        spans.append(end - start)
        if len(spans) == 1:
            raise StoreUnavailable("it went away")
        return read(self, start, end, as_of)

    assert len(client.get("/retrieveformonitoring").get_json()["location"]) == 4000
    monkeypatch.setattr(Detections, "list_recent", spied)
    backlog = {"timestamp": int(time.time()) - 700}
    assert client.get("/newbeacondetect", query_string=GOOD | backlog).status_code == 200
    assert client.get("/retrieveformonitoring").status_code == 503
    assert len(client.get("/retrieveformonitoring").get_json()["location"]) == 4001
    assert max(held) < 1200  # of 4000: those of the last 100 seconds before the window's end
    assert max(spans) < 800


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_large_answer_is_sent_before_the_next_is_read(
    client: FlaskClient, database: Documents, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(last_minutes, "LARGE_BYTES", 10_000)
    monkeypatch.setattr(last_minutes, "SENT_SECONDS", 60)
    rows(database, 4000)
    headers = {"Accept-Encoding": encoding}
    slow = client.get("/retrieveformonitoring", headers=headers, buffered=False)
    pieces = iter(slow.response)
    next(pieces)
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(client.application.test_client().get, "/retrieveformonitoring")
        assert not wait([other], timeout=1).done
        for _ in pieces:
            pass
        slow.close()
        assert other.result(30).status_code == 200
    monkeypatch.setattr(last_minutes, "SENT_SECONDS", 0.2)
    slow = client.get("/retrieveformonitoring", headers=headers, buffered=False)  # who stands still
    assert client.get("/retrieveformonitoring", headers=headers).status_code == 200
    slow.close()


def test_who_asks_at_the_same_moment_shares_one_reading(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go_on, readings = threading.Event(), threading.Event(), []
    read = Detections.list_recent

    def slow(self: Detections, start: int, end: int, as_of: Any) -> Any:
        readings.append(start)
        started.set()
        assert go_on.wait(30)
        return read(self, start, end, as_of)

    monkeypatch.setattr(Detections, "list_recent", slow)
    context: Context = app.extensions["context"]
    with ThreadPoolExecutor(9) as threads:
        asked = [threads.submit(context.histories.last_minutes.read)]
        assert started.wait(30)
        asked += [threads.submit(context.histories.last_minutes.read) for _ in range(8)]
        eventually(lambda: len(context.histories.last_minutes._reads._waiting) == 8)
        go_on.set()
        assert len({future.result()[1] for future in asked}) == 1
    assert len(readings) == 2


def test_a_database_that_fails_in_the_middle_is_a_503(
    client: FlaskClient, database: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows(database, 3000)
    read = Detections.list_recent

    def broken(self: Detections, start: int, end: int, as_of: Any) -> Any:
        yield from itertools.islice(read(self, start, end, as_of), 2500)
        raise StoreUnavailable("away")

    monkeypatch.setattr(Detections, "list_recent", broken)
    answer = client.get("/retrieveformonitoring")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


def test_a_number_and_its_text_are_the_same_person(client: FlaskClient) -> None:
    client.post("/newbeacondetect", json=GOOD | {"user_address": 7})
    client.post("/newbeacondetect", json=GOOD | {"user_address": "7"})
    assert len(history(client, "7")) == 2


@pytest.mark.parametrize("path", ["/api/v1/staff", "/api/v1/beacons", "/docs", "/healthz"])
def test_pages_of_other_origins_may_call_the_legacy_endpoints_alone(
    client: FlaskClient, path: str
) -> None:
    answer = client.get(path, headers={"Origin": "http://x.example"})
    assert answer.status_code == 200
    assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]


@pytest.mark.parametrize("name", ["user_address", "beacon_address", "rssi"])
@pytest.mark.parametrize("dress", ["query_string", "data", "json"])
def test_a_missing_parameter_is_named(client: FlaskClient, name: str, dress: str) -> None:
    rest: Any = {key: value for key, value in GOOD.items() if key != name}
    kind: Any = {dress: rest}
    answer = client.post("/newbeacondetect", **kind)
    assert answer.status_code == 400
    assert answer.get_json() == {"error": f"{name}: is missing", "parameter": name}
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "application/json"),
        (b"[1]", "application/json"),
        (b'"text"', "application/json"),
        (b"\xff\xfe\x00", "application/json"),
        (b"[" * 8000, "application/json"),
        (b'{"rssi":' + b"9" * 5000 + b"}", "application/json"),
    ],
)
@pytest.mark.usefixtures("no_collection")
def test_a_bad_body_is_named(client: FlaskClient, body: bytes, kind: str) -> None:
    answer = client.post("/newbeacondetect", data=body, content_type=kind)
    assert (answer.status_code, answer.get_json()["parameter"]) == (400, "body")


JSON_BODY = json.dumps(GOOD).encode()


@pytest.mark.parametrize(
    ("body", "kind", "parameter", "says"),
    [
        (JSON_BODY, "text/plain", "user_address", "Content-Type: application/json"),
        (JSON_BODY, "text/plain;charset=UTF-8", "user_address", "Content-Type: application/json"),
        (JSON_BODY, None, "user_address", "Content-Type: application/json"),
        # As `curl -d` sends it.
        (b" " + JSON_BODY, "application/x-www-form-urlencoded", "user_address", "the body is JSON"),
        (gzip.compress(JSON_BODY, mtime=0), "application/json", "body", "the body is compressed"),
        (gzip.compress(JSON_BODY, mtime=0), "text/plain", "user_address", "the body is compressed"),
        (b"{}", "application/json", "user_address", "is missing"),
        (b"hello", "text/plain", "user_address", "is missing"),
    ],
)
def test_a_body_that_is_not_read_is_told(
    client: FlaskClient, body: bytes, kind: str | None, parameter: str, says: str
) -> None:
    answer = client.post("/newbeacondetect", data=body, content_type=kind)
    assert (answer.status_code, answer.get_json()["parameter"]) == (400, parameter)
    error = answer.get_json()["error"]
    assert says in error
    if says == "is missing":
        assert error == "user_address: is missing"


@pytest.mark.parametrize("body", [JSON_BODY, gzip.compress(JSON_BODY, mtime=0)])
def test_a_body_of_another_kind_stays_without_meaning(client: FlaskClient, body: bytes) -> None:
    answer = client.post(
        "/newbeacondetect", query_string=GOOD, data=body, content_type="text/plain"
    )
    assert (answer.status_code, answer.data) == (200, b"New Beacon Detection Added")


def test_an_operator_object_is_data_and_refused(client: FlaskClient, database: Documents) -> None:
    for name in ("user_address", "beacon_address", "rssi", "timestamp", "event_id"):
        answer = client.post("/newbeacondetect", json=GOOD | {name: {"$gt": ""}})
        assert (answer.status_code, answer.get_json()["parameter"]) == (400, name)
    bounds = {"start_time": 0, "end_time": 1}
    answer = client.post("/extractbeacon", json={"staff_id": {"$ne": None}} | bounds)
    assert (answer.status_code, answer.get_json()["parameter"]) == (400, "staff_id")
    assert database["staff"].count_documents({}) == 0


def test_a_huge_body_is_refused(client: FlaskClient) -> None:
    answer = client.post("/newbeacondetect", json={"user_address": "x" * 2**20})
    assert (answer.status_code, answer.get_json()["parameter"]) == (413, "body")


def test_unknown_addresses_answer_json(client: FlaskClient) -> None:
    assert json.loads(client.get("/nothing").text) == {"error": "not found"}
    assert client.delete("/newbeacondetect").get_json() == {"error": "method not allowed"}


def test_asking_for_the_head_stores_nothing(client: FlaskClient, database: Documents) -> None:
    assert client.head("/newbeacondetect", query_string=GOOD).status_code == 405
    assert database["staff"].count_documents({}) == 0


def test_an_empty_query_parameter_hides_nothing(client: FlaskClient) -> None:
    assert client.post("/newbeacondetect?rssi=&timestamp=", data=GOOD).status_code == 200


def test_flask_answers_also_where_a_loop_is_running(client: FlaskClient) -> None:
    async def in_a_loop() -> int:
        return client.get("/newbeacondetect", query_string=GOOD).status_code

    assert run(in_a_loop()) == 200
