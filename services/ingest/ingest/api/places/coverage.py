"""When each location was last visited: /coverage."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated

from flask import Response
from msgspec import Meta

from common.beacon import Beacon
from ingest.api.http import responses
from ingest.api.http.query import IF_NONE_MATCH, TEAM
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import declare
from ingest.api.openapi.schema_fields import (
    Complete,
    DamagedBlocks,
    Level,
    Location,
    Mac,
    Metres,
    ResponseBody,
    Seconds,
    StaffNumber,
    StaffText,
    Time,
)
from ingest.api.people import teams
from ingest.assembly import Context, get_context
from ingest.batcher import SharedResult
from ingest.rules.request_parameters import StaffId
from ingest.rules.roles import Tells
from ingest.storage.directory.directory import Snapshot
from ingest.storage.people.last_positions import People
from ingest.storage.places.coverage import LastVisit
from ingest.storage.sealed.damage import leaving_out

# How long one reading of the database serves everybody.
SHARED_SECONDS = 5.0
# What others did at a place is passed over to find a team's last visit: millions of detections.
TEAM_SECONDS = 24 * 3600
_shared = SharedResult(SHARED_SECONDS)
_of_team = SharedResult(SHARED_SECONDS)  # apart: who asks for teams makes nobody else wait


class CoveredPlace(ResponseBody):
    """A location and its last visit, null where there was none."""

    level: Level
    location: Location
    macs: Annotated[list[Mac], Meta(description="The beacons that hang there")]
    aliases: Annotated[list[Mac], Meta(description="Their other ids")]
    x: Metres | None
    y: Metres | None
    registered_at: Annotated[
        Seconds | None,
        Meta(
            description="Since when the directory has a beacon there; null for one of an older"
            " version, and while people are missing"
        ),
    ]
    last_visited: Seconds | None
    time: Time | None
    minutes_ago: Annotated[int, Meta(description="Whole minutes since then", ge=0)] | None
    staff_id: Annotated[StaffNumber | StaffText | None, Meta(description="Who it was")]


class Coverage(ResponseBody):
    """The last visit of every location."""

    as_of: Seconds
    complete: Complete
    damaged_blocks: DamagedBlocks
    data: list[CoveredPlace]


@declare(
    "GET",
    "/coverage",
    tells_team=Tells.ASKED,
    summary="When each location was last visited, and by whom",
    description="Every location, in the order of the directory: by a detection of a beacon while it"
    " hung there, at its time by our clock (`sent_at`), or when it came if that was earlier."
    " Beacons of one name are one location, unless they have different positions."
    f" Of a team: within the last {TEAM_SECONDS // 3600} h."
    f" Up to {SHARED_SECONDS:.0f} s old; `as_of` says when it was read.",
    parameters=[TEAM, IF_NONE_MATCH],
    answers=declarations.gives(Coverage, cached=True),
    problems=["store_unavailable"],
    curl="curl 'HOST/api/v1/coverage'",
    tag="people",
)
def coverage() -> Response:
    """Answer the last visit of every location."""
    context = get_context()
    context.database.availability.check_reachable()
    people = context.people.last_positions.read()
    directory = context.directory.cache.current()
    team = teams.asked()
    # The object itself: an address alone is given to another one later.
    key = (context.places.coverage, directory.tag, people.complete, team, teams.tag(team))
    staff_ids = None
    if team or not people.complete:
        heard, is_member = (person.staff_id for person in people.staff), teams.members(team)
        staff_ids = [staff_id for staff_id in heard if is_member(staff_id)]
    shared, since = (_of_team, int(time.time()) - TEAM_SECONDS) if team else (_shared, 0)
    answer: Coverage = shared.get(
        key, lambda: _coverage(context, directory, people, staff_ids, since)
    )
    etag = responses.tag(answer.data, answer.complete, answer.damaged_blocks)
    return responses.json_unless_held(etag, lambda: answer)


def _coverage(
    context: Context,
    directory: Snapshot,
    people: People,
    staff_ids: Sequence[StaffId] | None,
    since: int,
) -> Coverage:
    now = int(time.time())
    with leaving_out() as left_out:
        visits = context.places.coverage.last_visits(directory.beacons, staff_ids, since)
    registered = context.directory.beacons.registered() if people.complete else {}
    by_place: dict[tuple[str, str], list[Beacon]] = {}
    for beacon in directory.beacons:
        by_place.setdefault((beacon.level, beacon.location), []).append(beacon)
    spots = [spot for beacons in by_place.values() for spot in _spots(beacons)]
    places = [_place(spot, visits, registered, now) for spot in spots]
    return Coverage(now, people.complete, len(left_out), places)


def _spots(beacons: Sequence[Beacon]) -> list[Sequence[Beacon]]:
    """Return beacons of one name by the positions that they have, if that is more than one.

    Else a visit of one would hide that nobody was at the other.
    """
    by_position: dict[object, list[Beacon]] = {}
    for beacon in beacons:
        by_position.setdefault((beacon.x, beacon.y), []).append(beacon)
    placed = [position for position in by_position if position != (None, None)]
    return [beacons] if len(placed) < 2 else list(by_position.values())


def _place(
    beacons: Sequence[Beacon],
    visits: Mapping[str, LastVisit],
    registered: Mapping[str, int],
    now: int,
) -> CoveredPlace:
    """Return the last visit of the beacons that hang at one location."""
    last_visits = [visits[beacon.mac] for beacon in beacons if beacon.mac in visits]
    last = max(last_visits, key=lambda visit: visit.timestamp, default=None)
    at = next((beacon for beacon in beacons if beacon.x is not None), beacons[0])
    since = [registered.get(beacon.mac) for beacon in beacons]
    return CoveredPlace(
        level=at.level,
        location=at.location,
        macs=[beacon.mac for beacon in beacons],
        aliases=[alias for beacon in beacons for alias in beacon.aliases],
        x=at.x,
        y=at.y,
        registered_at=None if None in since else min(filter(None, since)),
        last_visited=last.timestamp if last else None,
        time=responses.iso(last.timestamp) if last else None,
        minutes_ago=max(0, now - last.timestamp) // 60 if last else None,
        staff_id=last.staff_id if last else None,
    )
