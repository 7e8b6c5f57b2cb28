"""Cross-origin requests: any page may call the legacy endpoints, and nothing else."""

from flask import Flask
from flask_cors import CORS

from common.routes import LEGACY_PATHS
from ingest.web.responses import Response

_EXPOSED = ["Retry-After", "X-Circuit-State", "X-Request-ID"]
_HEADERS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", ", ".join(_EXPOSED).encode()),
]


def init_app(app: Flask) -> None:
    """Let Flask add the headers, and answer preflights."""
    CORS(app, resources=list(LEGACY_PATHS), send_wildcard=True, expose_headers=_EXPOSED)


def with_headers(response: Response) -> Response:
    """Return a response of the event loop with the headers that Flask adds to its own."""
    return response._replace(headers=response.headers + _HEADERS)
