"""The five screens of the page: HTML without data, which their scripts fetch."""

import re

from flask import (
    Blueprint,
    Response,
    abort,
    current_app,
    redirect,
    render_template,
    request,
)
from werkzeug.wrappers import Response as BaseResponse

from monitoring import one_level

bp = Blueprint("screens", __name__)

# All that a screen needs is a file of ours, and no script of ours makes nodes from text.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
# Published on all addresses of the machine: the visitor knows one of them.
EVERY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104  # nothing listens here
# Each screen, and the question that it answers.
SCREENS = {
    "live": "Where is everyone?",
    "replay": "Where was …?",
    "coverage": "What is unwatched?",
    "directory": "Which beacons are there?",
    "system": "Is it healthy?",
}


@bp.get("/monitoring", strict_slashes=False)
@bp.get("/monitoring/<screen>")
def show(screen: str = "live") -> Response:
    """Answer one screen."""
    if screen not in SCREENS:
        abort(404)
    one_level.check(allowed=screen == one_level.SCREEN)
    level = one_level.level()
    behind_gateway = "X-Forwarded-Proto" in request.headers
    return _page(
        f"{screen}.html",
        screen=screen,
        screens=SCREENS if level is None else {screen: SCREENS[screen]},
        level=level,
        gateway=_public_gateway(),
        # On this service's own port there is no gateway: the page reads here and cannot edit.
        api="/api/v1" if behind_gateway else "/monitoring/api",
        behind_gateway=behind_gateway,
        gap_minutes=current_app.config["COVERAGE_GAP_MINUTES"],
    )


@bp.get("/monitoring/login")
def log_in() -> Response:
    """Answer the page on which people log in: it needs no data, and nobody to be known."""
    return _page("login.html")


def _page(template: str, **words: object) -> Response:
    """Return a page on which nothing but our own files is run or shown."""
    response = Response(render_template(template, **words))
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    response.headers["Cache-Control"] = "no-cache"
    return response


def _public_gateway() -> str:
    """Return the gateway's address as this visitor knows it, for the example on the page."""
    scheme = request.headers.get("X-Forwarded-Proto")
    if scheme in ("http", "https"):  # set by the gateway, absent on this service's own port
        return f"{scheme}://{request.host}"
    url = str(current_app.config["PUBLIC_URL"])
    host = re.sub(r":\d+$", "", request.host)
    for every_address in EVERY_ADDRESS:
        url = url.replace(f"//{every_address}", f"//{host}", 1)
    return url


@bp.get("/")
def home() -> BaseResponse:
    """Lead to the page."""
    return redirect("/monitoring")
