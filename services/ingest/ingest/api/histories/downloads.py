"""A history as a file that says whose it is: CSV or GeoJSON, made while it is sent."""

import csv
import io
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import chain, islice
from typing import Annotated, Any, NamedTuple

import msgspec
from flask import Response
from msgspec import UNSET, Meta, UnsetType

from common import spreadsheet
from ingest.api.histories.local_times import in_utc_and_zone
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
from ingest.rules.positions import Position
from ingest.rules.request_parameters import TimeRange
from ingest.storage.detections.documents import Detection
from ingest.web import long_answers
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
    name: Annotated[str | UnsetType, Meta(description="With `names`: the person's")] = UNSET
    team: Annotated[str | UnsetType, Meta(description="With `names`: the person's")] = UNSET


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


Pages = Iterable[list[Detection]]
COLUMNS = (
    *("staff_id", "time", "local_time", "level", "location", "mac", "rssi"),
    *("timestamp", "id", "x", "y"),
)
NAMES = ("name", "team")
# Whether a spreadsheet needs to be told that this is UTF-8, so many lines say.
FIRST_LINES = 500
# A line has some 300 bytes.
LINES_AT_ONCE = 100
# Of so many beacons at a place the text that their detections share is remembered: 400 bytes each.
SHARED_TEXTS = 1024


class Subject(NamedTuple):
    """Whose history a file has, of what time, where beacons hang, and in which zone it is read."""

    range: TimeRange
    zone: tzinfo
    position_of: Callable[[str], Position | None]
    names: tuple[str, ...] = ()  # the person's name and team, where they were asked for

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
    return attachment(begun(write(pages, subject)), subject.file_name(kind), mimetype)


def attachment(chunks: Iterable[bytes], name: str, mimetype: str) -> Response:
    """Return a file to keep."""
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(chunks, headers=disposition, mimetype=mimetype)


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
    return chain(begun, chunks)


def of_any_length(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what a file is made of; a long one takes a place. Raises Busy: there is none."""
    held, size = [], 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size > PIECE_BYTES:
            yield from long_answers.in_turn(chain(held, chunks))
            return
    yield from held


def _csv(pages: Pages, subject: Subject) -> Iterator[bytes]:
    @lru_cache(SHARED_TEXTS)
    def shared(mac: str, level: str, location: str) -> str:
        staff_id, at = str(subject.range.staff_id), subject.position_of(mac) or ("", "")
        texts = (staff_id, level, location, mac, *subject.names)
        staff_id, level, location, mac, *names = map(_escaped, map(spreadsheet.cell, texts))
        cells = (staff_id, "%s", "%s", level, location, mac, "%s", "%s", "%s", *at, *names)
        line = io.StringIO(newline="")
        csv.writer(line).writerow(cells)
        return line.getvalue()

    lines = (
        shared(mac, level, location)
        % (utc, local, "" if rssi is None else rssi, timestamp, detection_id)
        for (detection_id, _, mac, rssi, timestamp, _, _, level, location), (utc, local) in _timed(
            pages, subject.zone
        )
    )
    head = f"{','.join(COLUMNS + NAMES[: len(subject.names)])}\r\n"
    yield spreadsheet.marked(head + "".join(islice(lines, FIRST_LINES))).encode()
    yield from _in_pieces(lines)


def _geojson(pages: Pages, subject: Subject) -> Iterator[bytes]:
    @lru_cache(SHARED_TEXTS)
    def shared(mac: str, level: str, location: str) -> str:
        at = subject.position_of(mac)
        texts = (level, location, mac, subject.range.staff_id, *subject.names)
        level, location, mac, staff_id, *names = map(_escaped, texts)
        number: Any = msgspec.Raw(b"%s")
        properties = Exported(
            "%s", number, "%s", level, location, mac, number, staff_id, "%s", *names
        )
        feature = Feature(Point([*at]) if at else None, properties)
        return ",\n" + msgspec.json.encode(feature).decode()

    lines = (
        shared(mac, level, location)
        % (detection_id, timestamp, utc, "null" if rssi is None else rssi, local)
        for (detection_id, _, mac, rssi, timestamp, _, _, level, location), (utc, local) in _timed(
            pages, subject.zone
        )
    )
    yield b'{"type":"FeatureCollection","features":['
    yield next(lines, "").removeprefix(",\n").encode()
    yield from _in_pieces(lines)
    yield b"]}\n"


def _timed(pages: Pages, zone: tzinfo) -> Iterator[tuple[Detection, tuple[str, str]]]:
    """Yield detections, each with its time in UTC and in a zone."""
    for detections in pages:
        times = in_utc_and_zone([detection.timestamp for detection in detections], zone)
        yield from zip(detections, times, strict=True)


def _escaped(value: Any) -> Any:
    """Return a value as a part of a text that the operator `%` fills."""
    return value.replace("%", "%%") if isinstance(value, str) else value


def _in_pieces(lines: Iterator[str]) -> Iterator[bytes]:
    while piece := "".join(islice(lines, LINES_AT_ONCE)):
        yield piece.encode()


KINDS: dict[str, tuple[Callable[[Pages, Subject], Iterator[bytes]], str]] = {
    "csv": (_csv, "text/csv"),
    "geojson": (_geojson, "application/geo+json"),
}
