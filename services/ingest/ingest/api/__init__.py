"""The documented API, `/api/v1`. Each view stands under its declaration (see `openapi`)."""

from flask import Flask, Response, request

from ingest.api import (
    accounts,
    audit,
    beacon_corrections,
    beacon_import,
    beacons,
    changes,
    coverage,
    detections,
    docs,
    guesses,
    legacy_schema,
    lost_contact,
    oidc,
    openapi,
    own_account,
    problems,
    session,
    staff,
    staff_detections,
    system,
    tokens,
    unknown_beacons,
    visits,
)
from ingest.errors import Fault

# What declares operations when it is imported.
DECLARED = (
    accounts,
    audit,
    beacon_corrections,
    beacon_import,
    beacons,
    changes,
    coverage,
    detections,
    docs,
    legacy_schema,
    lost_contact,
    oidc,
    own_account,
    session,
    staff,
    staff_detections,
    system,
    tokens,
    unknown_beacons,
    visits,
)


def init_app(app: Flask) -> None:
    """Add the API."""
    app.url_map.converters["beacon"] = beacons.BeaconInPath
    app.register_blueprint(openapi.bp)
    app.register_blueprint(docs.bp)


@openapi.bp.before_request
def refuse_other_queries() -> None:
    """Refuse a query string with a name that is not known, which would change nothing.

    And one in which two readers may take different values for the same name.
    """
    endpoint = request.endpoint or ""
    known = openapi.QUERY_NAMES.get(endpoint, set())
    repeated = [name for name, values in request.args.lists() if len(values) > 1]
    faults = [Fault(name, "stands twice") for name in repeated if name in known]
    if endpoint not in openapi.OPEN_QUERIES:
        faults += guesses.unknown(request.args, known)
    if faults:
        raise problems.invalid(faults)


@openapi.bp.errorhandler(Exception)
def error_response(error: Exception) -> Response:
    """Return the response to what went wrong, also at an address below PREFIX that is no view's."""
    return problems.response(problems.of(error))
