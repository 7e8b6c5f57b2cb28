"""Who makes a request: asked once, on each of the two ways in."""

from flask import Flask, Response, current_app, g, request

from common.browsers import DEVICE_COOKIES
from common.routes import OWNTRACKS
from ingest.access.attempts import Source
from ingest.access.devices import Device
from ingest.access.visitor import Credentials, Visitor
from ingest.assembly import get_context
from ingest.rules import roles
from ingest.web import owntracks_sender
from ingest.web.request import Request


def of_headers(headers: dict[bytes, bytes], method: str = "") -> Credentials:
    """Return the credentials of a request of the event loop."""
    authorization = headers.get(b"authorization", b"").decode("latin-1")
    cookie = headers.get(b"cookie")
    if not cookie:  # a phone
        return Credentials(authorization)
    return Credentials(
        authorization,
        cookie.decode("latin-1"),
        method,
        headers.get(b"x-csrf-token", b"").decode("latin-1"),
        headers.get(b"x-forwarded-proto") == b"https",
    )


def of_request(request: Request) -> Credentials:
    """Return the credentials of a request of the event loop, as its address takes them."""
    if request.path == OWNTRACKS.path:
        return owntracks_sender.credentials(request.header(b"authorization"), request.query)
    return of_headers(request.headers, request.method)


def init_app(app: Flask) -> None:
    """Let Flask ask before each view; call `check_roles` when all views are there."""
    app.before_request(_admit)


def check_roles(app: Flask) -> None:
    """Raise TypeError when a view declares no role."""
    for view in app.view_functions.values():
        roles.needed(view)


def visitor() -> Visitor:
    """Return who makes Flask's current request."""
    current: Visitor = g.visitor
    return current


def address() -> str:
    """Return the address that Flask's current request comes from, as the gateway tells it."""
    peer = request.remote_addr or ""
    return request.headers.get("X-Forwarded-For", peer).rpartition(",")[2].strip()[:45] or peer


def device() -> Device | None:
    """Return the browser of Flask's current request, None for one that no service knows."""
    return get_context().access.devices.read(cookie(DEVICE_COOKIES))


def source() -> Source:
    """Return where Flask's current request comes from, to count attempts to log in."""
    return Source(address(), device())


def over_tls() -> bool:
    """Tell whether Flask's current request came over TLS, as the gateway tells it."""
    return request.headers.get("X-Forwarded-Proto") == "https"


def cookie(names: tuple[str, str]) -> str:
    """Return a cookie of Flask's current request, "" for none: over TLS by its first name alone."""
    sent = (name for name in names[: 1 if over_tls() else 2] if name in request.cookies)
    return next((request.cookies[name] for name in sent), "")


def keep_cookie(
    answer: Response, names: tuple[str, str], value: str, max_age: int | None, samesite: str
) -> None:
    """Have the browser keep a cookie for nobody's scripts, under the name that `cookie` reads."""
    secure = over_tls()
    answer.set_cookie(
        names[0 if secure else 1],
        value,
        max_age=max_age,
        secure=secure,
        httponly=True,
        samesite=samesite,
    )


def _admit() -> None:
    if request.endpoint is None or request.method == "OPTIONS":
        return  # Flask's own answers: no such address, not with this method, these methods
    view = current_app.view_functions[request.endpoint]
    authorization = request.headers.get("Authorization", "")
    if request.path == OWNTRACKS.path:
        presented = owntracks_sender.credentials(authorization, request.query_string)
    else:
        presented = Credentials(
            authorization,
            request.headers.get("Cookie", ""),
            request.method,
            request.headers.get("X-CSRF-Token", ""),
            over_tls(),
        )
    needed, scope = roles.needed(view), roles.scope_of(view, request.args)
    g.visitor = get_context().access.admission.admit(needed, request.path, presented, scope)
