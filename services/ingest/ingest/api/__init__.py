"""The documented API, `/api/v1`. Each view stands under its declaration (see `openapi`)."""

from flask import Flask, Response, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from ingest.api import (
    beacon_import,
    beacons,
    changes,
    coverage,
    detections,
    docs,
    legacy_schema,
    openapi,
    problems,
    staff,
    staff_detections,
    system,
    unknown_beacons,
)
from ingest.web import error_responses

# What declares operations when it is imported.
DECLARED = (
    beacon_import,
    beacons,
    changes,
    coverage,
    detections,
    docs,
    legacy_schema,
    staff,
    staff_detections,
    system,
    unknown_beacons,
)


def init_app(app: Flask) -> None:
    """Add the API and its errors."""
    app.register_blueprint(openapi.bp)
    app.register_blueprint(docs.bp)
    app.register_error_handler(HTTPException, _http_error)


def _http_error(error: HTTPException) -> ResponseReturnValue:
    """Answer for an address that is no view's."""
    if request.path.startswith(openapi.PREFIX):
        return _as_problem(error)
    return error_responses.response_to(error, request.headers.get("X-Request-ID", "")).for_flask()


@openapi.bp.errorhandler(Exception)
def _as_problem(error: Exception) -> Response:
    return problems.response(problems.of(error))
