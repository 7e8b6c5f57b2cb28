"""The service as an ASGI server runs it."""

from ingest import create_app, legacy
from ingest.config import Config
from ingest.context import Context
from ingest.web.asgi_server import Server
from ingest.web.flask_bridge import Bridge


def create_service(config: Config | None = None) -> Server:
    """Assemble the service: the endpoints of the event loop, and Flask behind them."""
    app = create_app(config)
    context: Context = app.extensions["context"]
    context.back_fill.start()
    context.notes.start()
    return Server(
        legacy.endpoints(context),
        Bridge(app),
        context.admission,
        context.close,
        context.change_stream.end_waits,
    )
