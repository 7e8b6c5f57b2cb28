"""Where somebody was: /staff/<staff_id>/detections, page by page or as a download."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from ingest.api import openapi
from ingest.api import responses as answers
from ingest.api.openapi import declare
from ingest.api.problems import Problem
from ingest.context import Context, get_context
from ingest.errors import ParameterError
from ingest.rules import parameters as parsing
from ingest.rules.parameters import TimeRange
from ingest.storage.detections import Page, Position
from ingest.storage.directory import Snapshot
from ingest.storage.documents import Detection

DEFAULT_LIMIT = 100
MAX_LIMIT = 3000
SMALL_LIMIT = 1000
MAX_DOWNLOAD = 50_000
_CURSOR = re.compile(r"([0-9]{1,12})-([0-9a-f]{24})")
_COLUMNS = ["id", "timestamp", "time", "level", "location", "mac", "rssi", "x", "y"]

Row = dict[str, Any]

_ROW = openapi.record(
    {
        "id": openapi.text("The same as in `/changes`", pattern="^[0-9a-f]{24}$"),
        "timestamp": openapi.SECONDS,
        "time": openapi.TIME,
        "level": openapi.LEVEL,
        "location": openapi.LOCATION,
        "mac": openapi.MAC,
        "rssi": openapi.RSSI,
        "x": openapi.METRES,
        "y": openapi.METRES,
    },
    optional=["x", "y"],
)
_ANSWERS = openapi.gives(
    {
        "data": openapi.several(_ROW),
        "next": openapi.or_null(openapi.text("`cursor` of the next page")),
        "truncated": openapi.yes_no("Whether there is a next page"),
    },
    cached=True,
)
_ANSWERS[200] = openapi.Body(
    "The page.",
    {
        **_ANSWERS[200].content,
        "text/csv": {"schema": {"type": "string"}},
        "application/geo+json": {
            "schema": {
                "type": "object",
                "required": ["type", "features"],
                "properties": {"type": {"const": "FeatureCollection"}},
            }
        },
    },
    {
        **_ANSWERS[200].headers,
        "Link": "The next page, `rel=next`",
        "X-Truncated": "`true` when there is one",
    },
)


@declare(
    "GET",
    "/staff/<staff_id>/detections",
    summary="Where somebody was",
    description="Newest first, each detection once, also while others come in. Follow `next` to"
    " read on. `csv` and `geojson` are downloads: without `limit` of the whole range (at most"
    f" {MAX_DOWNLOAD} detections; `X-Truncated` tells), with it of one page, whose next is in the"
    " `Link` header. In GeoJSON the coordinates are metres on the plan of the level, not degrees.",
    parameters=[
        openapi.in_path("staff_id", openapi.text("Staff id", example="0")),
        openapi.query(
            "from", openapi.text("Not before: unix seconds, unix milliseconds or ISO 8601")
        ),
        openapi.query("to", openapi.text("Not after, in the same forms; both are inclusive")),
        openapi.query(
            "limit",
            openapi.whole("How many at most", minimum=1, maximum=MAX_LIMIT, default=DEFAULT_LIMIT),
        ),
        openapi.query("cursor", openapi.text("`next` of the page before")),
        openapi.query(
            "format", openapi.text("How to answer", enum=["json", "csv", "geojson"], default="json")
        ),
        openapi.IF_NONE_MATCH,
    ],
    answers=_ANSWERS,
    errors=["invalid_request", "not_found", "store_unavailable"],
    curl="curl 'HOST/api/v1/staff/0/detections?from=2026-01-01T00:00:00Z&limit=10'",
    tag="people",
)
def staff_detections(staff_id: str) -> Response:
    """Answer one page of somebody's detections."""
    given = {name: value for name, value in request.args.items() if value}
    wanted = parsing.between({"staff_id": staff_id} | given)
    limit = parsing.integer({"limit": DEFAULT_LIMIT} | given, "limit", 1, MAX_LIMIT)
    after = _position(given.get("cursor"))
    kind = given.get("format", "json")
    if kind not in ("json", *_DOWNLOADS):
        raise ParameterError("format", "must be json, csv or geojson")
    context = get_context()
    context.recorder.check_answers()
    directory = context.directory.current()
    version = context.latest.versions([wanted.staff_id]).get(wanted.staff_id)
    etag = answers.tag(sorted(given.items()), version and version.number, directory.tag)
    if version and (held := answers.held(etag)):
        return held
    whole = kind != "json" and "limit" not in given
    if whole:
        limit = SMALL_LIMIT
    with answers.one_at_a_time if limit > SMALL_LIMIT else nullcontext():
        page = context.detections.page(wanted, after, limit)
        if not page.detections and not context.detections.has(wanted.staff_id):
            raise Problem("not_found", f"nothing was ever heard of staff member {staff_id}")
        cursor = page.next and f"{page.next.timestamp}-{page.next.id}"
        if kind == "json":
            rows = [_row(one, directory) for one in page.detections]
            body = {"data": rows, "next": cursor, "truncated": cursor is not None}
            response = answers.as_json(body)
        else:
            pages = _pages(context, wanted, page, whole=whole)
            response = _download(kind, ([_row(d, directory) for d in one] for one in pages))
    if whole:
        cursor = None
        truncated = page.next is not None and context.detections.longer_than(wanted, MAX_DOWNLOAD)
    else:
        truncated = cursor is not None
    response.headers["X-Truncated"] = "true" if truncated else "false"
    if cursor:
        following = urlencode(given | {"cursor": cursor})
        response.headers["Link"] = f'<{request.path}?{following}>; rel="next"'
    return answers.tagged(response, etag) if version else response


def _pages(
    context: Context, wanted: TimeRange, page: Page, *, whole: bool
) -> Iterator[list[Detection]]:
    """Yield the detections of a page and, for a whole history, of those after it."""
    count = len(page.detections)
    yield page.detections
    while whole and page.next and count < MAX_DOWNLOAD:
        page = context.detections.page(wanted, page.next, SMALL_LIMIT)
        count += len(page.detections)
        yield page.detections


def _position(cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    found = _CURSOR.fullmatch(cursor)
    if not found:
        raise ParameterError("cursor", "is not one that we gave")
    return Position(int(found[1]), found[2])


def _row(detection: Detection, directory: Snapshot) -> Row:
    row: Row = {
        "id": detection.id,
        "timestamp": detection.timestamp,
        "time": answers.iso(detection.timestamp),
        "level": detection.level,
        "location": detection.location,
        "mac": detection.mac,
        "rssi": detection.rssi,
    }
    beacon = directory.beacons.get(detection.mac)
    if beacon and beacon.x is not None:
        row |= {"x": beacon.x, "y": beacon.y}
    return row


def _download(kind: str, pages: Iterable[list[Row]]) -> Response:
    """Answer a file, made while it is sent: a long one costs no more memory than a page."""
    write, mimetype = _DOWNLOADS[kind]
    name = f'attachment; filename="detections.{kind}"'
    return Response(write(pages), headers={"Content-Disposition": name}, mimetype=mimetype)


def _csv(pages: Iterable[list[Row]]) -> Iterator[str]:
    yield ",".join(_COLUMNS) + "\r\n"
    for rows in pages:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, _COLUMNS)
        writer.writerows({name: _safe(value) for name, value in row.items()} for row in rows)
        yield text.getvalue()


def _safe(value: Any) -> Any:
    """Keep a spreadsheet from taking a name for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@") else value


def _geojson(pages: Iterable[list[Row]]) -> Iterator[str]:
    yield '{"type":"FeatureCollection","features":['
    comma = ""
    for rows in pages:
        for row in rows:
            yield comma + json.dumps(_feature(row))
            comma = ",\n"
    yield "]}\n"


def _feature(row: Row) -> Row:
    at = {"type": "Point", "coordinates": [row["x"], row["y"]]} if "x" in row else None
    properties = {name: value for name, value in row.items() if name not in ("x", "y")}
    return {"type": "Feature", "geometry": at, "properties": properties}


_DOWNLOADS = {"csv": (_csv, "text/csv"), "geojson": (_geojson, "application/geo+json")}
