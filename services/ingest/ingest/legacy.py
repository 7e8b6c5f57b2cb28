"""What the legacy contract says, apart from who asks: a request's parts to a detection."""

import json
from typing import Any

from ingest import parsing
from ingest.detections import Detection, IdempotencyKey
from ingest.directory import Place
from ingest.errors import ParameterError


def detection(
    sighting: parsing.Sighting, place: Place | None, at: float, request: IdempotencyKey
) -> Detection:
    """Return what to store of a sighting that was received at a unix time."""
    if sighting.event_id is not None:
        key = IdempotencyKey(f"event:{sighting.event_id}", sighting.timestamp)
    else:
        key = request
    return Detection(
        staff_id=sighting.staff_id,
        level=place and place.level,
        location=place and place.location,
        timestamp=int(at) if sighting.timestamp is None else sighting.timestamp,
        rssi=sighting.rssi,
        mac=sighting.mac,
        received_at=at,
        key=key,
    )


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object; ParameterError names the body when it is none."""
    try:
        parsed = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise ParameterError("body", "is not valid JSON") from None
    if not isinstance(parsed, dict):
        raise ParameterError("body", "must be a JSON object")
    return parsed
