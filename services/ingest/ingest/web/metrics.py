"""`/metrics`: how the service is, in numbers, for Prometheus (docs/metrics.md)."""

import shutil
import time
from contextlib import suppress
from typing import NamedTuple

from flask import Blueprint, Response, current_app

from common import metrics
from common.metrics import MEDIA_TYPE, Page
from common.routes import METRICS
from ingest import process
from ingest.assembly import Context, get_context
from ingest.batcher import SharedResult
from ingest.errors import StoreUnavailable
from ingest.rules.roles import needs, role_at
from ingest.storage.database.client import time_limit

# One reading of the database serves whoever asks within it.
SHARED_SECONDS = 15.0
# Both together within what the gateway waits for an answer (`/_service/` in NGINX).
PING_SECONDS = COUNT_SECONDS = 0.5
HEARD_SECONDS = 5 * 60

bp = Blueprint("metrics", __name__)
_STARTED_AT = time.time()
_shared = SharedResult(SHARED_SECONDS)


class _Database(NamedTuple):
    """What the database told; None: it did not."""

    ping_seconds: float | None = None
    people_heard: int | None = None


@bp.get(METRICS.path)
@needs(role_at("GET", METRICS.path))
def metrics_page() -> Response:
    """Answer all that this service tells."""
    context, page = get_context(), Page()
    _write_process(page, context)
    context.requests.write(page, metrics.REQUESTS, metrics.REQUEST_SECONDS)
    _write_recording(page, context)
    _write_reading(page, context)
    _write_database(page, context)
    return Response(page.text(), content_type=MEDIA_TYPE)


def _write_process(page: Page, context: Context) -> None:
    page.add(metrics.INFO, 1, context.service_name, current_app.config["VERSION"])
    page.add(metrics.STARTED, _STARTED_AT)
    page.add(metrics.CPU, time.process_time())
    memory = process.memory()
    page.add(metrics.MEMORY, memory.used_bytes)
    page.add(metrics.MEMORY_LIMIT, memory.limit_bytes)


def _write_recording(page: Page, context: Context) -> None:
    recorder, spools = context.recording.recorder, context.recording.spools
    for outcome, count in recorder.tally.outcomes.items():
        page.add(metrics.DETECTIONS_TAKEN, count, outcome.value)
    page.add_histogram(metrics.GROUPS, recorder.tally.groups)
    page.add(metrics.LAST_DETECTION, recorder.tally.last_at)
    page.add(metrics.SPOOL, spools.queued)
    since = spools.waits_since()
    page.add(metrics.SPOOL_AGE, 0 if since is None else max(0, time.time() - since))
    page.add(metrics.SPOOL_ROOM, spools.own.room)
    page.add(metrics.SET_ASIDE, spools.set_aside)
    page.add(metrics.WARNINGS, len(context.recording.warnings.current))
    with suppress(OSError):
        page.add(metrics.SPOOL_DISK, shutil.disk_usage(context.spool_folder).free)


def _write_reading(page: Page, context: Context) -> None:
    histories = context.histories.cache
    page.add(metrics.HISTORY_READS, histories.hits, "hit")
    page.add(metrics.HISTORY_READS, histories.misses, "miss")
    page.add(metrics.NOTES_LAG, context.people.notes.behind_seconds)
    page.add(metrics.POSITIONS_LATE, context.people.last_positions.late_seconds)


def _write_database(page: Page, context: Context) -> None:
    availability = context.database.availability
    told: _Database = _shared.get(availability, lambda: _asked(context))
    page.add(metrics.DATABASE_UP, int(told.ping_seconds is not None))
    page.add(metrics.DATABASE_DEGRADED, int(availability.degraded))
    page.add(metrics.DATABASE_SECONDS, told.ping_seconds)
    page.add(metrics.REPLICATION_LAG, context.database.client.lag_seconds())
    page.add(metrics.PEOPLE_HEARD, told.people_heard)


def _asked(context: Context) -> _Database:
    """Ask the database, but for one that is known to be away."""
    if context.database.availability.away:
        return _Database()
    told = _Database()
    began = time.monotonic()
    with suppress(StoreUnavailable):
        context.database.client.ping(PING_SECONDS)
        told = _Database(time.monotonic() - began)
        with time_limit(COUNT_SECONDS):
            heard = context.people.latest.heard_since(int(time.time()) - HEARD_SECONDS)
        told = told._replace(people_heard=heard)
    return told
