"""The monitoring service: the page, and the answers while the circuit is open."""

from flask import Flask, Response, jsonify
from flask_cors import CORS
from werkzeug.exceptions import HTTPException

from monitoring import assets, data, fallback, routes
from monitoring.config import Config
from monitoring.keeper import Gateway, Keeper
from monitoring.observer import Observer


def create_app(config: Config | None = None) -> Flask:
    """Assemble the service; it needs nothing but the gateway's address."""
    config = config or Config.from_environment()
    app = Flask(__name__, static_folder=None)
    app.config["PUBLIC_URL"] = config.public_url or config.gateway_url
    app.config["COVERAGE_GAP_MINUTES"] = config.coverage_gap_minutes
    app.config["SNAPSHOT_SECONDS"] = config.snapshot_seconds
    gateway = Gateway(config.gateway_url, config.gateway_timeout_seconds)
    app.extensions["keeper"] = Keeper(gateway.get)
    app.extensions["observer"] = Observer(
        gateway.get, config.observe_seconds
    )  # gunicorn.conf.py starts it
    CORS(
        app,
        resources=list(fallback.LEGACY),
        send_wildcard=True,
        expose_headers=["X-Circuit-State", "Retry-After"],
    )
    assets.init_app(app)
    app.register_error_handler(HTTPException, _http_error)
    app.register_blueprint(data.bp)
    app.register_blueprint(routes.bp)
    app.register_blueprint(fallback.bp)
    return app


def _http_error(error: HTTPException) -> tuple[Response, int]:
    return jsonify(error=error.name.lower()), error.code or 500
