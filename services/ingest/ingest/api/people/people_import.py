"""Loading a file of people: /people/import."""

from typing import Annotated

from flask import Response, request
from msgspec import Meta

from ingest.api.access import audited
from ingest.api.http import bodies, imports, responses
from ingest.api.http.imports import DRY_RUN, BadLineCount, BadLines, Columns, File, IsDryRun
from ingest.api.http.problems import Problem
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody
from ingest.api.people import person_input
from ingest.api.people.people import RegisteredPerson
from ingest.api.people.person_input import COLUMNS, MAX_FILE_PEOPLE
from ingest.assembly import get_context
from ingest.storage.people.people import MAX_CHANGES, MAX_PEOPLE, TooManyPeople

_EXAMPLE = f"{','.join(COLUMNS)}\n7,Jane Tan,Cleaning,,true\n"


class PersonChange(ResponseBody):
    """A person of whom something changes."""

    before: RegisteredPerson
    after: RegisteredPerson


class PeopleImport(ResponseBody):
    """What a file changed, in people, or would change."""

    added: Annotated[int, Meta(description="People who had no name")]
    changed: Annotated[int, Meta(description="People of whom something was another")]
    unchanged: Annotated[int, Meta(description="People who stood there like this")]
    others: Annotated[int, Meta(description="People who are not in the file; they stay")]
    changes: Annotated[
        list[PersonChange], Meta(description=f"Those who are changed, {MAX_CHANGES} at most")
    ]
    dry_run: IsDryRun
    columns: Columns
    errors: BadLines
    bad_lines: BadLineCount


@declare(
    "POST",
    "/people/import",
    summary="Load a file of people",
    description=f"CSV in UTF-8 with the columns `{','.join(COLUMNS)}` (the last three may be empty"
    " or missing), in any order, under the usual other names (`Employee ID`, `Department`), with a"
    " comma, semicolon or tab between; other columns are left out. What has no column stays as it"
    f" is. At most {MAX_FILE_PEOPLE} people a file, {MAX_PEOPLE} in all. All of it or, when any"
    " line is bad, nothing. People who are not in the file stay.",
    parameters=[DRY_RUN],
    body=Body("The file.", {"text/csv": Content(File, example=_EXAMPLE)}),
    answers=declarations.gives(PeopleImport),
    problems=[
        "invalid_request",
        "conflict",
        "too_large",
        "unsupported_media_type",
        "store_unavailable",
    ],
    curl="curl 'HOST/api/v1/people/import?dry_run=1' -H 'Content-Type: text/csv'"
    " --data-binary @people.csv",
    tag="people",
)
def import_people() -> Response:
    """Give all people of a file their names."""
    dry_run = DRY_RUN.read(request.args)
    with responses.one_at_a_time:
        file = person_input.parse_file(bodies.text("text/csv"))
    if file.bad_lines and not dry_run:
        raise imports.refusal(file.errors, file.bad_lines)
    context = get_context()
    context.database.availability.check_reachable()
    try:
        done = context.people.entries.put_all(file.people, file.columns, dry_run=dry_run)
    except TooManyPeople as error:
        raise Problem("conflict", f"{error}; nothing was changed") from None
    if not dry_run:
        context.people.names.reload()
        audited.note("people imported", added=done.added, changed=done.changed)
    return responses.as_json(
        PeopleImport(
            done.added,
            done.changed,
            done.unchanged,
            done.others,
            [
                PersonChange(RegisteredPerson(*change.before), RegisteredPerson(*change.after))
                for change in done.first
            ],
            dry_run,
            file.columns,
            imports.bad_lines(file.errors),
            file.bad_lines,
        )
    )
