"""A history as a file that says whose it is: CSV or GeoJSON, made while it is sent."""

import csv
import io
import itertools
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec
from flask import Response
from msgspec import UNSET, Meta, UnsetType

from common import spreadsheet
from ingest.api.openapi.schema_fields import (
    DetectionId,
    Level,
    Location,
    Mac,
    Metres,
    ResponseBody,
    Rssi,
    Seconds,
    StaffId,
    Time,
)
from ingest.errors import ParameterError
from ingest.rules import request_parameters
from ingest.rules.request_parameters import TimeRange
from ingest.web.flask_bridge import PIECE_BYTES


class Properties(ResponseBody):
    """One detection of a history."""

    id: DetectionId
    timestamp: Seconds
    time: Time
    level: Level
    location: Location
    mac: Mac
    rssi: Rssi


class Row(Properties):
    """One detection of a history, with the position of its beacon if the directory has one."""

    x: Metres | UnsetType = UNSET
    y: Metres | UnsetType = UNSET


class Exported(Properties):
    """One detection of a file."""

    staff_id: StaffId
    local_time: Annotated[str, Meta(description="The time in the zone that was asked for")]


class Point(ResponseBody, tag_field="type"):
    """A position in metres on the plan of the level."""

    coordinates: Annotated[list[float], Meta(min_length=2, max_length=2)]


class Feature(ResponseBody, tag_field="type"):
    """One detection in GeoJSON."""

    geometry: Point | None
    properties: Exported


class FeatureCollection(ResponseBody, tag_field="type"):
    """A history in GeoJSON."""

    features: list[Feature]


Pages = Iterable[list[Row]]
COLUMNS = (
    *("staff_id", "time", "local_time", "level", "location", "mac", "rssi"),
    *("timestamp", "id", "x", "y"),
)


class Subject(NamedTuple):
    """Whose history a file has, of what time, and in which zone its reader lives."""

    range: TimeRange
    zone: tzinfo

    def file_name(self, kind: str) -> str:
        """Return a name such as `staff-7_2026-11-21_0900-1000.csv`; of an open range, no times."""
        staff_id, start, end = self.range
        try:
            first, last = (datetime.fromtimestamp(time, self.zone) for time in (start, end))
        except (OverflowError, ValueError):  # beyond what a calendar has
            return f"staff-{staff_id}.{kind}"
        if not start or last.year > _LAST_YEAR:
            return f"staff-{staff_id}.{kind}"
        day = "" if first.date() == last.date() else f"{last:%Y-%m-%d}_"
        return f"staff-{staff_id}_{first:%Y-%m-%d_%H%M}-{day}{last:%H%M}.{kind}"

    def local(self, timestamp: int) -> str:
        """Return a time in the zone, in ISO 8601 with its distance from UTC."""
        return datetime.fromtimestamp(timestamp, self.zone).isoformat()


_LAST_YEAR = 2100  # a later end is none


def zone_of(parameters: Mapping[str, str], name: str) -> tzinfo:
    """Return the time zone of a parameter, UTC where none is given. Raises ParameterError."""
    zone = request_parameters.zone(parameters, name)
    try:
        return zoneinfo.ZoneInfo(zone) if zone else UTC
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ParameterError(name, f"{zone} is no time zone of the IANA that we know") from None


def download(kind: str, pages: Pages, subject: Subject) -> Response:
    """Answer a file; a long one costs no more memory than a page and a piece.

    Raises StoreUnavailable.
    """
    write, mimetype = KINDS[kind]
    name = f'attachment; filename="{subject.file_name(kind)}"'
    chunks = begun(write(pages, subject))
    return Response(chunks, headers={"Content-Disposition": name}, mimetype=mimetype)


def begun(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Return chunks, those made that the first piece is sent of: what fails there is still a 503.

    What fails later breaks the connection off.
    """
    size = 0
    begun = []
    for chunk in chunks:
        begun.append(chunk)
        size += len(chunk)
        if size > PIECE_BYTES:
            break
    return itertools.chain(begun, chunks)


def _csv(pages: Pages, subject: Subject) -> Iterator[bytes]:
    head = f"{','.join(COLUMNS)}\r\n"
    for rows in pages:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(map(partial(_cells, subject), rows))
        yield (spreadsheet.marked(head + text.getvalue()) if head else text.getvalue()).encode()
        head = ""
    yield head.encode()


def _cells(subject: Subject, row: Row) -> list[Any]:
    staff_id, local = str(subject.range.staff_id), subject.local(row.timestamp)
    values = (
        *(staff_id, row.time, local, row.level, row.location, row.mac, row.rssi),
        *(row.timestamp, row.id, row.x, row.y),
    )
    return ["" if value is UNSET else spreadsheet.cell(value) for value in values]


def _geojson(pages: Pages, subject: Subject) -> Iterator[bytes]:
    yield b'{"type":"FeatureCollection","features":['
    comma = b""
    for rows in pages:
        for row in rows:
            yield comma + msgspec.json.encode(_feature(subject, row))
            comma = b",\n"
    yield b"]}\n"


def _feature(subject: Subject, row: Row) -> Feature:
    *properties, x, y = msgspec.structs.astuple(row)
    at = None if x is UNSET else Point([x, y])
    staff_id, local = subject.range.staff_id, subject.local(row.timestamp)
    return Feature(at, Exported(*(*properties, staff_id, local)))


KINDS: dict[str, tuple[Callable[[Pages, Subject], Iterator[bytes]], str]] = {
    "csv": (_csv, "text/csv"),
    "geojson": (_geojson, "application/geo+json"),
}
