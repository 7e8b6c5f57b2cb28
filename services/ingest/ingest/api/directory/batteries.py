"""What beacons tell of themselves, and which battery to change next: /beacons/batteries."""

from typing import Annotated

from flask import Response
from msgspec import Meta

from ingest.api.directory.beacon_input import Name
from ingest.api.http import responses
from ingest.api.http.query import IF_NONE_MATCH
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import declare
from ingest.api.openapi.schema_fields import Mac, ResponseBody, Seconds
from ingest.assembly import Context, get_context
from ingest.rules import batteries
from ingest.rules.batteries import (
    FEWEST_READINGS,
    KINDS,
    LEAST_DAYS,
    LITTLE,
    MAX_YEARS,
    SERIES_DAYS,
    SOON_DAYS,
)

_MILLIVOLTS, _PERCENT = KINDS["battery_mv"], KINDS["battery_percent"]
Value = Annotated[float, Meta(description="As the beacon told it")]


class Reading(ResponseBody):
    """What a beacon told, and when that was heard."""

    value: Value
    at: Seconds


class Battery(ResponseBody):
    """A battery, in the unit that the beacon told last."""

    value: Value
    unit: Annotated[
        str,
        Meta(
            description="Unit of `value` and `per_day`",
            extra_json_schema={"enum": [kind.unit for kind in KINDS.values()]},
        ),
    ]
    at: Annotated[Seconds, Meta(description="When it was told; unix seconds")]
    left: Annotated[
        float,
        Meta(
            description=f"Share that is left: 1 at {_MILLIVOLTS.full} mV or 100 %, 0 at"
            f" {_MILLIVOLTS.empty} mV or 0 %",
            ge=0,
            le=1,
        ),
    ]
    per_day: Annotated[
        float | None,
        Meta(
            description="Change in a day: the slope of the line of least squares through one"
            f" reading a day (UTC) of the last {SERIES_DAYS} days, since the last jump up by"
            f" {_MILLIVOLTS.jump} mV or {_PERCENT.jump} %, a change of the battery. Null with fewer"
            f" than {FEWEST_READINGS} readings in {LEAST_DAYS} days"
        ),
    ]
    empty_at: Annotated[
        Seconds | None,
        Meta(
            description=f"When that line falls to {_MILLIVOLTS.empty} mV or 0 %; unix seconds. Null"
            f" where it does not fall, or in more than {MAX_YEARS} years"
        ),
    ]
    low: Annotated[
        bool,
        Meta(
            description=f"Whether it should be changed soon: empty within {SOON_DAYS} days of `at`,"
            f" or {LITTLE:.0%} left"
        ),
    ]


class BeaconBattery(ResponseBody):
    """A beacon of the directory that told something of itself."""

    mac: Mac
    level: Annotated[Name, Meta(description="Level")]
    location: Annotated[Name, Meta(description="Name of the spot")]
    battery: Battery | None
    readings: Annotated[
        dict[str, Reading],
        Meta(description="The newest of each name, as in `telemetry` of a detection's result"),
    ]


class Batteries(ResponseBody):
    """Beacons, the battery to change next first."""

    data: list[BeaconBattery]


@declare(
    "GET",
    "/beacons/batteries",
    summary="What beacons told of themselves, the battery to change next first",
    description="Every beacon of the directory that was ever heard with an advertisement that tells"
    " something (`raw` of a detection), a minute later at the latest: by `empty_at`, then the"
    " lowest, then those that told of no battery.",
    parameters=[IF_NONE_MATCH],
    answers=declarations.gives(Batteries, cached=True),
    problems=["store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/batteries'",
    tag="beacons",
)
def get_batteries() -> Response:
    """Answer what beacons told."""
    context = get_context()
    context.database.availability.check_answers()
    with responses.one_at_a_time:  # of 2000 beacons it is megabytes
        response = responses.as_json(_answer(context))
    etag = responses.tag(response.get_data())
    return responses.not_modified(etag) or responses.tagged(response, etag)


def _answer(context: Context) -> Batteries:
    by_id = context.directory.cache.current().by_id
    rows = []
    for mac, latest, series in context.directory.telemetry.read():
        entry = by_id.get(mac)
        if entry and entry.mac == mac:  # else it is being taken out, or becomes an alias
            battery = batteries.battery(latest, series)
            readings = {name: Reading(value, at) for name, (at, value) in latest.items()}
            row = BeaconBattery(
                mac, entry.level, entry.location, battery and Battery(*battery), readings
            )
            rows.append((batteries.urgency(battery), mac, row))
    rows.sort(key=lambda beacon: beacon[:2])
    return Batteries([row for _, _, row in rows])
