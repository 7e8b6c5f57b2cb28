"""Where everybody is: /staff and /now, from the small collection `latest`."""

import time
from collections.abc import Container
from typing import Annotated, NamedTuple

from flask import Response, request
from msgspec import Meta

from ingest.api import openapi, responses
from ingest.api.fields import (
    Answer,
    Known,
    Level,
    Location,
    Mac,
    Rssi,
    Seconds,
    StaffId,
    Time,
    by_staff_id,
)
from ingest.api.interim import Entry, get_context
from ingest.api.openapi import declare
from ingest.api.query import IF_NONE_MATCH, Text
from ingest.rules import levels

# Phones report every 4 s: a minute without is a pause, a quarter of an hour an absence.
NOW_SECONDS = 60
RECENT_SECONDS = 15 * 60

_HYSTERESIS = (
    "The level changes only when the new one is heard several times in a row, or much stronger, or"
    " the old one no longer (settings `LEVEL_*`): a beacon heard through the floor moves nobody."
)


class LastDetection(Answer):
    """Where a staff member was last heard."""

    staff_id: StaffId
    timestamp: Seconds
    time: Time
    age_seconds: Annotated[int, Meta(description="`as_of` less the time it was heard", ge=0)]
    freshness: Annotated[
        str,
        Meta(
            description=f"`now` up to {NOW_SECONDS} s, `recent` up to {RECENT_SECONDS} s, then"
            " `stale`",
            extra_json_schema={"enum": ["now", "recent", "stale"]},
        ),
    ]
    level: Level
    location: Location
    mac: Mac
    rssi: Rssi
    known: Known


class Staff(Answer):
    """The last detection of every staff member."""

    as_of: Seconds
    data: Annotated[list[LastDetection], Meta(description="By staff id")]


class StaffOfLevel(Answer):
    """Who is on a level."""

    level: Level
    staff: list[LastDetection]


class Now(Answer):
    """Who is where."""

    as_of: Seconds
    levels: list[StaffOfLevel]


class _Everyone(NamedTuple):
    """Everybody's last detection by staff id, when it was read, and what changes with it."""

    as_of: int
    staff: list[LastDetection]
    tag: str


@declare(
    "GET",
    "/staff",
    summary="Where everybody was last heard",
    description=f"One entry for every staff member ever heard. {_HYSTERESIS} The `ETag` changes"
    " when a detection came in or a freshness changed.",
    parameters=[IF_NONE_MATCH],
    answers=openapi.gives(Staff, cached=True),
    problems=["store_unavailable"],
    curl="curl 'HOST/api/v1/staff'",
    tag="people",
)
def staff() -> Response:
    """Answer the last detection of every staff member."""
    everyone = _everyone()
    return responses.json_unless_held(everyone.tag, lambda: Staff(everyone.as_of, everyone.staff))


_LEVEL = Text("level", "Only this level")


@declare(
    "GET",
    "/now",
    summary="Who is where now, level by level",
    description=f"The entries of `/staff` that are not `stale`, by level. {_HYSTERESIS}",
    parameters=[_LEVEL, IF_NONE_MATCH],
    answers=openapi.gives(Now, cached=True),
    problems=["store_unavailable"],
    curl="curl 'HOST/api/v1/now?level=4'",
    tag="people",
)
def now() -> Response:
    """Answer who was heard in the last quarter of an hour, grouped by level."""
    everyone = _everyone()
    wanted = request.args.get(_LEVEL.name, "")
    return responses.json_unless_held(
        responses.tag(everyone.tag, wanted),
        lambda: Now(everyone.as_of, _by_level(everyone.staff, wanted)),
    )


def _by_level(staff: list[LastDetection], wanted: str) -> list[StaffOfLevel]:
    """Return who is not stale, by level; on all of them when none is wanted."""
    found: dict[str, list[LastDetection]] = {}
    for one in staff:
        if one.freshness != "stale" and wanted in ("", one.level):
            found.setdefault(one.level, []).append(one)
    return [StaffOfLevel(level, found[level]) for level in sorted(found)]


def _everyone() -> _Everyone:
    context = get_context()
    context.recorder.check_answers()
    entries = sorted(context.latest.everyone(), key=lambda one: by_staff_id(one.staff_id))
    directory = context.directory.current()
    at = time.time()
    staff = [_last(entry, context.level_rule, directory.places, at) for entry in entries]
    versions = [entry.version for entry in entries]
    freshness = [one.freshness for one in staff]
    return _Everyone(int(at), staff, responses.tag(versions, freshness, directory.tag))


def _last(entry: Entry, rule: levels.Rule, known: Container[str], at: float) -> LastDetection:
    heard = levels.settled(entry.recent, rule)
    # A phone whose clock is ahead was heard when we heard from it.
    age = max(0, int(at - min(heard.timestamp, heard.received_at)))
    return LastDetection(
        staff_id=entry.staff_id,
        timestamp=heard.timestamp,
        time=responses.iso(heard.timestamp),
        age_seconds=age,
        freshness=_freshness(age),
        level=heard.level,
        location=heard.location,
        mac=heard.mac,
        rssi=heard.rssi,
        known=heard.mac in known,
    )


def _freshness(age_seconds: int) -> str:
    if age_seconds <= NOW_SECONDS:
        return "now"
    return "recent" if age_seconds <= RECENT_SECONDS else "stale"
