"""The service as an ASGI server runs it."""

from ingest import create_app, endpoints
from ingest.assembly import Context
from ingest.config import Config
from ingest.web.asgi_server import Server
from ingest.web.flask_bridge import Bridge


def create_service(config: Config | None = None) -> Server:
    """Assemble the service: the endpoints of the event loop, and Flask behind them."""
    app = create_app(config)
    context: Context = app.extensions["context"]
    context.recording.back_fill.start()
    context.recording.expiry.start()
    context.recording.sealing.start()
    context.recording.warnings.start()
    context.people.notes.start()
    return Server(
        endpoints(context),
        Bridge(app),
        context.access.admission,
        context.recording.recorder.run_in,
        context.close,
        context.requests,
        context.histories.change_stream.end_waits,
    )
