"""The legacy HTTP contract: three endpoints that never change."""

import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

from flask import Blueprint, Response, abort, request

from ingest.context import get_store
from ingest.errors import ParameterError
from ingest.http import request_identity as receipt
from ingest.http import responses
from ingest.http.responses import Reply
from ingest.legacy import legacy
from ingest.recording.recorder import Outcome
from ingest.rules import parameters as parsing

bp = Blueprint("legacy", __name__)

# What pages of any origin may call; the rest of the service is for its own.
PATHS = ("/newbeacondetect", "/extractbeacon", "/retrieveformonitoring")

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
    document = legacy.document(sighting, place, received_at, receipt.request_key(received_at))
    [outcome] = store.recorder.record([document])
    if outcome is Outcome.REJECTED:
        raise ParameterError("body", "MongoDB refuses this detection")
    return _response(responses.added(outcome))


@bp.route("/extractbeacon", methods=["GET", "POST"])
def extract_beacon() -> Response:
    """Answer one staff member's whole history between two times, newest first."""
    wanted = parsing.time_range(_parameters())
    store = get_store()
    store.recorder.check_reachable()
    answer = store.histories.between(wanted, time.time())
    accepted = request.headers.get("Accept-Encoding", "")
    held = request.headers.get("If-None-Match", "")
    return _response(responses.history(answer, accepted, held))


@bp.route("/retrieveformonitoring", methods=["GET", "POST"])
def retrieve_for_monitoring() -> Response:
    """Answer everybody's detections of the last 15 minutes, newest first."""
    since = int(time.time()) - MONITORING_WINDOW_SECONDS
    store = get_store()
    store.recorder.check_answers()
    # Complete before the first byte leaves, so that a failing database gives 503, not half a 200.
    body = b'{"location":[' + ",".join(_rows(store.detections.list_since(since))).encode() + b"]}\n"
    response = Response(body, mimetype="application/json")
    response.set_etag(hashlib.blake2b(body, digest_size=12).hexdigest(), weak=True)
    response.make_conditional(request)
    return response


def _rows(documents: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield each document as JSON; what repeats in them is encoded once."""
    known: dict[tuple[Any, ...], tuple[str, str]] = {}
    for one in documents:
        who = one["staff_id"], one["level"], one["location"], one["mac"]
        texts = known.get(who)
        if texts is None:
            first = {name: one[name] for name in ("staff_id", "level", "location")}
            texts = _compact(first)[:-1], _compact({"mac": one["mac"]})[1:]
            known[who] = texts
        yield f'{texts[0]},"timestamp":{one["timestamp"]},"rssi":{one["rssi"]},{texts[1]}'


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _response(reply: Reply) -> Response:
    headers = [(name.decode().title(), value.decode()) for name, value in reply.headers]
    return Response(reply.body, reply.status, headers)


def _parameters() -> dict[str, Any]:
    """Return query string, form or JSON as one mapping; what the query string gives wins."""
    body = legacy.json_object(request.get_data()) if request.is_json else request.form.to_dict()
    return body | {name: value for name, value in request.args.items() if value}
