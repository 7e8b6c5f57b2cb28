"""The legacy HTTP contract: three endpoints that never change."""

import json
import time
from collections.abc import Iterable
from typing import Any

from flask import Blueprint, Response, abort, request

from ingest import parsing, receipt
from ingest.detections import Detection, IdempotencyKey
from ingest.errors import ParameterError
from ingest.recorder import Outcome
from ingest.store import get_store

bp = Blueprint("legacy", __name__)

ADDED = "New Beacon Detection Added"
MONITORING_WINDOW_SECONDS = 15 * 60


@bp.route("/newbeacondetect", methods=["GET", "POST"])
def new_beacon_detect() -> Response:
    """Store one detection: 200 once a majority has it in its journal, 202 once our disk has it."""
    if request.method == "HEAD":  # Flask adds it to GET, but it must change nothing
        abort(405)
    received_at = receipt.received_at()
    sighting = parsing.sighting(_parameters(), received_at)
    store = get_store()
    place = store.locate(sighting.mac)
    detection = Detection(
        staff_id=sighting.staff_id,
        mac=sighting.mac,
        rssi=sighting.rssi,
        timestamp=int(received_at) if sighting.timestamp is None else sighting.timestamp,
        level=place and place.level,
        location=place and place.location,
        received_at=received_at,
        key=_idempotency_key(sighting, received_at),
    )
    outcome = store.recorder.record(detection)
    if outcome is Outcome.REJECTED:
        raise ParameterError("body", "MongoDB refuses this detection")
    status = 202 if outcome is Outcome.QUEUED else 200
    return Response(ADDED, status, {"X-Detection": outcome.value}, mimetype="text/plain")


@bp.route("/extractbeacon", methods=["GET", "POST"])
def extract_beacon() -> Response:
    """Answer one staff member's whole history between two times, newest first."""
    wanted = parsing.time_range(_parameters())
    store = get_store()
    store.recorder.check_reachable()
    return _locations(store.detections.list_between(wanted))


@bp.route("/retrieveformonitoring", methods=["GET", "POST"])
def retrieve_for_monitoring() -> Response:
    """Answer everybody's detections of the last 15 minutes, newest first."""
    since = int(time.time()) - MONITORING_WINDOW_SECONDS
    store = get_store()
    store.recorder.check_reachable()
    return _locations(store.detections.list_since(since))


def _locations(documents: Iterable[dict[str, Any]]) -> Response:
    # Encoded one by one: a long history costs its text, not a list of dicts ten times as big.
    # Complete before the first byte leaves, so that a failing database gives 503, not half a 200.
    body = ",".join(json.dumps(document, separators=(",", ":")) for document in documents)
    return Response(f'{{"location":[{body}]}}\n', mimetype="application/json")


def _parameters() -> dict[str, Any]:
    """Return query string, form or JSON as one mapping; what the query string gives wins."""
    body = _json_object() if request.is_json else request.form.to_dict()
    return body | {name: value for name, value in request.args.items() if value}


def _json_object() -> dict[str, Any]:
    try:
        body = json.loads(request.get_data() or b"{}")
    except (ValueError, RecursionError):
        raise ParameterError("body", "is not valid JSON") from None
    if not isinstance(body, dict):
        raise ParameterError("body", "must be a JSON object")
    return body


def _idempotency_key(sighting: parsing.Sighting, received_at: float) -> IdempotencyKey:
    """Return the client's key, else the request id that the gateway repeats on its retry."""
    if sighting.event_id is not None:
        return IdempotencyKey(f"event:{sighting.event_id}", sighting.timestamp)
    return IdempotencyKey(f"request:{receipt.request_id()}", int(received_at))
