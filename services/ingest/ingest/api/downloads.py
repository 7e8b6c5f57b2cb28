"""A history as a file: CSV or GeoJSON, made while it is sent."""

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

import msgspec
from flask import Response
from msgspec import UNSET, Meta, UnsetType

from ingest.api.schema_fields import (
    DetectionId,
    Level,
    Location,
    Mac,
    Metres,
    ResponseBody,
    Rssi,
    Seconds,
    Time,
)
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


class Point(ResponseBody, tag_field="type"):
    """A position in metres on the plan of the level."""

    coordinates: Annotated[list[float], Meta(min_length=2, max_length=2)]


class Feature(ResponseBody, tag_field="type"):
    """One detection in GeoJSON."""

    geometry: Point | None
    properties: Properties


class FeatureCollection(ResponseBody, tag_field="type"):
    """A history in GeoJSON."""

    features: list[Feature]


Pages = Iterable[list[Row]]
# What begins a formula, in full width too, or a space that a spreadsheet may drop before one.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", " ")


def download(kind: str, pages: Pages) -> Response:
    """Answer a file; a long one costs no more memory than a page and a piece. StoreUnavailable."""
    write, mimetype = KINDS[kind]
    name = f'attachment; filename="detections.{kind}"'
    return Response(begun(write(pages)), headers={"Content-Disposition": name}, mimetype=mimetype)


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


def _csv(pages: Pages) -> Iterator[bytes]:
    yield f"{','.join(Row.__struct_fields__)}\r\n".encode()
    for rows in pages:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(map(_cells, rows))
        yield text.getvalue().encode()


def _cells(row: Row) -> list[Any]:
    return [
        cell(value) if isinstance(value, str) else "" if value is UNSET else value
        for value in msgspec.structs.astuple(row)
    ]


def cell(value: str) -> str:
    """Return a text for a spreadsheet, which must not take a name for a formula."""
    risky = value.startswith(_FORMULA) or not value[:1].isprintable()  # a tab, a line's end
    return f"'{value}" if risky else value


def _geojson(pages: Pages) -> Iterator[bytes]:
    yield b'{"type":"FeatureCollection","features":['
    comma = b""
    for rows in pages:
        for row in rows:
            yield comma + msgspec.json.encode(_feature(row))
            comma = b",\n"
    yield b"]}\n"


def _feature(row: Row) -> Feature:
    *properties, x, y = msgspec.structs.astuple(row)
    at = None if x is UNSET else Point([x, y])
    return Feature(at, Properties(*properties))


KINDS: dict[str, tuple[Callable[[Pages], Iterator[bytes]], str]] = {
    "csv": (_csv, "text/csv"),
    "geojson": (_geojson, "application/geo+json"),
}
