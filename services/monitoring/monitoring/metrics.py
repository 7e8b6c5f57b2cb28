"""`/metrics`: how the whole is, in numbers, for Prometheus; with what the gateway counts."""

import json
import time
from typing import Any, cast

from flask import Blueprint, Response, current_app

from common import metrics
from common.memory import memory
from common.metrics import MEDIA_TYPE, Page
from monitoring.certificate import ADDRESS
from monitoring.gateway import BUSY, CLOSED, OPEN, UNKNOWN, Gateway, GatewayUnavailable
from monitoring.health_monitor import HealthMonitor
from monitoring.snapshot_cache import SnapshotCache
from monitoring.verdict import HALF_OPEN, HEALTHY

STATES = (CLOSED, HALF_OPEN, OPEN, BUSY, UNKNOWN)
# Of the database; what it has changes slowly, and to count it is work.
DATABASE, DATABASE_SECONDS = "/api/v1/system/database", 60.0
DAY_SECONDS = 86_400

bp = Blueprint("metrics", __name__)
_STARTED_AT = time.time()


@bp.get("/metrics")
@bp.get("/monitoring/metrics")  # behind the gateway
def metrics_page() -> Response:
    """Answer all that this service and the gateway tell."""
    page = Page()
    _write_process(page)
    _write_observed(page, cast(HealthMonitor, current_app.extensions["health_monitor"]))
    _write_database(page, cast(SnapshotCache, current_app.extensions["snapshot_cache"]))
    try:
        counted = cast(Gateway, current_app.extensions["gateway"]).text(ADDRESS)
    except GatewayUnavailable:
        counted = ""
    page.add(metrics.GATEWAY_UP, int(bool(counted)))
    return Response(page.text() + counted, content_type=MEDIA_TYPE)


def _write_process(page: Page) -> None:
    page.add(metrics.INFO, 1, "monitoring", current_app.config["VERSION"])
    page.add(metrics.STARTED, _STARTED_AT)
    page.add(metrics.CPU, time.process_time())
    used = memory()
    page.add(metrics.MEMORY, used.used_bytes)
    page.add(metrics.MEMORY_LIMIT, used.limit_bytes)


def _write_observed(page: Page, monitor: HealthMonitor) -> None:
    monitor.look()
    report = monitor.report()
    for service in report["services"]:
        page.add(metrics.SERVICE_UP, int(service["answers"]), service["name"])
    for name, circuit in report["circuits"].items():
        for state in STATES:
            page.add(metrics.CIRCUIT, int(circuit["state"] == state), name, state)
    verdict = report["verdict"]
    page.add(metrics.HEALTHY, int(bool(verdict) and verdict["what"] == HEALTHY))


def _write_database(page: Page, cache: SnapshotCache) -> None:
    """Write what the database has, unless nobody could tell it just now."""
    snapshot = cache.read(DATABASE, DATABASE_SECONDS)
    if snapshot.circuit != CLOSED or not snapshot.response or snapshot.response.status != 200:
        return
    told: dict[str, Any] = json.loads(snapshot.response.body)
    for shard in told["shards"]:
        sealed = shard["sealed"]
        page.add(metrics.ROWS, shard["documents"] - sealed, shard["name"], "row")
        page.add(metrics.ROWS, sealed, shard["name"], "sealed")
        page.add(metrics.STORED, shard["bytes"], shard["name"])
        page.add(metrics.INDEXES, shard["index_bytes"], shard["name"])
    if backup := told.get("backup"):  # an older release tells of none
        page.add(metrics.BACKUP, backup["finished_at"])
        page.add(metrics.BACKUP_FAILED, int(backup["failed"]))
        page.add(metrics.BACKUP_SCHEDULED, int(backup["scheduled"]))
    if storage := told["storage"]:
        page.add(metrics.DISK_FREE, storage["free_bytes"])
        if (days := storage["days_left"]) is not None:
            page.add(metrics.DISK_LEFT, days * DAY_SECONDS)
        page.add(metrics.ARRIVING, storage["detections_a_day"])
