"""Where everybody was last heard, from the small collection `latest`."""

import time
from collections.abc import Container
from typing import Annotated, NamedTuple

from msgspec import Meta

from ingest.api import responses
from ingest.api.fields import (
    Known,
    Level,
    Location,
    Mac,
    ResponseBody,
    Rssi,
    Seconds,
    StaffId,
    Time,
    by_staff_id,
)
from ingest.context import get_context
from ingest.rules import levels
from ingest.storage.latest import Entry

# Phones report every 4 s: a minute without is a pause, a quarter of an hour an absence.
NOW_SECONDS = 60
RECENT_SECONDS = 15 * 60


class LastDetection(ResponseBody):
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


class Everyone(NamedTuple):
    """Everybody's last detection by staff id, when it was read, and what changes with it."""

    as_of: int
    staff: list[LastDetection]
    tag: str


def everyone() -> Everyone:
    """Read everybody's last detection. Raises StoreUnavailable."""
    context = get_context()
    context.recorder.check_answers()
    entries = sorted(context.latest.everyone(), key=lambda one: by_staff_id(one.staff_id))
    directory = context.directory.current()
    at = time.time()
    staff = [_last(entry, context.level_rule, directory.places, at) for entry in entries]
    versions = [entry.version for entry in entries]
    freshness = [one.freshness for one in staff]
    return Everyone(int(at), staff, responses.tag(versions, freshness, directory.tag))


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
