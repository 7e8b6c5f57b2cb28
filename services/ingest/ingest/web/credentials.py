"""Who makes a request: asked once, on each of the two ways in."""

from flask import Flask, current_app, g, request

from ingest.access.visitor import Credentials, Visitor
from ingest.context import get_context
from ingest.rules import roles


def of_headers(headers: dict[bytes, bytes]) -> Credentials:
    """Return the credentials of a request of the event loop."""
    return Credentials(
        headers.get(b"authorization", b"").decode("latin-1"),
        headers.get(b"cookie", b"").decode("latin-1"),
    )


def init_app(app: Flask) -> None:
    """Let Flask ask before each view; call `check_roles` when all views are there."""
    app.before_request(_admit)


def check_roles(app: Flask) -> None:
    """Raise TypeError when a view declares no role."""
    for view in app.view_functions.values():
        roles.needed(view)


def visitor() -> Visitor:
    """Return who makes Flask's current request."""
    found: Visitor = g.visitor
    return found


def _admit() -> None:
    if request.endpoint is None or request.method == "OPTIONS":
        return  # Flask's own answers: no such address, not with this method, these methods
    needed = roles.needed(current_app.view_functions[request.endpoint])
    given = Credentials(request.headers.get("Authorization", ""), request.headers.get("Cookie", ""))
    g.visitor = get_context().admission.admit(needed, request.path, given)
