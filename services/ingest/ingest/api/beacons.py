"""The directory of beacons: /beacons, /beacons/<mac>, /beacons/import."""

import threading

from flask import Response, request

from ingest.api import beacon_input as files
from ingest.api import bodies, openapi
from ingest.api import responses as answers
from ingest.api.openapi import Body, declare
from ingest.api.problems import Problem, invalid
from ingest.context import get_context
from ingest.rules import parameters as parsing
from ingest.storage.beacons import Beacon

# Holds one of the service's threads for seconds: a few at once would keep everybody waiting.
_correcting = threading.BoundedSemaphore(1)

_PLACE = {
    "level": openapi.text("Level", minLength=1, maxLength=parsing.MAX_TEXT),
    "location": openapi.text("Name of the spot", minLength=1, maxLength=parsing.MAX_TEXT),
    "x": openapi.or_null(openapi.METRES),
    "y": openapi.or_null(openapi.METRES),
}
_BEACON = {"mac": openapi.MAC} | _PLACE
_MAC_IN_PATH = openapi.in_path(
    "mac", openapi.text("MAC, any case, with or without `:` or `-`", example="C2A628384B08")
)
_COUNTS = {
    "added": openapi.whole("Beacons that were not in the directory"),
    "changed": openapi.whole("Beacons that had another place"),
    "unchanged": openapi.whole("Beacons that stood there like this"),
    "others": openapi.whole("Beacons that are not in the file; they stay"),
}


@declare(
    "GET",
    "/beacons",
    summary="The directory of beacons",
    description="All of it, by MAC. Another service's writes are seen after 2 s at the latest.",
    parameters=[openapi.IF_NONE_MATCH],
    answers=openapi.gives({"data": openapi.several(openapi.record(_BEACON))}, cached=True),
    errors=["store_unavailable"],
    curl="curl 'HOST/api/v1/beacons'",
    tag="beacons",
)
def beacons() -> Response:
    """Answer every beacon of the directory."""
    directory = get_context().directory_snapshot()
    return answers.held(directory.tag) or answers.tagged(
        answers.as_json({"data": [beacon._asdict() for beacon in directory.beacons.values()]}),
        directory.tag,
    )


@declare(
    "GET",
    "/beacons/<mac>",
    summary="One beacon",
    parameters=[_MAC_IN_PATH],
    answers=openapi.gives(_BEACON),
    errors=["invalid_request", "not_found", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/C2A628384B08'",
    tag="beacons",
)
def beacon(mac: str) -> Response:
    """Answer where one beacon hangs."""
    wanted = parsing.mac({"mac": mac}, "mac")
    found = get_context().directory_snapshot().beacons.get(wanted)
    if found is None:
        raise Problem("not_found", f"beacon {wanted} is not in the directory")
    return answers.as_json(found._asdict())


@declare(
    "PUT",
    "/beacons/<mac>",
    summary="Register or move a beacon",
    description="Detections from now on get this place; the other services see it after 2 s at the"
    " latest. With `correct_past=1` every stored detection of this beacon gets it as well, in"
    " histories, in `/staff` and as `corrected` lines in `/changes`; that takes a few seconds, one"
    " at a time, and only 200 says that it is complete: on any other answer send it again.",
    parameters=[
        _MAC_IN_PATH,
        openapi.query("correct_past", openapi.text("`1`: also past detections", enum=["0", "1"])),
    ],
    body=Body(
        "Where it hangs; `x` and `y` both or neither.",
        {
            "application/json": {
                "schema": openapi.record(_PLACE, optional=["x", "y"])
                | {"additionalProperties": True},
                "example": {"level": "4", "location": "Room 4-01", "x": 12, "y": 5},
            }
        },
    ),
    answers=openapi.gives(
        _BEACON | {"corrected": openapi.whole("Past detections that had another place")}
    ),
    errors=[
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
    correct_past = parsing.flag(request.args, "correct_past")
    body = bodies.json_object()
    found, errors = files.beacon(body | {"mac": mac})
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


def _put(beacon: Beacon, *, correct_past: bool) -> Response:
    context = get_context()
    context.recorder.check_reachable()
    context.beacons.put([beacon])
    context.directory.reload()
    corrected = context.corrections.correct(beacon) if correct_past else 0
    return answers.as_json(beacon._asdict() | {"corrected": corrected})


@declare(
    "DELETE",
    "/beacons/<mac>",
    summary="Take a beacon out of the directory",
    description="Detections from now on have the level and location `unknown`; past ones keep"
    " theirs. A beacon that is not there is success too: the answer to a repeat is the same.",
    parameters=[_MAC_IN_PATH],
    answers={204: Body("It is not in the directory.", {})},
    errors=["invalid_request", "store_unavailable"],
    curl="curl -X DELETE 'HOST/api/v1/beacons/C2A628384B08'",
    tag="beacons",
)
def delete_beacon(mac: str) -> Response:
    """Take one beacon out of the directory."""
    wanted = parsing.mac({"mac": mac}, "mac")
    context = get_context()
    context.recorder.check_reachable()
    context.beacons.remove(wanted)
    context.directory.reload()
    return Response(status=204)


@declare(
    "POST",
    "/beacons/import",
    summary="Load a file of beacons",
    description=f"CSV in UTF-8 with the columns `{','.join(files.COLUMNS)}` (the last two may be"
    f" empty) and at most {files.MAX_LINES} beacons, like `mongo/directory.csv`. All of it or, when"
    " any line is bad, nothing. Beacons that are not in the file stay.",
    parameters=[
        openapi.query("dry_run", openapi.text("`1`: change nothing, tell what", enum=["0", "1"]))
    ],
    body=Body(
        "The file.",
        {
            "text/csv": {
                "schema": {"type": "string"},
                "example": "mac,level,location,x,y\nC2A628384B08,4,Room 4-01,12,5\n",
            }
        },
    ),
    answers=openapi.gives(
        _COUNTS
        | {
            "dry_run": openapi.yes_no("Whether nothing was changed"),
            "errors": openapi.several(
                openapi.record(
                    {
                        "line": openapi.whole("Line of the file, the header is 1"),
                        "field": openapi.text("Column"),
                        "reason": openapi.text("What is wrong"),
                    }
                ),
                "Bad lines, in a dry run only",
            ),
        }
    ),
    errors=["invalid_request", "too_large", "unsupported_media_type", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/import?dry_run=1' -H 'Content-Type: text/csv'"
    " --data-binary @mongo/directory.csv",
    tag="beacons",
)
def import_beacons() -> Response:
    """Put all beacons of a file into the directory."""
    dry_run = parsing.flag(request.args, "dry_run")
    with answers.one_at_a_time:
        found, wrong = files.read(bodies.text("text/csv"))
        errors = [one._asdict() for one in wrong]
        if errors and not dry_run:
            detail = f"{len(errors)} lines are bad, nothing was changed"
            raise Problem("invalid_request", detail, errors)
        context = get_context()
        context.recorder.check_reachable()
        done = context.beacons.put(found, dry_run=dry_run)
    if not dry_run:
        context.directory.reload()
    return answers.as_json(done._asdict() | {"dry_run": dry_run, "errors": errors})
