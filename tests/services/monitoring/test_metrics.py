"""What the monitoring service tells in numbers: the whole, and what the gateway counts."""

import json
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from common.metrics import METRICS, MONITORING, SERVICES
from ingest.api import system
from monitoring import create_app
from monitoring.config import Config
from monitoring.gateway import GatewayResponse, GatewayUnavailable
from monitoring.health_monitor import HealthMonitor
from monitoring.snapshot_cache import SnapshotCache
from tests.metrics import complaints, samples
from tests.needs import need

STORED = {
    "shards": [
        {"name": "shard1", "documents": 10, "sealed": 4, "bytes": 5000, "index_bytes": 300},
        {"name": "shard2", "documents": 7, "sealed": 0, "bytes": 1, "index_bytes": 2},
    ],
    "backup": {"finished_at": 900, "failed": True, "scheduled": True},
    "storage": {"free_bytes": 1 << 30, "days_left": 12.5, "detections_a_day": 3e6},
}
COUNTED = (
    '# TYPE waymark_gateway_refused_total counter\nwaymark_gateway_refused_total{reason="open"} 3\n'
)


class Whole:
    """A gateway with a service and a database, which may go away."""

    def __init__(self) -> None:
        self.away = False
        self.reads = 0
        self.storage: Any = STORED["storage"]
        self.now = 1000.0

    def get(self, path: str, _: Any = None) -> GatewayResponse:
        if self.away:
            raise GatewayUnavailable("open", "the gateway answered 503")
        if path == "/api/v1/system/database":
            self.reads += 1
            body = json.dumps(STORED | {"storage": self.storage}).encode()
            return GatewayResponse(200, body, "", self.now)
        if path != "/_service/0":
            return GatewayResponse(404, b"{}", "", self.now)
        report = {"service": "ingest-1", "queued": 0, "mongodb": {"latency_ms": 1.0}}
        return GatewayResponse(200, json.dumps(report).encode(), "", self.now)

    def probe(self, _: str) -> tuple[str, str]:
        return ("open", "") if self.away else ("closed", "")

    def text(self, path: str) -> str:
        if self.away:
            raise GatewayUnavailable("unknown", "")
        assert path == "/_metrics"
        return COUNTED


@pytest.fixture
def whole() -> Whole:
    return Whole()


@pytest.fixture
def app(whole: Whole) -> Flask:
    app = create_app(Config())
    app.extensions["gateway"] = whole
    app.extensions["snapshot_cache"] = SnapshotCache(whole.get, lambda: whole.now)
    app.extensions["health_monitor"] = HealthMonitor(whole.get, whole.probe)
    return app


def told(app: Flask, path: str = "/metrics") -> dict[str, float]:
    app.extensions["health_monitor"].check()
    answer = app.test_client().get(path)
    assert (answer.status_code, answer.mimetype) == (200, "text/plain")
    return samples(answer.text)


def test_it_tells_of_services_circuits_database_and_gateway(app: Flask) -> None:
    values = told(app)
    assert values['waymark_service_up{service="ingest-1"}'] == 1
    assert values['waymark_circuit_state{circuit="ingest",state="closed"}'] == 1
    assert values['waymark_circuit_state{circuit="ingest",state="open"}'] == 0
    assert values['waymark_stored_detections{shard="shard1",form="row"}'] == 6
    assert values['waymark_stored_detections{shard="shard1",form="sealed"}'] == 4
    assert values['waymark_index_bytes{shard="shard2"}'] == 2
    assert values["waymark_disk_left_seconds"] == 12.5 * 86_400
    assert values["waymark_backup_last_success_timestamp_seconds"] == 900
    assert values["waymark_backup_failed"] == values["waymark_backup_scheduled"] == 1
    assert values["waymark_gateway_up"] == 1
    assert values["waymark_healthy"] == 1
    assert values['waymark_gateway_refused_total{reason="open"}'] == 3
    assert told(app, "/monitoring/metrics").keys() == values.keys()


def test_promtool_likes_it_and_the_table_has_all(app: Flask) -> None:
    need("promtool")
    app.extensions["health_monitor"].check()
    text = app.test_client().get("/metrics").text.replace(COUNTED, "")
    assert complaints(text) == ""
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    ours = {metric.name for metric in METRICS if metric.part in (MONITORING, SERVICES)}
    assert ours - names <= {"waymark_memory_limit_bytes"}
    assert names <= ours


def test_what_is_away_is_told_and_nothing_old_of_it(app: Flask, whole: Whole) -> None:
    told(app)
    whole.away = True
    whole.now += 61
    for _ in range(2):  # another verdict counts when it is found twice
        values = told(app)
    assert values['waymark_service_up{service="ingest-1"}'] == 0
    assert values['waymark_circuit_state{circuit="ingest",state="open"}'] == 1
    assert (values["waymark_gateway_up"], values["waymark_healthy"]) == (0, 0)
    assert not [name for name in values if "stored" in name or "disk" in name]


def test_the_database_is_asked_once_a_minute(app: Flask, whole: Whole) -> None:
    for _ in range(5):
        told(app)
        whole.now += 11
    assert whole.reads == 1
    whole.now += 11
    told(app)
    assert whole.reads == 2


def test_what_nobody_can_tell_yet_is_absent(app: Flask, whole: Whole) -> None:
    whole.storage = {"free_bytes": 1, "days_left": None, "detections_a_day": None}
    values = told(app)
    assert values["waymark_disk_free_bytes"] == 1
    assert "waymark_disk_left_seconds" not in values
    whole.storage = None
    whole.now += 61
    assert "waymark_disk_free_bytes" not in told(app)


def test_without_a_gateway_it_still_answers(client: FlaskClient) -> None:
    values = samples(client.get("/metrics").text)
    assert values["waymark_gateway_up"] == 0
    assert values['waymark_circuit_state{circuit="reads",state="unknown"}'] == 1


def test_what_is_read_of_the_database_is_what_an_ingest_service_tells() -> None:
    shard = STORED["shards"][0]  # type: ignore[index]
    assert shard.keys() <= set(system.Shard.__struct_fields__)
    for name, kind in (("storage", system.Storage), ("backup", system.Backup)):
        assert STORED[name].keys() <= set(kind.__struct_fields__)  # type: ignore[attr-defined]
        assert name in system.Database.__struct_fields__
