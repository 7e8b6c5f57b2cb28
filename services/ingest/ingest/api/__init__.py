"""The documented API, `/api/v1`. Each view stands under its declaration (see `openapi`)."""

from flask import Flask, Response, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from ingest import errors
from ingest.api import (
    beacon_import,
    beacons,
    changes,
    coverage,
    detections,
    docs,
    openapi,
    problems,
    staff,
    staff_detections,
    system,
    unknown_beacons,
)
from ingest.config import Config
from ingest.legacy import schema as legacy_schema
from ingest.rules.levels import Rule
from ingest.storage import status

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


def init_app(app: Flask, config: Config) -> None:
    """Add the API and its errors."""
    app.config["SERVICE"] = status.name_of(config.spool_file)
    app.extensions["levels"] = Rule(
        hits=config.level_hits,
        window_seconds=config.level_window_seconds,
        margin_db=config.level_margin_db,
        silence_seconds=config.level_silence_seconds,
    )
    app.register_blueprint(openapi.bp)
    app.register_blueprint(docs.bp)
    app.register_error_handler(HTTPException, _http_error)


def _http_error(error: HTTPException) -> ResponseReturnValue:
    """Answer for an address that is no view's."""
    if request.path.startswith(openapi.PREFIX):
        return _as_problem(error)
    return errors.http_error(error)


@openapi.bp.errorhandler(Exception)
def _as_problem(error: Exception) -> Response:
    return problems.response(problems.of(error))
