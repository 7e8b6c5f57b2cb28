"""The monitoring service: the page, its data, and the answers while the circuit is open."""

import logging
from pathlib import Path
from typing import Any

from flask import Flask, Response, jsonify, request
from flask_cors import CORS
from werkzeug.exceptions import HTTPException

from common.routes import LEGACY_PATHS
from monitoring import (
    fallback,
    guard,
    liveness,
    metrics,
    names,
    page_data,
    screens,
    sites,
    static_files,
)
from monitoring.certificate import Certificate
from monitoring.config import Config
from monitoring.gateway import Gateway
from monitoring.health_monitor import HealthMonitor
from monitoring.snapshot_cache import SnapshotCache

log = logging.getLogger(__name__)


class _Application(Flask):
    """Flask, but for its log, which would tell the address: it may name a person."""

    def log_exception(self, exc_info: Any) -> None:
        """Log an exception with the id of its request."""
        log.error("request %s", request.headers.get("X-Request-ID", "-"), exc_info=exc_info)


def create_app(config: Config | None = None) -> Flask:
    """Assemble the service; it needs nothing but the gateway's address."""
    config = config or Config.from_environment()
    app = _Application(__name__, static_folder=None)
    app.url_map.merge_slashes = False  # it would redirect to whatever Host the client names
    app.config["VERSION"] = config.waymark_version
    app.config["PUBLIC_URL"] = config.public_url or config.gateway_url
    app.config["COVERAGE_GAP_MINUTES"] = config.coverage_gap_minutes
    app.config["LOST_CONTACT_MINUTES"] = config.lost_contact_minutes
    app.config["HAS_GPX"] = bool(config.plan_origin)
    app.config["OIDC_NAME"] = config.oidc_name if config.oidc_issuer else ""
    app.config["SNAPSHOT_SECONDS"] = config.snapshot_seconds
    token = Path(config.page_token_file).read_text("utf-8") if config.page_token_file else ""
    gateway = Gateway(config.gateway_url, config.gateway_timeout_seconds, token.strip())
    app.extensions["gateway"] = gateway
    app.extensions["snapshot_cache"] = SnapshotCache(gateway.get)
    listed = sites.load(Path(config.sites_file)) if config.sites_file else []
    app.extensions["sites"] = sites.Sites(listed, config.gateway_timeout_seconds)
    # gunicorn.conf.py starts it, once the worker runs.
    app.extensions["health_monitor"] = HealthMonitor(
        gateway.get, gateway.probe, config.observe_seconds, Certificate(gateway.text).warnings
    )
    CORS(
        app,
        resources=list(LEGACY_PATHS),
        send_wildcard=True,
        expose_headers=["X-Circuit-State", "Retry-After"],
    )
    names.init_app(app)
    static_files.init_app(app)
    if config.waymark_access == "required":
        guard.init_app(app, guard.Guard(gateway.get_as))
    app.register_error_handler(HTTPException, _http_error)
    app.after_request(_varies)
    for module in (page_data, sites, screens, fallback, liveness, metrics):
        app.register_blueprint(module.bp)
    return app


def _varies(response: Response) -> Response:
    """Say that the answer depends on what the client unpacks: static files here, all in NGINX."""
    response.vary.add("Accept-Encoding")
    return response


def _http_error(error: HTTPException) -> tuple[Response, int, dict[str, str]]:
    headers = {name: value for name, value in error.get_headers() if name == "Allow"}
    return jsonify(error=error.name.lower()), error.code or 500, headers
