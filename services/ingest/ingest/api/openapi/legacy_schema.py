"""The endpoints that are not under `/api/v1`, for the OpenAPI document."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from common import beacon_id
from common.routes import DETECT, EXTRACT, HEALTHZ, METRICS, MONITOR, OWNTRACKS, READYZ
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, OPERATIONS, Body, Content, Operation
from ingest.api.openapi.schema_fields import (
    Dbm,
    GivenRssi,
    Level,
    Location,
    Mac,
    ResponseBody,
    Seconds,
    StaffId,
)
from ingest.rules import request_parameters
from ingest.rules.roles import role_at

_FORM = "application/x-www-form-urlencoded"


def _text(pattern: str, *, optional: bool = False) -> Meta:
    """Describe a text; an optional one may be empty."""
    return Meta(extra_json_schema={"pattern": f"^({pattern}){'?' if optional else ''}$"})


# JSON gives numbers or their texts alike; fractions of a second are cut.
_StaffId = int | Annotated[str, _text(request_parameters.STAFF_TEXT.pattern)]
_Whole = Annotated[float, Meta(ge=0, le=request_parameters.MAX_UNIX_SECONDS)]
_Seconds = _Whole | Annotated[str, _text(request_parameters.SECONDS_TEXT)]
_Device = Annotated[
    float, Meta(ge=request_parameters.EARLIEST, le=request_parameters.MAX_UNIX_SECONDS)
]
_DeviceSeconds = _Device | Annotated[str, _text(request_parameters.SECONDS_TEXT, optional=True)]
_Event = Annotated[str, _text(request_parameters.EVENT_ID.pattern, optional=True)]


class LegacyError(ResponseBody):
    """What went wrong."""

    error: Annotated[str, Meta(description="What went wrong")]
    parameter: Annotated[str | UnsetType, Meta(description="Which parameter is at fault")] = UNSET


class NewDetection(Struct):
    """The parameters of `/newbeacondetect`."""

    user_address: Annotated[
        _StaffId, Meta(description="The staff id", extra_json_schema={"example": "0"})
    ]
    beacon_address: Annotated[
        Annotated[str, _text(beacon_id.BEACON_TEXT)],
        Meta(
            description="Id of the beacon: its MAC, or `ibeacon:<uuid>:<major>:<minor>`, and so on",
            extra_json_schema={"example": "C2A628384B08"},
        ),
    ]
    rssi: Annotated[GivenRssi, Meta(extra_json_schema={"example": -67})]
    timestamp: Annotated[
        _DeviceSeconds | UnsetType | None,
        Meta(description="Unix seconds of the device, since 2020 and not a day ahead"),
    ] = UNSET
    event_id: Annotated[
        _Event | float | UnsetType | None,
        Meta(description="Names the detection; a repeat is stored once"),
    ] = UNSET


class Range(Struct):
    """The parameters of `/extractbeacon`."""

    staff_id: Annotated[
        _StaffId, Meta(description="The staff id", extra_json_schema={"example": "0"})
    ]
    start_time: Annotated[
        _Seconds,
        Meta(description="Not before, unix seconds", extra_json_schema={"example": 0}),
    ]
    end_time: Annotated[
        _Seconds,
        Meta(description="Not after, unix seconds", extra_json_schema={"example": 4102444800}),
    ]


class LegacyVisit(ResponseBody):
    """Where somebody was heard."""

    level: Level
    location: Location
    timestamp: Seconds


class Extract(ResponseBody):
    """The whole history of a staff member between two times."""

    location: Annotated[list[LegacyVisit], Meta(description="Newest first")]


class StaffVisit(ResponseBody):
    """Where which staff member was heard."""

    staff_id: StaffId
    level: Level
    location: Location
    timestamp: Seconds
    rssi: Annotated[Dbm, Meta(description="Signal strength in dBm; -127 where not known")]
    mac: Mac


class LastMinutes(ResponseBody):
    """Everybody's last 15 minutes."""

    location: Annotated[list[StaffVisit], Meta(description="Newest first")]


def _fails(description: str) -> Body:
    return Body(description, {JSON: Content(LegacyError)})


_FAILED = {500: _fails("A bug of ours.")}
REFUSED = {
    401: _fails("The address needs a token, and this is no valid one."),
    403: _fails("The token is valid, and its role may not do this."),
}
_ERRORS = {
    400: _fails("A parameter is missing or bad."),
    **REFUSED,
    413: _fails("The body is over the limit."),
    503: _fails("The database does not answer: nothing was stored, or can be told. Ask again."),
}
_TEXT = {"text/plain": Content(str)}
_STATE = Body("The state.", {JSON: Content(dict[str, Any])})


def _describe(
    path: str,
    summary: str,
    answers: Mapping[int, Body],
    query: Any = None,
    example: str = "",
) -> None:
    """Describe an endpoint that takes GET and POST alike; `query` are its parameters."""
    content = Content(query)
    body = Body("The parameters, as a form or JSON.", {JSON: content, _FORM: content})
    get = Operation(
        method="GET",
        path=path,
        role=role_at("GET", path),
        name=f"{path[1:]}_get",
        summary=summary,
        query=query,
        answers={**answers, **_ERRORS, **_FAILED},
        curl=f"curl 'HOST{path}{example}'",
        tag="legacy",
    )
    OPERATIONS.append(get)
    OPERATIONS.append(
        get._replace(
            method="POST",
            role=role_at("POST", path),
            name=f"{path[1:]}_post",
            query=None,
            body=body if query else None,
            curl="",
        )
    )


_describe(
    DETECT.path,
    "Store a detection",
    {
        200: Body("Stored.", _TEXT),
        202: Body("Queued for a database that is away.", _TEXT),
    },
    NewDetection,
    "?user_address=0&beacon_address=C2A628384B08&rssi=-67",
)
_describe(
    EXTRACT.path,
    "The whole history of a staff member between two times",
    declarations.gives(Extract, cached=True)
    | {429: _fails("Too many long histories are under way; `Retry-After` says when to ask again.")},
    Range,
    "?staff_id=0&start_time=0&end_time=4102444800",
)
_describe(
    MONITOR.path,
    "Everybody's last 15 minutes",
    declarations.gives(LastMinutes, cached=True),
)
_MESSAGE = {
    "_type": "beacon",
    "uuid": "CA271EAE-5FA8-4E80-8F08-2A302A95A959",
    "major": 1,
    "minor": 7,
    "tst": 1795743000,
    "rssi": -67,
    "topic": "owntracks/jane/phone/beacon",
}
OPERATIONS.append(
    Operation(
        method="POST",
        path=OWNTRACKS.path,
        role=role_at("POST", OWNTRACKS.path),
        name="owntracks",
        summary="Take a message of the app OwnTracks, where `WAYMARK_OWNTRACKS=on`",
        description="A beacon that an iPhone ranged is a detection; all else is counted at"
        " `/api/v1/system`. The app deletes what gets a 4xx: so there is none here. The token is"
        " the password of Basic auth, too, or `?token=`.",
        answers={
            200: Body("Stored, or queued, or ignored.", {JSON: Content(list[str])}),
            413: _fails("Of a service on its own port; the gateway says 200."),
            **_FAILED,
            503: _fails("Nothing was stored, or the token is not valid: the app sends it again."),
        },
        body=Body(
            "Any message, whatever its media type.", {JSON: Content(Any, _MESSAGE)}, required=False
        ),
        tag="legacy",
    )
)
_HEALTH = Operation(
    method="GET",
    path=HEALTHZ.path,
    role=role_at("GET", HEALTHZ.path),
    name="healthz",
    summary="Whether the process lives; of a service on its own port, else the gateway's",
    answers={200: _STATE, **_FAILED},
    tag="health",
)
OPERATIONS.append(_HEALTH)
OPERATIONS.append(
    _HEALTH._replace(
        path=READYZ.path,
        name="readyz",
        summary="Whether a service reaches the database; on its own port only",
        answers={200: _STATE, 503: _STATE, **_FAILED},
    )
)
OPERATIONS.append(
    _HEALTH._replace(
        path=METRICS.path,
        role=role_at("GET", METRICS.path),
        name="metrics",
        summary="The numbers of a service, for Prometheus; on its own port only",
        answers={200: Body("The numbers.", _TEXT), **_FAILED},
    )
)
