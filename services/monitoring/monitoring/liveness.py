"""`/healthz`: whether this process lives, whatever the other services do."""

from flask import Blueprint, Response, jsonify

bp = Blueprint("liveness", __name__)


@bp.get("/healthz")
def healthz() -> Response:
    """Answer as long as the process lives."""
    return jsonify(status="ok")
