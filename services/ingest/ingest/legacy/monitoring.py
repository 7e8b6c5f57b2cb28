"""/retrieveformonitoring: everybody's detections of the last 15 minutes, newest first."""

from flask import Blueprint, Response, request

from common.routes import MONITOR
from ingest.assembly import get_context
from ingest.legacy.extract import GZIP_MIN_BYTES
from ingest.rules.roles import needs, role_at
from ingest.web.responses import takes_gzip

bp = Blueprint("monitoring", __name__)


@bp.route(MONITOR.path, methods=list(MONITOR.roles))
@needs(role_at("GET", MONITOR.path))
def retrieve_for_monitoring() -> Response:
    """Answer all of them; the gateway keeps the answer for all who ask within 2 s.

    While a shard does not answer this is a 503: the legacy answer cannot say that people are
    missing from it, and whoever polls it would take them for gone.
    """
    context = get_context()
    context.database.availability.check_reachable()
    # Complete before the first byte leaves, so that a failing database gives 503, not half a 200.
    answer, etag = context.histories.last_minutes.read()
    length, body, headers = answer.length, answer.text(), {"Vary": "Accept-Encoding"}
    if length >= GZIP_MIN_BYTES and takes_gzip(request.headers.get("Accept-Encoding", "")):
        length, body = sum(map(len, answer.gzip())), answer.gzip_pieces()
        headers["Content-Encoding"] = "gzip"
    headers["Content-Length"] = str(length)
    response = Response(body, headers=headers, mimetype="application/json")
    response.set_etag(etag, weak=True)
    response.make_conditional(request)
    return response
