"""Loading a file of beacons into the directory: /beacons/import."""

from typing import Annotated

from flask import Response, request
from msgspec import Meta

from common.beacon_file import COLUMNS, MAX_BEACONS, BeaconFile
from common.csv_file import MAX_ERRORS
from common.csv_file import BadLine as FileError
from common.directory import IdsRefused, Moved
from ingest.api.access import audited
from ingest.api.directory import beacon_input
from ingest.api.directory.registered_beacons import RegisteredBeacon
from ingest.api.http import bodies, imports, responses
from ingest.api.http.imports import DRY_RUN, BadLineCount, BadLines, Columns, File, IsDryRun
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody
from ingest.assembly import get_context

MAX_MOVES = 100
_EXAMPLE = f"{','.join(COLUMNS)}\nC2A628384B08,4,Room 4-01,12,5\n"


class Move(ResponseBody):
    """A beacon that gets another place, or other aliases."""

    before: RegisteredBeacon
    after: RegisteredBeacon


class BeaconImport(ResponseBody):
    """What a file changed, in beacons, or would change."""

    added: Annotated[int, Meta(description="Beacons that were not in the directory")]
    changed: Annotated[int, Meta(description="Beacons that had another place, or other aliases")]
    unchanged: Annotated[int, Meta(description="Beacons that stood there like this")]
    others: Annotated[int, Meta(description="Beacons that are not in the file; they stay")]
    moves: Annotated[list[Move], Meta(description=f"Those that were changed, {MAX_MOVES} at most")]
    dry_run: IsDryRun
    warnings: Annotated[
        list[str], Meta(description=f"Positions that look wrong, by MAC, {MAX_ERRORS} at most")
    ]
    columns: Columns
    errors: BadLines
    bad_lines: BadLineCount


@declare(
    "POST",
    "/beacons/import",
    summary="Load a file of beacons",
    description=f"CSV in UTF-8 with the columns `{','.join(COLUMNS)}` (the last three may be empty"
    " or missing; `aliases` are ids with blanks between, and without that column they stay), in any"
    " order, under the usual other names (`floor`, `room`, `MAC Address`), with a"
    " comma, semicolon or tab between; other columns are left out. At most"
    f" {MAX_BEACONS} beacons, like `mongo/directory.csv`. All of it or, when"
    " any line is bad, nothing. Beacons that are not in the file stay.",
    parameters=[DRY_RUN],
    body=Body("The file.", {"text/csv": Content(File, example=_EXAMPLE)}),
    answers=declarations.gives(BeaconImport),
    problems=["invalid_request", "too_large", "unsupported_media_type", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/import?dry_run=1' -H 'Content-Type: text/csv'"
    " --data-binary @mongo/directory.csv",
    tag="beacons",
)
def import_beacons() -> Response:
    """Put all beacons of a file into the directory."""
    dry_run = DRY_RUN.read(request.args)
    with responses.one_at_a_time:
        file = beacon_input.parse_file(bodies.text("text/csv"))
        if file.bad_lines and not dry_run:
            raise imports.refusal(file.errors, file.bad_lines)
        context = get_context()
        context.database.availability.check_reachable()
        directory = context.directory_snapshot().beacons
        doubts = beacon_input.doubts_of(file.beacons, directory)
        warnings = [f"{mac}: {doubt}" for mac, doubt in doubts.items()][:MAX_ERRORS]
        try:
            done = context.directory.beacons.put(
                file.beacons, keeps_aliases=file.keeps_aliases, dry_run=dry_run
            )
        except IdsRefused as error:
            raise imports.refusal(*_with_refusals(file, error)) from None
    if not dry_run:
        context.directory.cache.reload()
        context.directory.telemetry.adopt(done.beacons)
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
            imports.bad_lines(file.errors),
            file.bad_lines,
        )
    )


def _with_refusals(file: BeaconFile, error: IdsRefused) -> tuple[list[FileError], int]:
    """Return the bad lines, with those of beacons whose ids others have, and how many they are."""
    refused = [(file.lines[refusal.mac], refusal) for refusal in error.refusals]
    errors = [FileError(line, refusal.field, refusal.reason) for line, refusal in refused]
    bad_lines = file.bad_lines + len({line for line, _ in refused})
    return (file.errors + errors)[:MAX_ERRORS], min(bad_lines, MAX_ERRORS)


def _move(moved: Moved) -> Move:
    return Move(RegisteredBeacon(*moved.before), RegisteredBeacon(*moved.after))
