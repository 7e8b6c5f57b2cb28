"""The directory of beacons: /beacons and /beacons/<mac>."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from flask import Response, request
from msgspec import UNSET, Meta, UnsetType
from werkzeug.routing import BaseConverter

from ingest.api import audited, beacon_input, bodies, openapi, responses
from ingest.api.beacon_input import Name, PlaceInput
from ingest.api.openapi import JSON, Body, Content, declare
from ingest.api.problems import Problem, invalid
from ingest.api.query import IF_NONE_MATCH, LEVEL, MAC_IN_PATH, Choice, Flag
from ingest.api.schema_fields import Mac, Metres, ResponseBody
from ingest.context import get_context
from ingest.rules import request_parameters
from ingest.rules.roles import Role, Tells
from ingest.storage.beacons import Beacon

# Holds one of the service's threads for seconds: a few at once would keep everybody waiting.
_correcting = threading.BoundedSemaphore(1)
_CORRECT_PAST = Flag("correct_past", "`1`: also past detections")
_FORMAT = Choice("format", "`csv`: as a file that /beacons/import takes", ["json", "csv"])


class BeaconInPath(BaseConverter):
    """Any text but what other addresses are called: with another method they are a 405."""

    regex = "(?!(?:import|unknown)$)[^/]+"
    part_isolating = True


class RegisteredBeacon(ResponseBody):
    """A beacon of the directory."""

    mac: Mac
    level: Annotated[Name, Meta(description="Level")]
    location: Annotated[Name, Meta(description="Name of the spot")]
    x: Metres | None
    y: Metres | None


class CorrectedBeacon(RegisteredBeacon):
    """A beacon as it was put into the directory."""

    corrected: Annotated[int, Meta(description="Past detections that this request gave the place")]
    warning: Annotated[
        str | UnsetType, Meta(description="What looks wrong with its position, which was stored")
    ] = UNSET


class UnfinishedCorrection(CorrectedBeacon, kw_only=True):
    """A beacon whose past is corrected in part."""

    remaining: Annotated[int, Meta(description="Past detections that still have another place")]


class Directory(ResponseBody):
    """All beacons of the directory."""

    data: list[RegisteredBeacon]


_CORRECTS = openapi.gives(CorrectedBeacon) | {
    202: Body("Done in part.", {JSON: Content(UnfinishedCorrection)})
}


@declare(
    "GET",
    "/beacons",
    role=Role.READ,
    tells=Tells.ASKED,
    summary="The directory of beacons",
    description="All of it, by MAC. Another service's writes are seen after 2 s at the latest.",
    parameters=[LEVEL, _FORMAT, IF_NONE_MATCH],
    answers=openapi.gives(Directory, cached=True, file="text/csv"),
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons'",
    tag="beacons",
)
def beacons() -> Response:
    """Answer every beacon of the directory."""
    directory, level = get_context().directory_snapshot(), request.args.get(LEVEL.name, "")
    is_file = _FORMAT.read(request.args) == "csv"
    etag = responses.tag(directory.tag, level, is_file)
    told = (one for one in directory.beacons.values() if level in ("", one.level))
    if not is_file:
        return responses.json_unless_held(
            etag, lambda: Directory([RegisteredBeacon(*one) for one in told])
        )
    if held := responses.not_modified(etag):
        return held
    disposition = {"Content-Disposition": 'attachment; filename="beacons.csv"'}
    file = beacon_input.write_file(told)
    return responses.tagged(Response(file, headers=disposition, mimetype="text/csv"), etag)


@declare(
    "GET",
    "/beacons/<beacon:mac>",
    role=Role.READ,
    summary="One beacon",
    parameters=[MAC_IN_PATH],
    answers=openapi.gives(RegisteredBeacon),
    problems=["invalid_request", "not_found", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/C2A628384B08'",
    tag="beacons",
)
def beacon(mac: str) -> Response:
    """Answer where one beacon hangs."""
    wanted = request_parameters.mac({"mac": mac}, "mac")
    found = get_context().directory_snapshot().beacons.get(wanted)
    return responses.as_json(RegisteredBeacon(*_present(found, wanted)))


@declare(
    "PUT",
    "/beacons/<beacon:mac>",
    role=Role.ADMIN,
    summary="Register or move a beacon",
    description="Detections from now on get this place; the other services see it after 2 s at the"
    " latest. With `correct_past=1` every stored detection of this beacon gets it as well, in"
    " histories, in `/staff` and as `corrected` lines in `/changes`. That takes some 10 s, one at a"
    " time, and only 200 says that it is complete. 202 says how many detections `remaining`: go on"
    " with `POST /beacons/<mac>/correction` until it answers 200. On any other answer send this"
    " again.",
    parameters=[MAC_IN_PATH, _CORRECT_PAST],
    body=Body(
        "Where it hangs; `x` and `y` both or neither.",
        {
            JSON: Content(
                PlaceInput, example={"level": "4", "location": "Room 4-01", "x": 12, "y": 5}
            )
        },
    ),
    answers=_CORRECTS,
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
    found, faults = beacon_input.beacon(bodies.json_object() | {"mac": mac})
    if found is None:
        raise invalid(faults)
    if not correct_past:
        _put(found)
        return responses.as_json(CorrectedBeacon(*found, 0, _warning(found)))
    with _only_correction():
        _put(found)
        return _correct(found)


@declare(
    "POST",
    "/beacons/<beacon:mac>/correction",
    role=Role.ADMIN,
    summary="Go on with a correction of the past",
    description="Gives stored detections the place that the beacon has now, for some seconds;"
    " repeat it until the answer is 200. Each detection is a change of its own in `/changes`.",
    parameters=[MAC_IN_PATH],
    answers=_CORRECTS,
    problems=["invalid_request", "not_found", "too_many_waiting", "store_unavailable"],
    curl="curl -X POST 'HOST/api/v1/beacons/C2A628384B08/correction'",
    tag="beacons",
)
def correct_beacon(mac: str) -> Response:
    """Go on with a correction of the past."""
    wanted = request_parameters.mac({"mac": mac}, "mac")
    with _only_correction():
        context = get_context()
        context.availability.check_reachable()
        found = _present(context.beacons.find(wanted), wanted)
        audited.note("beacon corrected", wanted, level=found.level, location=found.location)
        return _correct(found)


@contextmanager
def _only_correction() -> Iterator[None]:
    """Let one request at a time correct the past."""
    if not _correcting.acquire(blocking=False):
        detail = "another correction is under way; nothing was changed, try again when it is done"
        raise Problem("too_many_waiting", detail, headers={"Retry-After": "10"})
    try:
        yield
    finally:
        _correcting.release()


def _put(found: Beacon) -> None:
    context = get_context()
    context.availability.check_reachable()
    context.beacons.put([found])
    context.directory.reload()
    place = {"level": found.level, "location": found.location, "x": found.x, "y": found.y}
    audited.note("beacon put", found.mac, **place)


def _correct(found: Beacon) -> Response:
    done = get_context().corrections.correct(found)
    if done.remaining is None:
        return responses.as_json(CorrectedBeacon(*found, done.corrected, _warning(found)))
    remaining = done.remaining
    return responses.as_json(UnfinishedCorrection(*found, done.corrected, remaining=remaining), 202)


def _warning(found: Beacon) -> str | UnsetType:
    directory = get_context().directory.current()
    return beacon_input.doubts_of([found], directory.beacons.values()).get(found.mac, UNSET)


def _present(found: Beacon | None, mac: str) -> Beacon:
    if found is None:
        raise Problem("not_found", f"beacon {mac} is not in the directory")
    return found


@declare(
    "DELETE",
    "/beacons/<beacon:mac>",
    role=Role.ADMIN,
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
    wanted = request_parameters.mac({"mac": mac}, "mac")
    context = get_context()
    context.availability.check_reachable()
    context.beacons.remove(wanted)
    context.directory.reload()
    audited.note("beacon removed", wanted)
    return Response(status=204)
