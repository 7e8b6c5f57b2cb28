"""The ingest service: takes detections in and gives histories out."""

import logging

from flask import Flask
from flask_cors import CORS

from ingest import api, errors
from ingest.config import Config
from ingest.context import Store
from ingest.errors import StoreUnavailable
from ingest.http import health
from ingest.http.responses import EXPOSED
from ingest.legacy import routes

log = logging.getLogger(__name__)


def create_app(config: Config | None = None) -> Flask:
    """Assemble the service; it starts without MongoDB and reports so at `/readyz`."""
    config = config or Config.from_environment()
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = config.max_body_bytes
    app.config["MAX_FORM_MEMORY_SIZE"] = config.max_body_bytes
    store = Store.connect(config)
    try:
        store.prepare(store.insert_seconds)
    except StoreUnavailable as error:  # the next /readyz tries again
        log.warning("started without MongoDB: %s", error)
    app.extensions["store"] = store
    CORS(app, resources=list(routes.PATHS), send_wildcard=True, expose_headers=EXPOSED)
    errors.init_app(app)
    app.register_blueprint(routes.bp)
    app.register_blueprint(health.bp)
    api.init_app(app, config)
    return app
