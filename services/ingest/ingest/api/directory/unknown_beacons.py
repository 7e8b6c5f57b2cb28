"""Beacons that were heard but are not in the directory: /beacons/unknown."""

import time
from typing import Annotated

from flask import Response, request
from msgspec import Meta

from ingest.api.http import responses
from ingest.api.http.query import Text
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import declare
from ingest.api.openapi.schema_fields import DamagedBlocks, Mac, ResponseBody, Seconds, StaffId
from ingest.assembly import get_context
from ingest.rules import request_parameters
from ingest.storage.places.coverage import MAX_UNKNOWN
from ingest.storage.sealed.damage import leaving_out

_SINCE = Text(
    "since",
    "Not before: a time in any of the three forms",
    pattern=request_parameters.TIME_TEXT,
)


class UnknownBeacon(ResponseBody):
    """A beacon that somebody should register."""

    mac: Mac
    count: Annotated[int, Meta(description="Detections", ge=1)]
    first_heard: Seconds
    last_heard: Seconds
    staff: Annotated[list[StaffId], Meta(description="Who heard it")]


class UnknownBeacons(ResponseBody):
    """Beacons that somebody should register."""

    data: list[UnknownBeacon]
    truncated: Annotated[bool, Meta(description="Whether there are more")]
    damaged_blocks: DamagedBlocks


@declare(
    "GET",
    "/beacons/unknown",
    summary="Beacons that were heard but are not in the directory",
    description=f"{MAX_UNKNOWN} at most: those that most people heard come first, of these what was"
    " heard most often, then what was heard last. A `count` of 1 is mostly a phone or a watch that"
    " came by: they change their addresses. Eddystone-EIDs are left out: they change by themselves."
    " Register a beacon with `PUT /beacons/<mac>`.",
    parameters=[_SINCE],
    answers=declarations.gives(UnknownBeacons),
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/unknown'",
    tag="beacons",
)
def unknown_beacons() -> Response:
    """Answer the beacons that somebody should register."""
    since = 0
    if request.args.get(_SINCE.name):
        since = request_parameters.moment(
            request.args, _SINCE.name, 0, request_parameters.MAX_UNIX_SECONDS
        )
    context = get_context()
    context.database.availability.check_answers()
    known = context.directory.cache.current().places
    with leaving_out() as left_out:
        beacons = context.places.coverage.unknown_beacons(known, since)
    now = int(time.time())  # no time of a clock that is ahead
    data = [
        UnknownBeacon(
            mac=beacon.mac,
            count=beacon.count,
            first_heard=min(beacon.first_heard, now),
            last_heard=min(beacon.last_heard, now),
            staff=sorted(beacon.staff, key=request_parameters.by_staff_id),
        )
        for beacon in beacons[:MAX_UNKNOWN]
    ]
    return responses.as_json(UnknownBeacons(data, len(beacons) > MAX_UNKNOWN, len(left_out)))
