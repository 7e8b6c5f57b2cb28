"""The directory of beacons: /beacons and /beacons/<mac>."""

import threading
from typing import Annotated

from flask import Response, request
from msgspec import Meta

from ingest.api import beacon_input, bodies, openapi, responses
from ingest.api.beacon_input import Name, PlaceInput
from ingest.api.fields import Mac, Metres, ResponseBody
from ingest.api.openapi import JSON, Body, Content, declare
from ingest.api.problems import Problem, invalid
from ingest.api.query import IF_NONE_MATCH, MAC_IN_PATH, Flag
from ingest.context import get_context
from ingest.rules import parameters
from ingest.storage.beacons import Beacon

# Holds one of the service's threads for seconds: a few at once would keep everybody waiting.
_correcting = threading.BoundedSemaphore(1)
_CORRECT_PAST = Flag("correct_past", "`1`: also past detections")


class RegisteredBeacon(ResponseBody):
    """A beacon of the directory."""

    mac: Mac
    level: Annotated[Name, Meta(description="Level")]
    location: Annotated[Name, Meta(description="Name of the spot")]
    x: Metres | None
    y: Metres | None


class CorrectedBeacon(RegisteredBeacon):
    """A beacon as it was put into the directory."""

    corrected: Annotated[int, Meta(description="Past detections that had another place")]


class Directory(ResponseBody):
    """All beacons of the directory."""

    data: list[RegisteredBeacon]


@declare(
    "GET",
    "/beacons",
    summary="The directory of beacons",
    description="All of it, by MAC. Another service's writes are seen after 2 s at the latest.",
    parameters=[IF_NONE_MATCH],
    answers=openapi.gives(Directory, cached=True),
    problems=["store_unavailable"],
    curl="curl 'HOST/api/v1/beacons'",
    tag="beacons",
)
def beacons() -> Response:
    """Answer every beacon of the directory."""
    directory = get_context().directory_snapshot()
    return responses.json_unless_held(
        directory.tag,
        lambda: Directory([RegisteredBeacon(*one) for one in directory.beacons.values()]),
    )


@declare(
    "GET",
    "/beacons/<mac>",
    summary="One beacon",
    parameters=[MAC_IN_PATH],
    answers=openapi.gives(RegisteredBeacon),
    problems=["invalid_request", "not_found", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/C2A628384B08'",
    tag="beacons",
)
def beacon(mac: str) -> Response:
    """Answer where one beacon hangs."""
    wanted = parameters.mac({"mac": mac}, "mac")
    found = get_context().directory_snapshot().beacons.get(wanted)
    if found is None:
        raise Problem("not_found", f"beacon {wanted} is not in the directory")
    return responses.as_json(RegisteredBeacon(*found))


@declare(
    "PUT",
    "/beacons/<mac>",
    summary="Register or move a beacon",
    description="Detections from now on get this place; the other services see it after 2 s at the"
    " latest. With `correct_past=1` every stored detection of this beacon gets it as well, in"
    " histories, in `/staff` and as `corrected` lines in `/changes`; that takes a few seconds, one"
    " at a time, and only 200 says that it is complete: on any other answer send it again.",
    parameters=[MAC_IN_PATH, _CORRECT_PAST],
    body=Body(
        "Where it hangs; `x` and `y` both or neither.",
        {
            JSON: Content(
                PlaceInput, example={"level": "4", "location": "Room 4-01", "x": 12, "y": 5}
            )
        },
    ),
    answers=openapi.gives(CorrectedBeacon),
    problems=[
        "invalid_request",
        "too_large",
        "unsupported_media_type",
        "too_many_waiting",
        "store_unavailable",
    ],
    curl="curl -X PUT 'HOST/api/v1/beacons/C2A628384B08?correct_past=1'"
    """ -H 'Content-Type: application/json' -d '{"level": "4", "location": "Room 4-01"}'""",
    tag="beacons",
)
def put_beacon(mac: str) -> Response:
    """Put one beacon into the directory."""
    correct_past = _CORRECT_PAST.read(request.args)
    found, errors = beacon_input.beacon(bodies.json_object() | {"mac": mac})
    if found is None:
        raise invalid(errors)
    if not correct_past:
        return _put(found, correct_past=False)
    if not _correcting.acquire(blocking=False):
        detail = "another correction is under way; nothing was changed, try again when it is done"
        raise Problem("too_many_waiting", detail, headers={"Retry-After": "10"})
    try:
        return _put(found, correct_past=True)
    finally:
        _correcting.release()


def _put(found: Beacon, *, correct_past: bool) -> Response:
    context = get_context()
    context.recorder.check_reachable()
    context.beacons.put([found])
    context.directory.reload()
    corrected = context.corrections.correct(found) if correct_past else 0
    return responses.as_json(CorrectedBeacon(*found, corrected))


@declare(
    "DELETE",
    "/beacons/<mac>",
    summary="Take a beacon out of the directory",
    description="Detections from now on have the level and location `unknown`; past ones keep"
    " theirs. A beacon that is not there is success too: the answer to a repeat is the same.",
    parameters=[MAC_IN_PATH],
    answers={204: Body("It is not in the directory.", {})},
    problems=["invalid_request", "store_unavailable"],
    curl="curl -X DELETE 'HOST/api/v1/beacons/C2A628384B08'",
    tag="beacons",
)
def delete_beacon(mac: str) -> Response:
    """Take one beacon out of the directory."""
    wanted = parameters.mac({"mac": mac}, "mac")
    context = get_context()
    context.recorder.check_reachable()
    context.beacons.remove(wanted)
    context.directory.reload()
    return Response(status=204)
