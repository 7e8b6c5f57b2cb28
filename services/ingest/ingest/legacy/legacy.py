"""What the legacy contract says, apart from who asks: a request's parts to a detection."""

import json
from typing import Any

from ingest.errors import ParameterError
from ingest.rules import parameters as parsing
from ingest.storage import detections
from ingest.storage.detections import NOWHERE, Document, IdempotencyKey
from ingest.storage.directory import Place


def document(
    sighting: parsing.Sighting, place: Place | None, at: float, request: IdempotencyKey
) -> Document:
    """Return what to store of a sighting that was received at a unix time."""
    staff_id, mac, rssi, timestamp, event_id = sighting
    key = request if event_id is None else (f"event:{event_id}", timestamp)
    when = int(at) if timestamp is None else timestamp
    return detections.document(staff_id, place or NOWHERE, when, rssi, mac, at, key)


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object; ParameterError names the body when it is none."""
    try:
        parsed = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise ParameterError("body", "is not valid JSON") from None
    if not isinstance(parsed, dict):
        raise ParameterError("body", "must be a JSON object")
    return parsed
