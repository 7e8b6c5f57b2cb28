"""Health: is the process alive, and can it do its work?"""

import logging

from flask import Blueprint, Response, jsonify

from common.routes import HEALTHZ, READYZ
from ingest.assembly import get_context
from ingest.errors import StoreUnavailable
from ingest.rules.roles import needs, role_at
from ingest.storage.database.availability import READ_PROBE_SECONDS

log = logging.getLogger(__name__)
bp = Blueprint("health", __name__)


@bp.get(HEALTHZ.path)
@needs(role_at("GET", HEALTHZ.path))
def healthz() -> Response:
    """Answer as long as the process lives."""
    return jsonify(status="ok")


@bp.get(READYZ.path)
@needs(role_at("GET", READYZ.path))
def readyz() -> tuple[Response, int]:
    """Answer 200 only when all of MongoDB answers; in about a second when it does not."""
    context = get_context()
    spool = {
        "queued": context.recording.recorder.queued,
        "set_aside": context.recording.recorder.set_aside,
        "warnings": [f"{what}. {todo}" for what, todo in context.recording.warnings.current],
    }
    try:
        context.database.availability.check_reachable()
        context.database.client.ping(READ_PROBE_SECONDS)
    except StoreUnavailable as error:
        log.warning("MongoDB is not ready: %s", error)
        return jsonify(status="unavailable", mongodb="does not answer", **spool), 503
    indexes = "ok" if context.database.indexes.present else "being made"  # till then reads are slow
    return jsonify(status="ok", mongodb="ok", indexes=indexes, **spool), 200
