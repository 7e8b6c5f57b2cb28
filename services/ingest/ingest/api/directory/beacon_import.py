"""Loading a file of beacons into the directory: /beacons/import."""

from typing import Annotated

from flask import Response, request
from msgspec import Meta

from common.beacon_file import COLUMNS, MAX_BEACONS, MAX_ERRORS
from common.directory import Moved
from ingest.api.access import audited
from ingest.api.directory import beacon_input
from ingest.api.directory.beacon_input import BadLine
from ingest.api.directory.registered_beacons import RegisteredBeacon
from ingest.api.http import bodies, responses
from ingest.api.http.problem_details import FaultyField
from ingest.api.http.problems import Problem
from ingest.api.http.query import Flag
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody
from ingest.assembly import get_context

MAX_MOVES = 100
_DRY_RUN = Flag("dry_run", "`1`: change nothing, answer what would change")
_EXAMPLE = f"{','.join(COLUMNS)}\nC2A628384B08,4,Room 4-01,12,5\n"


# Generators make of it what a program opens and sends, not a text.
_File = Annotated[str, Meta(extra_json_schema={"format": "binary"})]


class Move(ResponseBody):
    """A beacon that gets another place."""

    before: RegisteredBeacon
    after: RegisteredBeacon


class BeaconImport(ResponseBody):
    """What a file changed, in beacons, or would change."""

    added: Annotated[int, Meta(description="Beacons that were not in the directory")]
    changed: Annotated[int, Meta(description="Beacons that had another place")]
    unchanged: Annotated[int, Meta(description="Beacons that stood there like this")]
    others: Annotated[int, Meta(description="Beacons that are not in the file; they stay")]
    moves: Annotated[
        list[Move], Meta(description=f"Those that had another place, {MAX_MOVES} at most")
    ]
    dry_run: Annotated[bool, Meta(description="Whether nothing was changed")]
    warnings: Annotated[
        list[str], Meta(description=f"Positions that look wrong, by MAC, {MAX_ERRORS} at most")
    ]
    columns: Annotated[
        dict[str, str], Meta(description="Which column of the file each field was read from")
    ]
    errors: Annotated[
        list[BadLine],
        Meta(description=f"Bad lines, in a dry run only, {MAX_ERRORS} errors at most"),
    ]
    bad_lines: Annotated[
        int, Meta(description=f"How many lines are bad, in a dry run, {MAX_ERRORS} at most", ge=0)
    ]


@declare(
    "POST",
    "/beacons/import",
    summary="Load a file of beacons",
    description=f"CSV in UTF-8 with the columns `{','.join(COLUMNS)}` (the last two may be empty or"
    " missing), in any order, under the usual other names (`floor`, `room`, `MAC Address`), with a"
    " comma, semicolon or tab between; other columns are left out. At most"
    f" {MAX_BEACONS} beacons, like `mongo/directory.csv`. All of it or, when"
    " any line is bad, nothing. Beacons that are not in the file stay.",
    parameters=[_DRY_RUN],
    body=Body("The file.", {"text/csv": Content(_File, example=_EXAMPLE)}),
    answers=declarations.gives(BeaconImport),
    problems=["invalid_request", "too_large", "unsupported_media_type", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/import?dry_run=1' -H 'Content-Type: text/csv'"
    " --data-binary @mongo/directory.csv",
    tag="beacons",
)
def import_beacons() -> Response:
    """Put all beacons of a file into the directory."""
    dry_run = _DRY_RUN.read(request.args)
    with responses.one_at_a_time:
        file = beacon_input.parse_file(bodies.text("text/csv"))
        if file.bad_lines and not dry_run:
            more = " or more" * (file.bad_lines == MAX_ERRORS)
            detail = f"{file.bad_lines} lines{more} are bad, nothing was changed"
            faulty = [FaultyField(error.field, error.reason, error.line) for error in file.errors]
            raise Problem("invalid_request", detail, faulty)
        context = get_context()
        context.database.availability.check_reachable()
        directory = context.directory_snapshot().beacons.values()
        doubts = beacon_input.doubts_of(file.beacons, directory)
        warnings = [f"{mac}: {doubt}" for mac, doubt in doubts.items()][:MAX_ERRORS]
        done = context.directory.beacons.put(file.beacons, dry_run=dry_run)
    if not dry_run:
        context.directory.cache.reload()
        audited.note("beacons imported", added=done.added, changed=len(done.moves))
    return responses.as_json(
        BeaconImport(
            done.added,
            len(done.moves),
            done.unchanged,
            done.others,
            [_move(move) for move in done.moves[:MAX_MOVES]],
            dry_run,
            warnings,
            file.columns,
            [BadLine(error.line, error.field, error.reason) for error in file.errors],
            file.bad_lines,
        )
    )


def _move(moved: Moved) -> Move:
    return Move(RegisteredBeacon(*moved.before), RegisteredBeacon(*moved.after))
