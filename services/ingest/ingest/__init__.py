"""The ingest service: takes detections in and gives histories out."""

from flask import Flask
from flask_cors import CORS

from ingest import api, errors, health, routes
from ingest.config import Config
from ingest.responses import EXPOSED
from ingest.store import Store


def create_app(config: Config | None = None) -> Flask:
    """Assemble the service; it starts without MongoDB and reports so at `/readyz`."""
    config = config or Config.from_environment()
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = config.max_body_bytes
    app.config["MAX_FORM_MEMORY_SIZE"] = config.max_body_bytes
    store = Store.connect(config)
    store.ready(
        store.insert_seconds
    )  # makes the indexes; when MongoDB is away, the next /readyz makes them
    app.extensions["store"] = store
    CORS(app, send_wildcard=True, expose_headers=EXPOSED)
    errors.init_app(app)
    app.register_blueprint(routes.bp)
    app.register_blueprint(health.bp)
    api.init_app(app, config)
    return app
