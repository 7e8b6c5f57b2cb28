"""The data behind the page: read through the gateway, once for all that have it open."""

import json
import re
import time
from typing import Any, cast

from flask import Blueprint, Response, abort, current_app, jsonify, request

from monitoring.keeper import Keeper, Kept
from monitoring.observer import Observer

bp = Blueprint("data", __name__)

# What a page may read here, each with the seconds that one read serves everybody.
SECONDS = {
    r"staff": 0,  # the setting SNAPSHOT_SECONDS
    r"staff/[A-Za-z0-9._-]{1,64}/detections": 2,
    r"coverage": 5,
    r"beacons": 10,
    r"beacons/unknown": 5,
    r"system/database": 20,
}


@bp.get("/monitoring/api/<path:path>")
def passed_on(path: str) -> Response:
    """Answer what `/api/v1/<path>` last answered, with its time; `null` before the first time.

    Always 200 or the API's own 4xx: `X-Circuit-State` and `X-Taken-At` tell how old it is and why.
    """
    kept = _read(path, request.query_string.decode("ascii", "replace"))
    response = Response("null\n", mimetype="application/json")
    if kept.answer:
        response.set_data(kept.answer.body)
        response.status_code = kept.answer.status
        response.headers["X-Taken-At"] = f"{kept.answer.taken_at:.0f}"
    response.headers["X-Circuit-State"] = kept.circuit
    response.headers["Cache-Control"] = "no-cache"
    response.add_etag(weak=True)
    response.make_conditional(request)
    return response


@bp.get("/monitoring/latest")
def latest() -> Response:
    """Answer where everyone is, in one object, for scripts; `now` is this service's clock."""
    kept = _read("staff")
    answer = kept.answer if kept.answer and kept.answer.status == 200 else None
    response = jsonify(
        circuit=kept.circuit,
        detail=kept.detail,
        now=time.time(),
        taken_at=answer.taken_at if answer else None,
        staff=json.loads(answer.body)["data"] if answer else [],
    )
    response.headers["Cache-Control"] = "no-store"
    return response


@bp.get("/monitoring/api/system")
def system() -> Response:
    """Answer what this service has observed of the others."""
    report: dict[str, Any] = cast(Observer, current_app.extensions["observer"]).report()
    response = jsonify(report)
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Circuit-State"] = "closed"  # this answer is fresh, whatever it says
    response.headers["X-Taken-At"] = f"{time.time():.0f}"
    return response


def _read(path: str, query: str = "") -> Kept:
    seconds = next((SECONDS[known] for known in SECONDS if re.fullmatch(known, path)), None)
    if seconds is None:
        abort(404)
    keeper = cast(Keeper, current_app.extensions["keeper"])
    asked = f"/api/v1/{path}" + (f"?{query}" if query else "")
    return keeper.read(asked, seconds or current_app.config["SNAPSHOT_SECONDS"])
