"""The lines of /changes: one JSON object each."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ingest.api.http.responses import iso
from ingest.api.openapi.schema_fields import (
    DetectionId,
    Level,
    Location,
    Mac,
    ResponseBody,
    Rssi,
    Seconds,
    StaffId,
    Time,
)
from ingest.storage.detections.documents import Detection
from ingest.storage.histories.change_stream import Change as StoredChange
from ingest.storage.histories.change_stream import Changes


class Change(ResponseBody):
    """A detection that was stored, or a stored one whose place was corrected."""

    type: Literal["detection", "corrected"]
    id: DetectionId
    staff_id: StaffId
    timestamp: Seconds
    time: Time
    received_at: Annotated[int, Meta(description="When it came in, in unix seconds", ge=0)]
    mac: Mac
    rssi: Rssi
    level: Level
    location: Location


class Next(ResponseBody):
    """The last line: where the next request goes on."""

    next: Annotated[str, Meta(description="`after` of the next request")]


_TYPES: dict[str, Literal["detection", "corrected"]] = {
    "insert": "detection",
    "update": "corrected",
}
_DETECTION = Detection(
    id="6b01787a3f0c9d2e4a5b6c7d",
    staff_id=0,
    mac="C2A628384B08",
    rssi=-67,
    timestamp=1795258490,
    heard_at=1795258490,
    received_at=1795258491.0,
    level="4",
    location="Lobby B",
)


def as_line(change: StoredChange) -> bytes:
    """Return the line of a change."""
    return msgspec.json.encode(_line(change)) + b"\n"


def as_lines(changes: Changes) -> bytes:
    """Return the lines in their order, and behind them where the next request goes on."""
    return b"".join([*changes.lines, msgspec.json.encode(Next(changes.next)), b"\n"])


def _line(change: StoredChange) -> Change:
    detection = change.detection
    return Change(
        type=_TYPES[change.kind],
        id=detection.id,
        staff_id=detection.staff_id,
        timestamp=detection.timestamp,
        time=iso(detection.timestamp),
        received_at=int(detection.received_at),
        mac=detection.mac,
        rssi=detection.rssi,
        level=detection.level,
        location=detection.location,
    )


EXAMPLE = as_lines(
    Changes([as_line(StoredChange("insert", _DETECTION))], "826B01787A000000012B...")
).decode()
