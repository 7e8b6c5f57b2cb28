"""The names by which this port may be asked: a stranger may have made another one lead here."""

import re

from flask import Flask, Response, jsonify, request

from common.routes import HEALTHZ, LEGACY_PATHS

# Whoever asks there is no browser, or asks what everybody may.
OPEN_PATHS = {*LEGACY_PATHS, HEALTHZ.path}
# The gateway's word that it has looked. No page can make its browser send a `Sec-` header.
GATEWAY = "Sec-Waymark-Gateway"
# Nobody can make an address lead elsewhere, as a name can be.
_ADDRESS = re.compile(r"(localhost|\d+\.\d+\.\d+\.\d+|\[[0-9a-f:.]+\])?(:\d+)?", re.IGNORECASE)


def init_app(app: Flask) -> None:
    """Refuse other names, whatever is asked."""
    app.before_request(_refuse)


def _refuse() -> tuple[Response, int] | None:
    if request.path in OPEN_PATHS or GATEWAY in request.headers:
        return None
    if _ADDRESS.fullmatch(request.headers.get("Host", "")):
        return None
    return jsonify(error="Host: ask this port by its address, or the gateway by its name"), 421
