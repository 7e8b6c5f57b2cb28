"""The 503 that the gateway fetches from here while no ingest service can answer."""

from flask import Blueprint, Response

from common.routes import LEGACY, OWNTRACKS

bp = Blueprint("fallback", __name__)

CIRCUIT_OPEN = '{"data": "Flask servers circuit breaker open."}'
# The gateway uses a service that is back at once. A client that retries every 5 s notices soon.
RETRY_AFTER_SECONDS = 5


@bp.route("/api/<path:_>")
def circuit_open(_: str = "") -> Response:
    """Answer 503: a 200 would tell a phone that its detection was stored."""
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS), "X-Circuit-State": "open"}
    return Response(CIRCUIT_OPEN, 503, headers, mimetype="application/json")


for route in (*LEGACY, OWNTRACKS):
    bp.add_url_rule(route.path, view_func=circuit_open, methods={"GET", *route.roles})
