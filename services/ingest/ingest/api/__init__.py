"""The documented API, `/api/v1`. Each view stands under its declaration (see `openapi`)."""

from flask import Flask, Response

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


PREFIX = openapi.PREFIX


def init_app(app: Flask) -> None:
    """Add the API."""
    app.register_blueprint(openapi.bp)
    app.register_blueprint(docs.bp)


@openapi.bp.errorhandler(Exception)
def error_response(error: Exception) -> Response:
    """Return the response to what went wrong, also at an address below PREFIX that is no view's."""
    return problems.response(problems.of(error))
