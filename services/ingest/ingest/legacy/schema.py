"""The endpoints outside of /api/v1, for the document; `routes` and `health` serve them."""

from ingest.api import openapi
from ingest.api.openapi import OPERATIONS, Body, Operation, Schema
from ingest.rules import parameters as parsing

_ERROR = openapi.record(
    {
        "error": openapi.text("What went wrong"),
        "parameter": openapi.text("Which parameter is at fault"),
    },
    optional=["parameter"],
)


def _fails(description: str) -> Body:
    return Body(description, {"application/json": {"schema": _ERROR}})


_ERRORS = {
    400: _fails("A parameter is missing or bad."),
    413: _fails("The body is over the limit."),
    503: _fails("The database does not answer: nothing was stored, send it again."),
}
_FAILED = {500: _fails("A bug of ours.")}
_SECONDS = openapi.whole("Unix seconds", minimum=0, maximum=parsing.MAX_UNIX_SECONDS)
_DETECTION: dict[str, Schema] = {
    "user_address": openapi.text("The staff id", example="0"),
    "beacon_address": openapi.text("MAC of the beacon", example="C2A628384B08"),
    "rssi": openapi.RSSI | {"example": -67},
    "timestamp": _SECONDS | {"description": "Unix seconds of the device"},
    "event_id": openapi.text("Names the detection; a repeat is stored once"),
}
_RANGE: dict[str, Schema] = {
    "staff_id": openapi.text("The staff id", example="0"),
    "start_time": _SECONDS | {"description": "Not before, unix seconds", "example": 0},
    "end_time": _SECONDS | {"description": "Not after, unix seconds", "example": 4102444800},
}
_PLACE = {
    "level": openapi.LEVEL,
    "location": openapi.LOCATION,
    "timestamp": openapi.SECONDS,
}
_EVERYBODY = {"staff_id": openapi.STAFF_ID} | _PLACE | {"rssi": openapi.RSSI, "mac": openapi.MAC}


def _describe(path: str, summary: str, given: dict[str, Schema], answers: dict[int, Body]) -> None:
    """Describe an endpoint that takes GET and POST alike."""
    optional = [name for name in given if name in ("timestamp", "event_id")]
    schema = openapi.record(given, optional=optional) | {"additionalProperties": True}
    form = {"application/x-www-form-urlencoded": {"schema": schema}}
    body = Body(
        "The parameters, as a form or JSON.", {"application/json": {"schema": schema}} | form
    )
    example = "&".join(f"{n}={given[n]['example']}" for n in given if "example" in given[n])
    for method in ("GET", "POST"):
        post = method == "POST"
        OPERATIONS.append(
            Operation(
                method=method,
                path=path,
                name=f"{path[1:]}_{method.lower()}",
                summary=summary,
                parameters=[]
                if post
                else [
                    openapi.query(name, schema) | {"required": name not in optional}
                    for name, schema in given.items()
                ],
                body=body if post and given else None,
                answers=answers | _ERRORS | _FAILED,
                curl=f"curl 'HOST{path}{'?' + example if example else ''}'" if not post else "",
                tag="legacy",
            )
        )


_describe(
    "/newbeacondetect",
    "Store a detection",
    _DETECTION,
    {
        200: Body("Stored.", {"text/plain": {"schema": {"type": "string"}}}),
        202: Body(
            "Queued for a database that is away.", {"text/plain": {"schema": {"type": "string"}}}
        ),
    },
)
_describe(
    "/extractbeacon",
    "The whole history of a staff member between two times",
    _RANGE,
    openapi.gives(
        {"location": openapi.several(openapi.record(_PLACE), "Newest first")}, cached=True
    ),
)
_describe(
    "/retrieveformonitoring",
    "Everybody's last 15 minutes",
    {},
    openapi.gives(
        {"location": openapi.several(openapi.record(_EVERYBODY), "Newest first")}, cached=True
    ),
)
for _path, _summary in (
    ("/healthz", "Whether the process lives; of a service on its own port, else the gateway's"),
    ("/readyz", "Whether a service reaches the database; on its own port only"),
):
    _health = Body("The state.", {"application/json": {"schema": {"type": "object"}}})
    OPERATIONS.append(
        Operation(
            method="GET",
            path=_path,
            name=_path[1:],
            summary=_summary,
            answers={200: _health} | ({503: _health} if _path == "/readyz" else {}) | _FAILED,
            tag="health",
        )
    )
