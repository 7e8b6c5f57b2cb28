"""What every import of a CSV file takes, and tells of its lines."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from common import csv_file
from common.csv_file import MAX_ERRORS
from ingest.api.http.problem_details import FaultyField
from ingest.api.http.problems import Problem
from ingest.api.http.query import Flag
from ingest.api.openapi.schema_fields import ResponseBody

DRY_RUN = Flag("dry_run", "`1`: change nothing, answer what would change")
# Generators make of it what a program opens and sends, not a text.
File = Annotated[str, Meta(extra_json_schema={"format": "binary"})]


class BadLine(ResponseBody):
    """What is wrong with a line of a file."""

    line: Annotated[int, Meta(description="Line of the file, the header is 1")]
    field: Annotated[str, Meta(description="Column")]
    reason: Annotated[str, Meta(description="What is wrong")]


IsDryRun = Annotated[bool, Meta(description="Whether nothing was changed")]
Columns = Annotated[
    dict[str, str], Meta(description="Which column of the file each field was read from")
]
BadLines = Annotated[
    list[BadLine], Meta(description=f"Bad lines, in a dry run only, {MAX_ERRORS} errors at most")
]
BadLineCount = Annotated[
    int, Meta(description=f"How many lines are bad, in a dry run, {MAX_ERRORS} at most", ge=0)
]


def bad_lines(errors: Sequence[csv_file.BadLine]) -> list[BadLine]:
    """Return what is wrong with lines as it is answered: not what stands there."""
    return [BadLine(error.line, error.field, error.reason) for error in errors]


def refusal(errors: Sequence[csv_file.BadLine], count: int) -> Problem:
    """Return the answer to a file with so many bad lines."""
    more = " or more" * (count == MAX_ERRORS)
    faulty = [FaultyField(error.field, error.reason, error.line) for error in errors]
    return Problem("invalid_request", f"{count} lines{more} are bad, nothing was changed", faulty)
