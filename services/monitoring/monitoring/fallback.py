"""What the gateway lets us answer when no ingest service can: the open circuit."""

from flask import Blueprint, Response

bp = Blueprint("fallback", __name__)

# What pages of any origin may call, also while the circuit is open.
LEGACY = ("/newbeacondetect", "/extractbeacon", "/retrieveformonitoring")
CIRCUIT_OPEN = '{"data": "Flask servers circuit breaker open."}'
# The gateway tries a failed service again after 20 s; a client that waits 5 s is never far off.
RETRY_AFTER_SECONDS = 5


@bp.route("/newbeacondetect", methods=["GET", "POST"])
@bp.route("/extractbeacon", methods=["GET", "POST"])
@bp.route("/retrieveformonitoring", methods=["GET", "POST"])
@bp.route("/api/<path:_>")
def circuit_open(_: str = "") -> Response:
    """Answer 503: a 200 would tell a phone that its detection was stored."""
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS), "X-Circuit-State": "open"}
    return Response(CIRCUIT_OPEN, 503, headers, mimetype="application/json")
