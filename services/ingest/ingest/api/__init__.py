"""The documented API, `/api/v1`. Each view stands under its declaration (see `openapi`)."""

from flask import Flask, Response, request

from ingest.api import system
from ingest.api.access import accounts, audit, oidc, own_account, session, tokens
from ingest.api.changes import changes
from ingest.api.detections import detections
from ingest.api.directory import (
    batteries,
    beacon_corrections,
    beacon_import,
    beacons,
    unknown_beacons,
)
from ingest.api.histories import staff_detections
from ingest.api.http import guesses, problems
from ingest.api.openapi import declarations, docs, legacy_schema
from ingest.api.people import forgotten, lost_contact, people, people_import, staff, unnamed
from ingest.api.places import coverage, visits
from ingest.errors import Fault

# What declares operations when it is imported.
DECLARED = (
    accounts,
    audit,
    batteries,
    beacon_corrections,
    beacon_import,
    beacons,
    changes,
    coverage,
    detections,
    docs,
    forgotten,
    legacy_schema,
    lost_contact,
    oidc,
    own_account,
    people,
    people_import,
    session,
    staff,
    staff_detections,
    system,
    tokens,
    unknown_beacons,
    unnamed,
    visits,
)


def init_app(app: Flask) -> None:
    """Add the API."""
    app.url_map.converters["beacon"] = beacons.BeaconInPath
    app.url_map.converters["person"] = people.PersonInPath
    app.register_blueprint(declarations.bp)
    app.register_blueprint(docs.bp)


@declarations.bp.before_request
def refuse_other_queries() -> None:
    """Refuse a query string with a name that is not known, which would change nothing.

    And one in which two readers may take different values for the same name.
    """
    endpoint = request.endpoint or ""
    known = declarations.QUERY_NAMES.get(endpoint, set())
    repeated = [name for name, values in request.args.lists() if len(values) > 1]
    faults = [Fault(name, "stands twice") for name in repeated if name in known]
    if endpoint not in declarations.OPEN_QUERIES:
        faults += guesses.unknown(request.args, known)
    if faults:
        raise problems.invalid(faults)


@declarations.bp.errorhandler(Exception)
def error_response(error: Exception) -> Response:
    """Return the response to what went wrong, also at an address below PREFIX that is no view's."""
    return problems.response(problems.of(error))
