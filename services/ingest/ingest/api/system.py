"""How the services and the database are: /system and /system/database."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from flask import Response, current_app
from msgspec import Meta

from common import backup_report
from common.backup_report import LATE_AFTER
from ingest import process
from ingest.api.http import responses
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import declare
from ingest.api.openapi.schema_fields import ResponseBody, Seconds
from ingest.assembly import Context, get_context
from ingest.batcher import SharedResult
from ingest.errors import StoreUnavailable
from ingest.rules.disk_use import ENOUGH_DETECTIONS, LOW_DAYS, Kept
from ingest.rules.request_parameters import StaffId
from ingest.storage.database import cluster_usage
from ingest.storage.sealed import damage

SHARED_SECONDS = 10.0
# Who asks within it hears the same: with a dead shard each question takes a thread for 0.8 s.
ASKED_SECONDS = 1.0
PING_TIMEOUT_SECONDS = 0.5
# How many damaged blocks are named.
MAX_NAMED = 5

_STARTED_AT = int(time.time())
_shared = SharedResult(SHARED_SECONDS)
_asked = SharedResult(ASKED_SECONDS)


class MongoDB(ResponseBody):
    """Whether and how fast the database answers."""

    reachable: Annotated[bool, Meta(description="Whether the database answers this service")]
    complete: Annotated[bool, Meta(description="Whether all shards answer this service")]
    latency_ms: Annotated[float | None, Meta(description="Round trip in ms")]


class Memory(ResponseBody):
    """The memory of the service."""

    used_bytes: Annotated[int, Meta(description="Bytes that cannot be given back", ge=0)]
    limit_bytes: Annotated[int | None, Meta(description="The container's limit")]


class Access(ResponseBody):
    """Whether requests need a token, and since when nothing newer is known of tokens."""

    required: Annotated[bool, Meta(description="Whether requests need a token")]
    as_of: Annotated[
        int | None,
        Meta(description="When tokens were last read: while MongoDB is away, what was known holds"),
    ]


class OwnTracks(ResponseBody):
    """What OwnTracks sent to the service since it started."""

    stored: Annotated[int, Meta(description="Messages that are detections, repeats too", ge=0)]
    ignored: Annotated[
        dict[str, int],
        Meta(description="How many messages were ignored, by the reason: a kind, or what is wrong"),
    ]


class OperatorWarning(ResponseBody):
    """What an operator has to see to."""

    what: Annotated[str, Meta(description="What is wrong")]
    todo: Annotated[str, Meta(description="What to do, and where that is told")]


class System(ResponseBody):
    """How the service that answers is."""

    service: Annotated[str, Meta(description="Name of the service that answers")]
    version: Annotated[str, Meta(description="The version of Waymark that it runs")]
    as_of: Seconds
    started_at: Seconds
    queued: Annotated[int, Meta(description="Detections that wait for the database", ge=0)]
    set_aside: Annotated[
        int, Meta(description="Damaged detections, and spools whole, that were set aside", ge=0)
    ]
    unnoted_seconds: Annotated[
        int, Meta(description="Age of the oldest that `/now` and `/staff` have to add", ge=0)
    ]
    late_seconds: Annotated[
        int,
        Meta(
            description="How long `/now` and `/staff` could not tell everybody in time; 0: they"
            " did, or nobody asks",
            ge=0,
        ),
    ]
    mongodb: MongoDB
    access: Access
    memory: Memory
    owntracks: Annotated[OwnTracks | None, Meta(description="Null where it is off")]
    warnings: Annotated[
        list[OperatorWarning],
        Meta(
            description="What an operator has to see to: mistakes of settings, and which blocks of"
            f" sealed detections could not be read within a day, {MAX_NAMED} at most"
        ),
    ]


class Shard(ResponseBody):
    """What lies on one shard."""

    name: Annotated[str, Meta(description="The shard, or the only server")]
    documents: Annotated[
        int,
        Meta(
            description="Detections; those that were just sealed count twice until their rows go",
            ge=0,
        ),
    ]
    sealed: Annotated[int, Meta(description="Of them those that are sealed in blocks", ge=0)]
    bytes: Annotated[int, Meta(description="On its disk, without indexes", ge=0)]
    index_bytes: Annotated[int, Meta(description="Their indexes, on its disk", ge=0)]


class Minute(ResponseBody):
    """What came in during one minute."""

    timestamp: Seconds
    count: Annotated[int, Meta(description="Detections with a time in it", ge=0)]


class Storage(ResponseBody):
    """What detections take of the disks, and how long that goes well."""

    free_bytes: Annotated[int, Meta(description="On the disk that has the fewest", ge=0)]
    detection_bytes: Annotated[
        float | None,
        Meta(
            description="What one takes with its indexes; null below"
            f" {ENOUGH_DETECTIONS:,} detections"
        ),
    ]
    sealed_bytes: Annotated[
        float | None, Meta(description="The same of one that is sealed; null likewise")
    ]
    detections_a_day: Annotated[
        float | None,
        Meta(description="By a sample of the last 7 days; null on the first day"),
    ]
    days_left: Annotated[
        float | None,
        Meta(
            description="Until a disk is full at that rate; null where that cannot be told, or"
            " never, as no more is kept"
        ),
    ]
    retention_days: Annotated[
        int, Meta(description="How long detections are kept; 0: for ever", ge=0)
    ]
    seal_hours: Annotated[
        int, Meta(description="The age at which detections are sealed; 0: never", ge=0)
    ]
    low: Annotated[bool, Meta(description=f"Whether that is within {LOW_DAYS} days")]


class Backup(ResponseBody):
    """What became of the last backups."""

    scheduled: Annotated[bool, Meta(description="Whether a schedule makes them")]
    started_at: Annotated[int, Meta(description="When the last was begun, in unix seconds", ge=0)]
    finished_at: Annotated[
        int | None, Meta(description="When the last whole one was; null: none was yet")
    ]
    failed: Annotated[
        bool, Meta(description="Whether the last failed: `backup.json` beside the data tells why")
    ]
    late: Annotated[
        bool,
        Meta(description=f"Whether a schedule has made none for {LATE_AFTER.days} days"),
    ]


class Database(ResponseBody):
    """What lies where, and what came in."""

    as_of: Seconds
    shards: list[Shard]
    minutes: Annotated[list[Minute], Meta(description="The oldest first")]
    storage: Annotated[
        Storage | None, Meta(description="Null while it cannot be read, or is not told")
    ]
    backup: Annotated[Backup | None, Meta(description="Null where none was ever made")]


@declare(
    "GET",
    "/system",
    summary="How the ingest service that answers is",
    description="The gateway takes turns: ask again to meet the others.",
    answers=declarations.gives(System),
    curl="curl 'HOST/api/v1/system'",
    tag="system",
)
def system() -> Response:
    """Answer how this service is."""
    context = get_context()
    return responses.as_json(
        System(
            service=context.service_name,
            version=current_app.config["VERSION"],
            as_of=int(time.time()),
            started_at=_STARTED_AT,
            queued=context.recording.recorder.queued,
            set_aside=context.recording.recorder.set_aside,
            unnoted_seconds=context.people.notes.behind_seconds,
            late_seconds=context.people.last_positions.late_seconds,
            mongodb=_asked.get(context.database.availability, lambda: _mongodb(context)),
            access=_access(context),
            memory=Memory(*process.memory()),
            owntracks=_owntracks(context),
            warnings=[
                *(OperatorWarning(*warning) for warning in context.recording.warnings.current),
                *(_damaged(*block) for block in damage.met()[:MAX_NAMED]),
            ],
        )
    )


@declare(
    "GET",
    "/system/database",
    summary="Detections on each shard, and in each minute of the last hour",
    description=f"Up to {SHARED_SECONDS:.0f} s old; `as_of` says when it was read.",
    answers=declarations.gives(Database),
    problems=["store_unavailable"],
    curl="curl 'HOST/api/v1/system/database'",
    tag="system",
)
def system_database() -> Response:
    """Answer what lies where, and what came in."""
    context = get_context()
    context.database.availability.check_answers()
    database: Database = _shared.get(context.database.cluster, lambda: _database(context))
    return responses.as_json(database)


def _database(context: Context) -> Database:
    now = time.time()
    minutes = [
        Minute(minute.timestamp, minute.count) for minute in context.database.cluster.minutes(now)
    ]
    shards = context.database.cluster.shards()
    return Database(
        int(now),
        [_shard(*shard) for shard in shards],
        minutes,
        _storage(context, shards, now),
        _backup(context.backup_report, now),
    )


def _shard(name: str, rows: Kept, sealed: Kept) -> Shard:
    every = rows + sealed
    return Shard(name, every.detections, sealed.detections, every.bytes, every.index_bytes)


def _storage(context: Context, shards: Sequence[cluster_usage.Shard], now: float) -> Storage | None:
    try:
        hours = context.recording.sealing.hours
        use = context.database.cluster.disk_use(shards, now, context.retention.days, hours)
    except StoreUnavailable:
        return None
    return use and Storage(*use, use.is_low)


def _backup(file: Path | None, now: float) -> Backup | None:
    report = backup_report.read(file) if file else None
    return report and Backup(
        report.scheduled,
        report.started,
        report.finished,
        report.error is not None,
        report.is_late(now),
    )


def _damaged(staff_id: StaffId, first: int, last: int, count: int) -> OperatorWarning:
    between = f"{responses.iso(first)} to {responses.iso(last)}"
    return OperatorWarning(
        f"{count:,} sealed detections of staff {staff_id}, {between}, cannot be read",
        "Answers lack them or fail; look at the disk, and put them back from a backup:"
        " docs/configuration.md",
    )


def _access(context: Context) -> Access:
    as_of = context.access.cache.as_of
    return Access(not context.access.admission.open, None if as_of is None else int(as_of))


def _owntracks(context: Context) -> OwnTracks | None:
    tally = context.owntracks
    return OwnTracks(tally.stored, dict(tally.ignored)) if tally else None


def _mongodb(context: Context) -> MongoDB:
    """Say what of the database answers; one that is known to be away is not asked."""
    if context.database.availability.away:
        return MongoDB(reachable=False, complete=False, latency_ms=None)
    if (latency_ms := _latency_ms(context)) is not None:
        return MongoDB(reachable=True, complete=True, latency_ms=latency_ms)
    reachable = context.database.availability.any_answers(PING_TIMEOUT_SECONDS)
    # A server alone that answers now was slow.
    complete = reachable and not context.database.client.is_sharded()
    return MongoDB(reachable=reachable, complete=complete, latency_ms=None)


def _latency_ms(context: Context) -> float | None:
    """Return how long the database takes to answer, None when it does not."""
    began = time.monotonic()
    try:
        context.database.client.ping(PING_TIMEOUT_SECONDS)
    except StoreUnavailable:
        return None
    return round((time.monotonic() - began) * 1000, 1)
