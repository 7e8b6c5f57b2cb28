"""Where everybody is: /staff and /now, from the small collection `latest`."""

import time
from collections.abc import Mapping
from typing import Any

from flask import Response, request

from ingest.api import openapi
from ingest.api import responses as answers
from ingest.api.openapi import declare
from ingest.context import get_context
from ingest.rules import levels
from ingest.storage.latest import Entry

# Phones report every 4 s: a minute without is a pause, a quarter of an hour an absence.
NOW_SECONDS = 60
RECENT_SECONDS = 15 * 60

_SIGHTING = openapi.record(
    {
        "staff_id": openapi.STAFF_ID,
        "timestamp": openapi.SECONDS,
        "time": openapi.TIME,
        "age_seconds": openapi.whole("`as_of` less the time it was heard", minimum=0),
        "freshness": openapi.text(
            f"`now` up to {NOW_SECONDS} s, `recent` up to {RECENT_SECONDS} s, then `stale`",
            enum=["now", "recent", "stale"],
        ),
        "level": openapi.LEVEL,
        "location": openapi.LOCATION,
        "mac": openapi.MAC,
        "rssi": openapi.RSSI,
        "known": openapi.yes_no("Whether the beacon is in the directory"),
    }
)
_HYSTERESIS = (
    "The level changes only when the new one is heard several times in a row, or much stronger, or"
    " the old one no longer (settings `LEVEL_*`): a beacon heard through the floor moves nobody."
)


@declare(
    "GET",
    "/staff",
    summary="Where everybody was last heard",
    description=f"One entry for every staff member ever heard. {_HYSTERESIS} The `ETag` changes"
    " when a detection came in or a freshness changed.",
    parameters=[openapi.IF_NONE_MATCH],
    answers=openapi.gives(
        {"as_of": openapi.SECONDS, "data": openapi.several(_SIGHTING, "By staff id")}, cached=True
    ),
    errors=["store_unavailable"],
    curl="curl 'HOST/api/v1/staff'",
    tag="people",
)
def staff() -> Response:
    """Answer the last sighting of every staff member."""
    as_of, everyone, version = _everyone()
    return _unless_held(version, {"as_of": as_of, "data": everyone})


@declare(
    "GET",
    "/now",
    summary="Who is where now, level by level",
    description=f"The entries of `/staff` that are not `stale`, by level. {_HYSTERESIS}",
    parameters=[openapi.query("level", openapi.text("Only this level")), openapi.IF_NONE_MATCH],
    answers=openapi.gives(
        {
            "as_of": openapi.SECONDS,
            "levels": openapi.several(
                openapi.record({"level": openapi.LEVEL, "staff": openapi.several(_SIGHTING)})
            ),
        },
        cached=True,
    ),
    errors=["store_unavailable"],
    curl="curl 'HOST/api/v1/now?level=4'",
    tag="people",
)
def now() -> Response:
    """Answer who was heard in the last quarter of an hour, grouped by level."""
    as_of, everyone, version = _everyone()
    wanted = request.args.get("level", "")
    grouped: dict[str, list[dict[str, Any]]] = {}
    for one in everyone:
        if one["freshness"] != "stale" and wanted in ("", one["level"]):
            grouped.setdefault(one["level"], []).append(one)
    found = [{"level": level, "staff": grouped[level]} for level in sorted(grouped)]
    return _unless_held(answers.tag(version, wanted), {"as_of": as_of, "levels": found})


def _everyone() -> tuple[int, list[dict[str, Any]], str]:
    """Return the time, everybody's last sighting by staff id, and what changes with them."""
    context = get_context()
    context.recorder.check_answers()
    rule = context.level_rule
    found = sorted(
        context.latest.everyone(), key=lambda one: (isinstance(one.staff_id, str), one.staff_id)
    )
    known = context.directory.current()
    now = time.time()
    everyone = [_sighting(one, rule, known.places, now) for one in found]
    versions = [one.version for one in found]
    freshness = [one["freshness"] for one in everyone]
    return int(now), everyone, answers.tag(versions, freshness, known.tag)


def _sighting(
    entry: Entry, rule: levels.Rule, places: Mapping[str, Any], now: float
) -> dict[str, Any]:
    heard = levels.settled(entry.recent, rule)
    # A phone whose clock is ahead was heard when we heard from it.
    age = max(0, int(now - min(heard.timestamp, heard.received_at)))
    return {
        "staff_id": entry.staff_id,
        "timestamp": heard.timestamp,
        "time": answers.iso(heard.timestamp),
        "age_seconds": age,
        "freshness": _freshness(age),
        "level": heard.level,
        "location": heard.location,
        "mac": heard.mac,
        "rssi": heard.rssi,
        "known": heard.mac in places,
    }


def _freshness(age_seconds: int) -> str:
    if age_seconds <= NOW_SECONDS:
        return "now"
    return "recent" if age_seconds <= RECENT_SECONDS else "stale"


def _unless_held(version: str, body: dict[str, Any]) -> Response:
    return answers.held(version) or answers.tagged(answers.as_json(body), version)
