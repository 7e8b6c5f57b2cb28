"""The directory of beacons: /beacons and /beacons/<mac>."""

from flask import Response, request
from werkzeug.routing import BaseConverter

from common.beacon import Beacon
from ingest.api.access import audited
from ingest.api.directory import beacon_corrections, beacon_input
from ingest.api.directory.beacon_corrections import CORRECTS, CorrectedBeacon
from ingest.api.directory.beacon_input import PlaceInput
from ingest.api.directory.registered_beacons import RegisteredBeacon, present
from ingest.api.http import bodies, responses
from ingest.api.http.problems import invalid
from ingest.api.http.query import IF_NONE_MATCH, LEVEL, MAC_IN_PATH, Choice, Flag
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody
from ingest.assembly import get_context
from ingest.rules import request_parameters
from ingest.rules.roles import Tells

_CORRECT_PAST = Flag("correct_past", "`1`: also past detections")
_FORMAT = Choice("format", "`csv`: as a file that /beacons/import takes", ["json", "csv"])


class BeaconInPath(BaseConverter):
    """Any text but what other addresses are called: with another method they are a 405."""

    regex = "(?!(?:import|unknown)$)[^/]+"
    part_isolating = True


class Directory(ResponseBody):
    """All beacons of the directory."""

    data: list[RegisteredBeacon]


@declare(
    "GET",
    "/beacons",
    tells=Tells.ASKED,
    summary="The directory of beacons",
    description="All of it, level by level, the lowest first, then by name. Another service's"
    " writes are seen after 2 s at the latest.",
    parameters=[LEVEL, _FORMAT, IF_NONE_MATCH],
    answers=declarations.gives(Directory, cached=True, file="text/csv"),
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons'",
    tag="beacons",
)
def beacons() -> Response:
    """Answer every beacon of the directory."""
    directory, level = get_context().directory_snapshot(), request.args.get(LEVEL.name, "")
    is_file = _FORMAT.read(request.args) == "csv"
    etag = responses.tag(directory.tag, level, is_file)
    of_level = (beacon for beacon in directory.beacons.values() if level in ("", beacon.level))
    if not is_file:
        return responses.json_unless_held(
            etag, lambda: Directory([RegisteredBeacon(*beacon) for beacon in of_level])
        )
    if held := responses.not_modified(etag):
        return held
    disposition = {"Content-Disposition": 'attachment; filename="beacons.csv"'}
    file = beacon_input.write_file(of_level)
    return responses.tagged(Response(file, headers=disposition, mimetype="text/csv"), etag)


@declare(
    "GET",
    "/beacons/<beacon:mac>",
    summary="One beacon",
    parameters=[MAC_IN_PATH],
    answers=declarations.gives(RegisteredBeacon),
    problems=["invalid_request", "not_found", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/C2A628384B08'",
    tag="beacons",
)
def beacon(mac: str) -> Response:
    """Answer where one beacon hangs."""
    wanted = request_parameters.any_beacon({"mac": mac}, "mac")
    entry = get_context().directory_snapshot().beacons.get(wanted)
    return responses.as_json(RegisteredBeacon(*present(entry, wanted)))


@declare(
    "PUT",
    "/beacons/<beacon:mac>",
    summary="Register or move a beacon",
    description="Detections from now on get this place; the other services see it after 2 s at the"
    " latest. With `correct_past=1` every stored detection of this beacon gets it as well, in"
    " histories, in `/staff` and as `corrected` lines in `/changes`. That takes some 10 s, one at a"
    " time, and only 200 says that it is complete. 202 says how many detections `remaining`: go on"
    " with `POST /beacons/<mac>/correction?id=` and the answer's `correction` until it answers 200."
    " On any other answer send this again. `DELETE` there undoes it, `GET` tells before what it"
    " would change.",
    parameters=[MAC_IN_PATH, _CORRECT_PAST],
    body=Body(
        "Where it hangs; `x` and `y` both or neither.",
        {
            JSON: Content(
                PlaceInput, example={"level": "4", "location": "Room 4-01", "x": 12, "y": 5}
            )
        },
    ),
    answers=CORRECTS,
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
    entry, faults = beacon_input.beacon(bodies.json_object() | {"mac": mac})
    if entry is None:
        raise invalid(faults)
    if not correct_past:
        _put(entry)
        return responses.as_json(CorrectedBeacon(*entry, 0, "", beacon_corrections.warning(entry)))
    name = beacon_corrections.new_name()
    with beacon_corrections.only_correction():
        _put(entry, correct_past=True, correction=name)
        return beacon_corrections.correct(entry, name)


def _put(entry: Beacon, **details: str | bool) -> None:
    context = get_context()
    context.database.availability.check_reachable()
    context.directory.beacons.put([entry])
    context.directory.cache.reload()
    place = {"level": entry.level, "location": entry.location, "x": entry.x, "y": entry.y}
    audited.note("beacon put", entry.mac, **place, **details)


@declare(
    "DELETE",
    "/beacons/<beacon:mac>",
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
    wanted = request_parameters.any_beacon({"mac": mac}, "mac")
    context = get_context()
    context.database.availability.check_reachable()
    context.directory.beacons.remove(wanted)
    context.directory.cache.reload()
    audited.note("beacon removed", wanted)
    return Response(status=204)
