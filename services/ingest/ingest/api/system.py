"""How the services and the database are: /system and /system/database."""

import time
from dataclasses import asdict
from typing import Any

from flask import Response

from ingest import process
from ingest.api import openapi
from ingest.api import responses as answers
from ingest.api.openapi import declare
from ingest.batcher import SharedResult
from ingest.context import Context, get_context
from ingest.errors import StoreUnavailable

SHARED_SECONDS = 10.0
PING_TIMEOUT_SECONDS = 0.4

_STARTED_AT = int(time.time())
_BYTES = openapi.whole("Bytes that cannot be given back", minimum=0)
_database = SharedResult(SHARED_SECONDS)


@declare(
    "GET",
    "/system",
    summary="How the ingest service that answers is",
    description="The gateway takes turns: ask again to meet the others.",
    answers=openapi.gives(
        {
            "service": openapi.text("Name of the service that answers"),
            "as_of": openapi.SECONDS,
            "started_at": openapi.SECONDS,
            "queued": openapi.whole("Detections that wait for the database", minimum=0),
            "mongodb": openapi.record(
                {
                    "reachable": openapi.yes_no("Whether the database answers this service"),
                    "latency_ms": openapi.or_null(openapi.number("Round trip in ms")),
                }
            ),
            "memory": openapi.record(
                {
                    "used_bytes": _BYTES,
                    "limit_bytes": openapi.or_null(openapi.whole("The container's limit")),
                }
            ),
        }
    ),
    curl="curl 'HOST/api/v1/system'",
    tag="system",
)
def system() -> Response:
    """Answer how this service is."""
    context = get_context()
    took_ms = None if context.recorder.away else _latency_ms(context)
    return answers.as_json(
        {
            "service": context.service_name,
            "as_of": int(time.time()),
            "started_at": _STARTED_AT,
            "queued": context.recorder.queued,
            "mongodb": {"reachable": took_ms is not None, "latency_ms": took_ms},
            "memory": process.memory()._asdict(),
        }
    )


@declare(
    "GET",
    "/system/database",
    summary="Detections on each shard, and in each minute of the last hour",
    description=f"Up to {SHARED_SECONDS:.0f} s old; `as_of` tells.",
    answers=openapi.gives(
        {
            "as_of": openapi.SECONDS,
            "shards": openapi.several(
                openapi.record(
                    {
                        "name": openapi.text("The shard, or the only server"),
                        "documents": openapi.whole("Detections", minimum=0),
                        "bytes": openapi.whole("On its disk, without indexes", minimum=0),
                    }
                )
            ),
            "minutes": openapi.several(
                openapi.record(
                    {
                        "timestamp": openapi.SECONDS,
                        "count": openapi.whole("Detections with a time in it", minimum=0),
                    }
                ),
                "The oldest first",
            ),
        }
    ),
    errors=["store_unavailable"],
    curl="curl 'HOST/api/v1/system/database'",
    tag="system",
)
def system_database() -> Response:
    """Answer what lies where, and what came in."""
    context = get_context()
    context.recorder.check_answers()

    def read() -> dict[str, Any]:
        now = time.time()
        minutes = [asdict(one) for one in context.cluster.minutes(now)]
        return {
            "as_of": int(now),
            "shards": [one._asdict() for one in context.cluster.shards()],
            "minutes": minutes,
        }

    return answers.as_json(_database.get(id(context), read))


def _latency_ms(context: Context) -> float | None:
    """Return how long the database takes to answer, None when it does not."""
    began = time.monotonic()
    try:
        context.client.ping(PING_TIMEOUT_SECONDS)
    except StoreUnavailable:
        return None
    return round((time.monotonic() - began) * 1000, 1)
