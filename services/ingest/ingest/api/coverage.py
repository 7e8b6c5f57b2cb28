"""What nobody looks at by itself: /coverage and /beacons/unknown."""

import time
from typing import Any

from flask import Response, request

from ingest.api import openapi
from ingest.api import responses as answers
from ingest.api.openapi import declare
from ingest.batcher import SharedResult
from ingest.context import Context, get_context
from ingest.rules import parameters as parsing
from ingest.storage.directory import Snapshot
from ingest.storage.visits import MAX_UNKNOWN

# How long one look at the database serves everybody.
SHARED_SECONDS = 5.0

_PLACE = openapi.record(
    {
        "level": openapi.LEVEL,
        "location": openapi.LOCATION,
        "macs": openapi.several(openapi.MAC, "The beacons that hang there"),
        "x": openapi.or_null(openapi.METRES),
        "y": openapi.or_null(openapi.METRES),
        "last_visited": openapi.or_null(openapi.SECONDS),
        "time": openapi.or_null(openapi.TIME),
        "minutes_ago": openapi.or_null(openapi.whole("Whole minutes since then", minimum=0)),
        "staff_id": {
            "description": "Who it was",
            "anyOf": [*openapi.STAFF_ID["anyOf"], {"type": "null"}],
        },
    }
)
_UNKNOWN = openapi.record(
    {
        "mac": openapi.MAC,
        "count": openapi.whole("Detections", minimum=1),
        "first_heard": openapi.SECONDS,
        "last_heard": openapi.SECONDS,
        "staff": openapi.several(openapi.STAFF_ID, "Who heard it"),
    }
)


_visits = SharedResult(SHARED_SECONDS)


@declare(
    "GET",
    "/coverage",
    summary="When each location was last visited, and by whom",
    description="Every location of the directory: by a detection of a beacon while it hung there."
    f" Up to {SHARED_SECONDS:.0f} s old; `as_of` tells.",
    parameters=[openapi.IF_NONE_MATCH],
    answers=openapi.gives({"as_of": openapi.SECONDS, "data": openapi.several(_PLACE)}, cached=True),
    errors=["store_unavailable"],
    curl="curl 'HOST/api/v1/coverage'",
    tag="people",
)
def coverage() -> Response:
    """Answer the last visit of every location."""
    context = get_context()
    context.recorder.check_answers()
    directory = context.directory.current()
    as_of, places = _visits.get((id(context), directory.tag), lambda: _places(context, directory))
    version = answers.tag(places)
    body = {"as_of": as_of, "data": places}
    return answers.held(version) or answers.tagged(answers.as_json(body), version)


def _places(context: Context, directory: Snapshot) -> tuple[int, list[dict[str, Any]]]:
    now = int(time.time())
    visits = context.visits.last_visits(directory.beacons.values())
    hanging: dict[tuple[str, str], list[Any]] = {}
    for beacon in directory.beacons.values():
        hanging.setdefault((beacon.level, beacon.location), []).append(beacon)
    places = []
    for (level, location), beacons in sorted(hanging.items()):
        heard = [visits[beacon.mac] for beacon in beacons if beacon.mac in visits]
        last = max(heard, key=lambda visit: visit.timestamp, default=None)
        at = next((beacon for beacon in beacons if beacon.x is not None), beacons[0])
        places.append(
            {
                "level": level,
                "location": location,
                "macs": [beacon.mac for beacon in beacons],
                "x": at.x,
                "y": at.y,
                "last_visited": last and last.timestamp,
                "time": last and answers.iso(last.timestamp),
                "minutes_ago": last and max(0, now - last.timestamp) // 60,
                "staff_id": last and last.staff_id,
            }
        )
    return now, places


@declare(
    "GET",
    "/beacons/unknown",
    summary="Beacons that were heard but are not in the directory",
    description=f"The {MAX_UNKNOWN} that were heard last. Register one with `PUT /beacons/<mac>`.",
    parameters=[
        openapi.query("since", openapi.text("Not before: a time in any of the three forms"))
    ],
    answers=openapi.gives(
        {
            "data": openapi.several(_UNKNOWN),
            "truncated": openapi.yes_no("Whether there are more"),
        }
    ),
    errors=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/unknown'",
    tag="beacons",
)
def unknown_beacons() -> Response:
    """Answer the beacons that somebody should register."""
    since = 0
    if request.args.get("since"):
        since = parsing.moment(request.args, "since", 0, parsing.MAX_UNIX_SECONDS)
    context = get_context()
    context.recorder.check_answers()
    found = context.visits.unknown_beacons(context.directory.current().beacons, since)
    data = [
        {
            "mac": one.mac,
            "count": one.count,
            "first_heard": one.first_heard,
            "last_heard": one.last_heard,
            "staff": sorted(one.staff, key=lambda who: (isinstance(who, str), who)),
        }
        for one in found[:MAX_UNKNOWN]
    ]
    return answers.as_json({"data": data, "truncated": len(found) > MAX_UNKNOWN})
