"""Who did what: /audit, for admins."""

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Annotated, Any

from flask import Response, request
from msgspec import Meta

from common import spreadsheet
from ingest.api.histories import downloads
from ingest.api.http import responses
from ingest.api.http.query import Choice, Integer, Text
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody, Seconds, Time
from ingest.assembly import get_context
from ingest.errors import ParameterError
from ingest.storage.access.audit import Entry

PAGE = 500
_LIMIT = Integer("limit", "Entries in one answer", 1, PAGE, 100)
_BEFORE = Text("before", "`next` of the answer before", pattern="[0-9a-f]{24}")
_FORMAT = Choice("format", "`csv`: all of it as a file, without a `limit`", ["json", "csv"])


class AuditEntry(ResponseBody):
    """Something that was done, or tried."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{24}$")]
    at: Seconds
    time: Time
    who: Annotated[str, Meta(description="Who did it: a person, or the label of a token")]
    kind: Annotated[
        str,
        Meta(
            description="By what they are known; `command`: on the machine itself",
            extra_json_schema={"enum": ["anybody", "command", "person", "token"]},
        ),
    ]
    what: Annotated[str, Meta(description="What was done")]
    of: Annotated[str, Meta(description="To whom or what; empty where that is who did it")]
    details: Annotated[dict[str, str | float | bool | None], Meta(description="How")]
    address: Annotated[str, Meta(description="Where the request came from")]


class AuditPage(ResponseBody):
    """Entries, newest first."""

    next: Annotated[str | None, Meta(description="Send it as `before`; null: there are no more")]
    data: list[AuditEntry]


@declare(
    "GET",
    "/audit",
    summary="Who did what, newest first",
    description="Log-ins, also refused ones, log-outs, and what was done to accounts, tokens and"
    " beacons. Nobody can change or remove an entry through Waymark.",
    parameters=[_LIMIT, _BEFORE, _FORMAT],
    answers={200: Body("Done.", {JSON: Content(AuditPage), "text/csv": Content(str)})},
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/audit?limit=20' -H \"Authorization: Bearer $TOKEN\"",
    tag="access",
)
def audit() -> Response:
    """Answer what was done."""
    limit, before = _LIMIT.read(request.args), request.args.get("before", "")
    if before and not re.fullmatch(_BEFORE.pattern, before):
        raise ParameterError("before", "must be the id of an entry")
    stored = get_context().access.audit
    if _FORMAT.read(request.args) == "csv":
        disposition = {"Content-Disposition": 'attachment; filename="audit.csv"'}
        return Response(downloads.begun(_csv(before)), headers=disposition, mimetype="text/csv")
    # One more tells whether there are more: no "next" leads to nothing.
    entries = [_entry(*row) for row in stored.page(limit + 1, before)]
    page = entries[:limit]
    return responses.as_json(AuditPage(page[-1].id if len(entries) > limit else None, page))


def _csv(before: str) -> Iterator[bytes]:
    stored = get_context().access.audit
    names = AuditEntry.__struct_fields__
    page = stored.page(PAGE, before)
    yield f"{','.join(names)}\r\n".encode()
    while page:
        text = io.StringIO(newline="")
        rows = (_entry(*row) for row in page)
        csv.writer(text).writerows([_cell(getattr(row, name)) for name in names] for row in rows)
        yield text.getvalue().encode()
        page = stored.page(PAGE, page[-1][0]) if len(page) == PAGE else []


def _cell(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
    return spreadsheet.cell(text)


def _entry(entry_id: str, entry: Entry) -> AuditEntry:
    return AuditEntry(
        entry_id,
        entry.at,
        responses.iso(entry.at),
        entry.who,
        entry.kind,
        entry.what,
        entry.of,
        dict(entry.details),
        entry.address,
    )
