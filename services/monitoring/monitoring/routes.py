"""The monitoring page and the data behind it."""

import time
from typing import cast

from flask import Blueprint, Response, current_app, jsonify, redirect, render_template, request
from werkzeug.wrappers import Response as BaseResponse

from monitoring.snapshot import SnapshotReader

bp = Blueprint("page", __name__)

CONTENT_SECURITY_POLICY = "default-src 'self'; frame-ancestors 'self'; base-uri 'none'"


@bp.get("/monitoring", strict_slashes=False)
def page() -> Response:
    """Answer the page; it fetches its data itself."""
    response = Response(render_template("monitoring.html", gateway=_public_gateway()))
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response


def _public_gateway() -> str:
    """Return the gateway's address as this visitor knows it, for the example on the page."""
    scheme = request.headers.get("X-Forwarded-Proto")
    if scheme in ("http", "https"):  # set by the gateway, absent on our own port
        return f"{scheme}://{request.host}"
    return str(current_app.config["PUBLIC_URL"])


@bp.get("/monitoring/latest")
def latest() -> Response:
    """Answer the newest snapshot; `now` lets a page with a wrong clock tell ages."""
    snapshot = cast(SnapshotReader, current_app.extensions["snapshot"]).latest()
    response = jsonify(snapshot._asdict() | {"now": time.time()})
    response.headers["Cache-Control"] = "no-store"
    return response


@bp.get("/")
def home() -> BaseResponse:
    """Lead to the page."""
    return redirect("/monitoring")


@bp.get("/healthz")
def healthz() -> Response:
    """Answer as long as the process lives."""
    return jsonify(status="ok")
