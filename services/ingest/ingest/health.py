"""Health: is the process alive, and can it do its work?"""

from flask import Blueprint, Response, jsonify

from ingest.store import get_store

bp = Blueprint("health", __name__)


@bp.get("/healthz")
def healthz() -> Response:
    """Answer as long as the process lives."""
    return jsonify(status="ok")


@bp.get("/readyz")
def readyz() -> tuple[Response, int]:
    """Answer 200 only when MongoDB can be reached."""
    store = get_store()
    queued = store.recorder.queued
    if store.ready():
        return jsonify(status="ok", mongodb="ok", queued=queued), 200
    return jsonify(status="unavailable", mongodb="does not answer", queued=queued), 503
