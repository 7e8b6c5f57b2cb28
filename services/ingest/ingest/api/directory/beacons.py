"""The directory of beacons: /beacons and /beacons/<mac>."""

import threading
from collections.abc import Mapping
from typing import Any

from flask import Response, request

from common.beacon import Beacon
from common.directory import IdsRefused
from ingest.api.access import audited
from ingest.api.directory import beacon_corrections, beacon_input
from ingest.api.directory.beacon_corrections import CORRECTS, CorrectedBeacon
from ingest.api.directory.beacon_input import PlaceInput
from ingest.api.directory.registered_beacons import RegisteredBeacon, present
from ingest.api.http import bodies, responses
from ingest.api.http.names_in_paths import name_in
from ingest.api.http.problems import invalid
from ingest.api.http.query import IF_NONE_MATCH, LEVEL, MAC_IN_PATH, Choice, Flag
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody
from ingest.assembly import get_context
from ingest.rules import request_parameters
from ingest.rules.roles import Tells

# Of 2000 beacons with all their aliases an answer takes 4 MiB while it is made.
_making = threading.Lock()
_TAKE = Flag("take", "`1`: also ids that other beacons have, which lose them")
_CORRECT_PAST = Flag("correct_past", "`1`: also past detections")
_FORMAT = Choice("format", "`csv`: as a file that /beacons/import takes", ["json", "csv"])


BeaconInPath = name_in("/beacons/<mac>")


class Directory(ResponseBody):
    """All beacons of the directory."""

    data: list[RegisteredBeacon]


@declare(
    "GET",
    "/beacons",
    tells=Tells.ASKED,
    tells_team=Tells.NONE,
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
    of_level = (beacon for beacon in directory.beacons if level in ("", beacon.level))
    if not is_file:
        with _making:
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
    tells_team=Tells.NONE,
    summary="One beacon",
    parameters=[MAC_IN_PATH],
    answers=declarations.gives(RegisteredBeacon),
    problems=["invalid_request", "not_found", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/C2A628384B08'",
    tag="beacons",
)
def beacon(mac: str) -> Response:
    """Answer where a beacon hangs, by any of its ids."""
    wanted = request_parameters.any_beacon({"mac": mac}, "mac")
    entry = get_context().directory_snapshot().by_id.get(wanted)
    return responses.as_json(RegisteredBeacon(*present(entry, wanted)))


@declare(
    "PUT",
    "/beacons/<beacon:mac>",
    summary="Register or move a beacon",
    description="Detections from now on get this place; the other services see it after 2 s at the"
    " latest. A phone may hear it by each of its `aliases`: an app on iOS has the id of an iBeacon,"
    " one on Android the MAC. An id belongs to one beacon: one that another has is a 400 which"
    " names that, unless `take=1`. Then the other loses it, or goes if it is its own: its aliases"
    " come along, and those that the beacon has stay. So two beacons become one; put an alias"
    " itself, and it is a beacon of its own again."
    " With `correct_past=1` every stored detection of this beacon gets the place as well, in"
    " histories, in `/staff` and as `corrected` lines in `/changes`. That takes some 10 s, one at a"
    " time, and only 200 says that it is complete. 202 says how many detections `remaining`: go on"
    " with `POST /beacons/<mac>/correction?id=` and the answer's `correction` until it answers 200."
    " On any other answer send this again. `DELETE` there undoes it, `GET` tells before what it"
    " would change.",
    parameters=[MAC_IN_PATH, _TAKE, _CORRECT_PAST],
    body=Body(
        "Where it hangs, and its other ids; `x` and `y` both or neither.",
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
    body = bodies.json_object()
    wanted, faults = beacon_input.beacon(body | {"mac": mac})
    if wanted is None:
        raise invalid(faults)
    if not correct_past:
        entry = _put(wanted, body)
        return responses.as_json(CorrectedBeacon(*entry, 0, "", beacon_corrections.warning(entry)))
    name = beacon_corrections.new_name()
    with beacon_corrections.only_correction():
        entry = _put(wanted, body, correct_past=True, correction=name)
        return beacon_corrections.correct(entry, name)


def _put(wanted: Beacon, body: Mapping[str, Any], **details: str | bool) -> Beacon:
    """Put a beacon into the directory, return it as it is there. Raises Problem: ids of others."""
    takes_ids = _TAKE.read(request.args)
    # What came along with an id stays when the request is sent again.
    keeps_aliases = takes_ids or body.get("aliases") is None
    context = get_context()
    context.database.availability.check_reachable()
    try:
        done = context.directory.beacons.put(
            [wanted], keeps_aliases=keeps_aliases, takes_ids=takes_ids
        )
    except IdsRefused as error:
        raise beacon_input.ids_refused(error) from None
    context.directory.cache.reload()
    context.directory.telemetry.adopt(done.beacons)
    [entry] = done.beacons
    place = {"level": entry.level, "location": entry.location, "x": entry.x, "y": entry.y}
    for name, ids in (("aliases", entry.aliases), ("gone", done.gone)):
        if ids:
            details[name] = " ".join(ids)
    audited.note("beacon put", entry.mac, **place, **details)
    return entry


@declare(
    "DELETE",
    "/beacons/<beacon:mac>",
    summary="Take a beacon out of the directory",
    description="Detections from now on, of all its ids, have the level and location `unknown`;"
    " past ones keep theirs; what it told of its battery goes with it. An alias is a 400 which"
    " names its beacon. A beacon that is not there is success too: the answer to a repeat is the"
    " same.",
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
    try:
        context.directory.beacons.remove(wanted)
    except IdsRefused as error:
        raise beacon_input.ids_refused(error) from None
    context.directory.cache.reload()
    context.directory.telemetry.forget(wanted)
    audited.note("beacon removed", wanted)
    return Response(status=204)
