"""`/monitoring/api` and `/monitoring/latest`: the page's data, read through the snapshot cache."""

import json
import re
import time
from functools import lru_cache
from typing import Any, cast
from urllib.parse import urlencode

from flask import Blueprint, Response, abort, current_app, jsonify, request

from monitoring import limited
from monitoring.gateway import CLOSED, UNKNOWN
from monitoring.health_monitor import HealthMonitor
from monitoring.snapshot_cache import Snapshot, SnapshotCache
from monitoring.verdict import HEALTHY

bp = Blueprint("page_data", __name__)

# The paths of /api/v1 that a page may read here, and for how many seconds one read is shared.
LIFETIME_SECONDS = {
    r"staff": 0,  # the setting SNAPSHOT_SECONDS
    r"staff/[A-Za-z0-9._-]{1,64}/detections": 2,
    r"coverage": 5,
    r"visits": 2,
    r"beacons": 10,
    r"beacons/unknown": 5,
    r"beacons/batteries": 20,
    r"people": 10,
    r"people/unnamed": 5,
    r"system/database": 20,
}
# How many people one answer tells where nobody asks for another number: 210 bytes each, of the
# MAX_BODY_BYTES.
MOST_PEOPLE = 4000


@bp.get("/monitoring/api/<path:path>")
def snapshot_of(path: str) -> Response:
    """Answer with the newest response of `/api/v1/<path>`; `null` when there was none yet.

    The status is 200 or the API's own 4xx. `X-Taken-At` says how old the response is,
    `X-Circuit-State` whether the newest read succeeded, and if not, `X-Verdict` why, as JSON. With
    `X-More` there are more people than it tells.
    """
    snapshot = _read(path, request.query_string.decode("ascii", "replace"))
    response = Response("null\n", mimetype="application/json")
    if snapshot.response:
        response.set_data(snapshot.response.body)
        response.status_code = snapshot.response.status
        response.headers["X-Taken-At"] = f"{snapshot.response.taken_at:.0f}"
        if snapshot.response.has_more:
            response.headers["X-More"] = "true"
    response.headers["X-Circuit-State"] = snapshot.circuit
    _monitor().look()
    verdict = _monitor().verdict
    if snapshot.circuit != CLOSED and verdict and verdict.what != HEALTHY:
        response.headers["X-Verdict"] = json.dumps(verdict._asdict())
    response.headers["Cache-Control"] = "no-cache"
    response.add_etag(weak=True)
    response.make_conditional(request)
    return response


@bp.get("/monitoring/latest")
def latest() -> Response:
    """Answer where everyone is, in one object, for scripts; `now` is this service's clock."""
    snapshot = _read("staff")
    staff = snapshot.response if snapshot.response and snapshot.response.status == 200 else None
    circuit = snapshot.circuit
    try:
        everyone, others = _list_cut_out(staff.body) if staff else (b"[]", {})
    except ValueError:  # a 200 without a list: it is not known who is there
        staff, circuit, (everyone, others) = None, UNKNOWN, (b"[]", {})
    known = {
        "circuit": circuit,
        # With no answer, or a page alone, not all is known.
        "complete": others.get("complete", staff is not None) and not (staff and staff.has_more),
        "detail": snapshot.detail,
        "now": time.time(),
        "taken_at": staff.taken_at if staff else None,
    }
    start = json.dumps(known).removesuffix("}").encode()
    response = Response([start, b', "staff": ', everyone, b"}\n"], mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


@lru_cache(maxsize=1)  # once for each snapshot
def _list_cut_out(body: bytes) -> tuple[bytes, dict[str, Any]]:
    """Return the text of an answer's list, and the fields beside it.

    The list itself is not parsed: a megabyte becomes seven of Python objects.
    """
    start, end = body.index(b"["), body.rindex(b"]") + 1
    others: Any = json.loads(body[:start] + b"[]" + body[end:])
    if not isinstance(others, dict) or others.get("data") != []:
        raise ValueError("its list is not the people")
    return body[start:end], others


@bp.get("/monitoring/api/system")
def system() -> Response:
    """Answer what the health monitor knows of the other services."""
    _monitor().look()
    response = jsonify(_monitor().report())
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Circuit-State"] = "closed"  # the report is current, whatever it says
    response.headers["X-Taken-At"] = f"{time.time():.0f}"
    return response


def _monitor() -> HealthMonitor:
    return cast(HealthMonitor, current_app.extensions["health_monitor"])


def _read(path: str, query: str = "") -> Snapshot:
    """Read a path that pages may read; 404 for any other. Who has limits reads within them."""
    patterns = (pattern for pattern in LIFETIME_SECONDS if re.fullmatch(pattern, path))
    pattern = next(patterns, None)
    if pattern is None:
        abort(404)
    limits = limited.limits()
    if limits:
        asked = {name: request.args.get(name, limit) for name, limit in limits.items()}
        limited.check(allowed=path in limited.PATHS and asked == limits)
        taken = limited.PATHS[path]
        query = urlencode({name: limit for name, limit in limits.items() if name in taken})
    if path == "staff" and "limit" not in request.args:
        query = f"{query}&limit={MOST_PEOPLE}".lstrip("&")
    cache = cast(SnapshotCache, current_app.extensions["snapshot_cache"])
    lifetime = LIFETIME_SECONDS[pattern] or current_app.config["SNAPSHOT_SECONDS"]
    return cache.read(f"/api/v1/{path}" + (f"?{query}" if query else ""), lifetime)
