"""The names by which this port may be asked: a stranger may have made another one lead here."""

import re

from flask import Flask, Response, jsonify, request

from common.browsers import LOOKED_AT, OWN_HOST
from common.routes import HEALTHZ, LEGACY_PATHS

# Whoever asks there is no browser, or asks what everybody may.
OPEN_PATHS = {*LEGACY_PATHS, HEALTHZ.path}
_HOST = re.compile(OWN_HOST, re.IGNORECASE)


def init_app(app: Flask) -> None:
    """Refuse other names, whatever is asked."""
    app.before_request(_refuse)


def _refuse() -> tuple[Response, int] | None:
    if request.path in OPEN_PATHS or LOOKED_AT in request.headers:
        return None
    if _HOST.fullmatch(request.headers.get("Host", "")):
        return None
    return jsonify(error="Host: ask this port by its address, or the gateway by its name"), 421
