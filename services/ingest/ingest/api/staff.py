"""Where everybody is: /staff and /now."""

from typing import Annotated

from flask import Response, request
from msgspec import Meta

from ingest.api import last_detections, openapi, responses
from ingest.api.fields import Level, ResponseBody, Seconds
from ingest.api.last_detections import LastDetection
from ingest.api.openapi import declare
from ingest.api.query import IF_NONE_MATCH, Text

_HYSTERESIS = (
    "The level changes only when the new one is heard several times in a row, or much stronger, or"
    " the old one no longer (settings `LEVEL_*`): a beacon heard through the floor moves nobody."
)


class Staff(ResponseBody):
    """The last detection of every staff member."""

    as_of: Seconds
    data: Annotated[list[LastDetection], Meta(description="By staff id")]


class StaffOfLevel(ResponseBody):
    """Who is on a level."""

    level: Level
    staff: list[LastDetection]


class Now(ResponseBody):
    """Who is where."""

    as_of: Seconds
    levels: list[StaffOfLevel]


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
    everyone = last_detections.everyone()
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
    everyone = last_detections.everyone()
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
