"""The ingest service: takes detections in and gives histories out."""

from typing import Any

from flask import Flask, Response, abort, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from common.routes import PREFIX
from ingest import api, legacy
from ingest.api import owntracks
from ingest.assembly import Context
from ingest.config import Config
from ingest.errors import Busy, Forbidden, ParameterError, StoreUnavailable, Unauthenticated
from ingest.legacy import monitoring
from ingest.web import cors, credentials, error_responses, health, metrics
from ingest.web.endpoint import Endpoint
from ingest.web.lanes import largest_body

REFUSALS = (Unauthenticated, Forbidden, ParameterError, Busy, StoreUnavailable)


def create_app(config: Config | None = None) -> Flask:
    """Assemble the Flask application, complete by itself; any WSGI server can run it.

    It starts without MongoDB and reports so at `/readyz`.
    """
    config = config or Config.from_environment()
    app = Flask(__name__, static_folder=None)
    app.url_map.merge_slashes = False  # it would redirect to whatever Host the client names
    app.config["VERSION"] = config.waymark_version
    context = app.extensions["context"] = Context.assemble(config)
    cors.init_app(app)
    app.before_request(_refuse_other_spellings)
    credentials.init_app(app)
    app.before_request(_refuse_large_bodies)
    app.teardown_request(_forget_refusal)
    for error in (*REFUSALS, HTTPException):
        app.register_error_handler(error, _error_response)
    for endpoint in endpoints(context):
        endpoint.mount(app)
    app.register_blueprint(monitoring.bp)
    app.register_blueprint(health.bp)
    app.register_blueprint(metrics.bp)
    api.init_app(app)
    credentials.check_roles(app)
    return app


def endpoints(context: Context) -> list[Endpoint[Any, Any]]:
    """Return those that phones and HACS call all the time, for whoever serves them."""
    return [*legacy.endpoints(context), *owntracks.endpoints(context)]


def _refuse_other_spellings() -> None:
    """Refuse `//api/…`, which Flask takes for `/api/…`, but lanes and limits do not."""
    asked = request.environ
    if asked["PATH_INFO"].startswith("//"):
        abort(404)


def _refuse_large_bodies() -> None:
    """Refuse a body over the limit also where nobody would read it."""
    request.max_content_length = largest_body(request.path)
    if (request.content_length or 0) > request.max_content_length:
        raise RequestEntityTooLarge


def _forget_refusal(_: BaseException | None) -> None:
    """Let go of why there is no such address: that error's frames lead back to the request."""
    request.routing_exception = None


def _error_response(error: Exception) -> Response:
    if request.path.startswith(PREFIX):
        return api.error_response(error)
    return error_responses.response_to(error, request.headers.get("X-Request-ID", "")).for_flask()
