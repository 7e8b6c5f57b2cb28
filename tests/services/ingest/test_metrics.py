"""What `/metrics` of an ingest service tells, by what happens to it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from pymongo.hello import Hello
from pymongo.server_description import ServerDescription
from pymongo.server_type import SERVER_TYPE
from pymongo.synchronous.settings import TopologySettings
from pymongo.topology_description import TOPOLOGY_TYPE, TopologyDescription

from common.metrics import INGEST, METRICS, SERVICES
from ingest import create_app
from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.storage.database.client import lag_seconds
from ingest.storage.people.latest import Latest
from ingest.web import metrics
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.metrics import complaints, samples
from tests.needs import need
from tests.service import Service, running

GOOD = {"user_address": 7, "beacon_address": "C2A628384B08", "rssi": -20}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each page be read of the database anew."""
    monkeypatch.setattr(metrics._shared, "_seconds", 0)


def told(client: FlaskClient) -> dict[str, float]:
    answer = client.get("/metrics")
    assert (answer.status_code, answer.mimetype) == (200, "text/plain")
    return samples(answer.text)


def outcomes(values: dict[str, float]) -> dict[str, float]:
    name = 'waymark_detections_total{outcome="'
    return {
        label.removeprefix(name).removesuffix('"}'): value
        for label, value in values.items()
        if label.startswith(name) and value
    }


def test_promtool_likes_it_and_the_table_has_all(client: FlaskClient) -> None:
    need("promtool")
    text = client.get("/metrics").text
    assert complaints(text) == ""
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    ours = {metric.name for metric in METRICS if metric.part in (INGEST, SERVICES)}
    absent = {"waymark_last_detection_timestamp_seconds", "waymark_replication_lag_seconds"}
    assert names <= ours
    assert ours - names - {"waymark_memory_limit_bytes"} == absent


def test_what_is_stored_and_repeated_is_counted(client: FlaskClient) -> None:
    before = told(client)
    assert outcomes(before) == {}
    began = time.time()
    for event_id in ("a", "a", "b"):
        assert (
            client.post("/newbeacondetect", json=GOOD | {"event_id": event_id}).status_code == 200
        )
    after = told(client)
    assert outcomes(after) == {"stored": 2, "duplicate": 1}
    assert began <= after["waymark_last_detection_timestamp_seconds"] <= time.time()
    assert after["waymark_group_detections_count"] == 3
    assert after["waymark_group_detections_sum"] == 3
    assert after["waymark_database_up"] == 1
    assert after["waymark_database_degraded"] == 0


def test_a_batch_is_one_group(client: FlaskClient) -> None:
    rows = [{"staff_id": 7, "mac": "C2A628384B08", "rssi": -20}] * 30
    assert client.post("/api/v1/detections", json={"detections": rows}).status_code == 200
    after = told(client)
    assert after['waymark_group_detections_bucket{le="20"}'] == 0
    assert after['waymark_group_detections_bucket{le="50"}'] == 1
    assert after["waymark_group_detections_sum"] == 30


def test_who_was_heard_is_counted_once_and_not_for_long(client: FlaskClient, database: Any) -> None:
    now = int(time.time())
    for staff_id, ago in ((1, 0), (2, 200), (3, 400)):
        recent = [{"heard": now - ago}, {"heard": now - 9999}]
        database["latest"].insert_one({"_id": staff_id, "recent": recent})
    assert told(client)["waymark_people_heard"] == 2


def test_a_history_is_read_once_and_then_from_memory(client: FlaskClient) -> None:
    assert client.post("/newbeacondetect", json=GOOD).status_code == 200
    asked = {"staff_id": 7, "start_time": int(time.time()) - 60, "end_time": int(time.time()) + 60}
    for _ in range(3):
        assert client.get("/extractbeacon", query_string=asked).status_code == 200
    after = told(client)
    assert after['waymark_history_reads_total{cache="miss"}'] == 1
    assert after['waymark_history_reads_total{cache="hit"}'] == 2


def test_a_database_that_cannot_count_in_time_answers_all_the_same(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(_: Latest, since: int) -> int:
        raise StoreUnavailable("too slow")

    monkeypatch.setattr(Latest, "heard_since", late)
    values = told(client)
    assert values["waymark_database_up"] == 1
    assert values["waymark_database_ping_seconds"] > 0
    assert "waymark_people_heard" not in values


@pytest.fixture
def away(tmp_path: Path) -> Iterator[FlaskClient]:
    uri = f"mongodb://127.0.0.1:{free_port()}/?replicaSet=embedded"
    spool = str(tmp_path / "spool.db")
    config = Config(
        mongodb_uri=uri, mongodb_timeout_ms=300, spool_file=spool, spool_max_detections=2
    )
    app = create_app(config)
    yield app.test_client()
    app.extensions["context"].close()


def test_what_waits_in_the_spool_is_counted_and_how_long(away: FlaskClient) -> None:
    assert told(away)["waymark_spool_age_seconds"] == 0
    for status in (202, 202, 503):
        assert away.post("/newbeacondetect", json=GOOD).status_code == status
    first = told(away)
    assert outcomes(first) == {"queued": 2, "unavailable": 1}
    assert first["waymark_spool_detections"] == 2
    assert first["waymark_spool_room_detections"] == 0
    assert first["waymark_spool_disk_free_bytes"] > 0
    assert (first["waymark_database_up"], first["waymark_database_degraded"]) == (0, 1)
    assert "waymark_people_heard" not in first
    assert "waymark_database_ping_seconds" not in first
    age = first["waymark_spool_age_seconds"]
    assert 0 < age < 60
    assert eventually(lambda: told(away)["waymark_spool_age_seconds"] > age + 1)


def test_the_loop_counts_what_it_answers_and_how_long_that_took(
    mongod: str, tmp_path: Path
) -> None:
    with running(Service(mongod, tmp_path)) as [service]:
        assert service.detect(7).status_code == 200
        assert service.get("//newbeacondetect", **GOOD).status_code == 200
        assert service.detect("").status_code == 400
        assert service.get("/api/v1/staff/7/detections").status_code == 200
        assert service.get("/nothing").status_code == 404
        values = samples(service.get("/metrics").text)
        named = {"Host": "ingest-1:5001"}  # a name may be anybody's (DNS rebinding)
        assert service.session.get(f"{service.url}/metrics", headers=named).status_code == 421
    counted = {
        (kind, status): values[f'waymark_requests_total{{kind="{kind}",status="{status}"}}']
        for kind, status in (
            ("ingest", "2xx"),
            ("ingest", "4xx"),
            ("history", "2xx"),
            ("other", "4xx"),
            ("batch", "2xx"),
        )
    }
    assert list(counted.values()) == [2, 1, 1, 1, 0]
    assert values['waymark_request_seconds_count{kind="ingest"}'] == 3
    assert 0 < values['waymark_request_seconds_sum{kind="ingest"}'] < 60
    assert values["waymark_cpu_seconds_total"] > 0
    assert values["waymark_start_time_seconds"] == pytest.approx(time.time(), abs=120)


def member(kind: int, written: float, looked_at: float) -> ServerDescription:
    """Return what the driver knows of a member: when it wrote last, and when it said so."""
    server = ServerDescription(("127.0.0.1", len(str(written))), Hello({"ok": 1}))
    server._server_type, server._last_write_date = kind, written
    server._last_update_time = looked_at
    return server


@pytest.mark.parametrize(
    ("members", "lag"),
    [
        ([(SERVER_TYPE.RSPrimary, 100.0, 5.0)], None),
        ([(SERVER_TYPE.RSPrimary, 100.0, 5.0), (SERVER_TYPE.RSSecondary, 90.0, 5.0)], 10.0),
        ([(SERVER_TYPE.RSPrimary, 100.0, 5.0), (SERVER_TYPE.RSSecondary, 104.0, 9.0)], 0.0),
        ([(SERVER_TYPE.RSSecondary, 104.0, 9.0)], None),
        ([(SERVER_TYPE.Mongos, 104.0, 9.0)], None),
    ],
)
def test_how_far_the_slowest_member_is_behind(
    members: list[tuple[int, float, float]], lag: float | None
) -> None:
    servers: dict[Any, ServerDescription] = {n: member(*one) for n, one in enumerate(members)}
    topology = TopologyDescription(
        TOPOLOGY_TYPE.Unknown, servers, None, None, None, TopologySettings()
    )
    assert lag_seconds(topology) == lag
