"""The screens of the page: HTML without data, which their scripts fetch."""

import re

from flask import (
    Blueprint,
    Response,
    abort,
    current_app,
    g,
    redirect,
    render_template,
    request,
)
from werkzeug.wrappers import Response as BaseResponse

from monitoring import limited, sites

bp = Blueprint("screens", __name__)

# All that a screen needs is a file of ours, and no script of ours makes nodes from text.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
# Published on all addresses of the machine: the visitor knows one of them.
EVERY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104  # nothing listens here
# Each screen of the navigation, and the question that it answers.
SCREENS = {
    "live": "Where is everyone?",
    "replay": "Where was …?",
    "coverage": "What is unwatched?",
    "people": "Who is who?",
    "directory": "Which beacons are there?",
    "system": "Is it healthy?",
    "access": "Who may do what?",
}
# Why a log-in at the provider led to none, by the words of the ingest service.
PROBLEMS = {
    "away": "{} does not answer. Try again.",
    "busy": "Too many log in just now. Try again.",
    "cancelled": "The log-in was cancelled.",
    "expired": "The log-in took too long, or another was begun meanwhile. Try again.",
    "failed": "The log-in failed: the log of Waymark says why.",
    "full": "Waymark has too many accounts. Ask whoever looks after it to remove some.",
    "stranger": "You may not use Waymark. Ask whoever looks after it.",
    "taken": "There is another account of your name. Ask whoever looks after Waymark to remove it.",
    "unnamed": "{} told no name that Waymark could use.",
    "unverified": "{} does not say that your e-mail address is verified.",
}
FOR_ADMINS = {"access"}
# What is reached by one's own name instead.
TITLES = SCREENS | {"account": "Your account"}
# And where several are set up.
SITES = {"sites": "Who is where, at all sites?"}
# What is only behind the gateway, for those who are known.
MANAGING = {"access", "account"}


@bp.get("/monitoring", strict_slashes=False)
@bp.get("/monitoring/<screen>")
def show(screen: str = "live") -> Response:
    """Answer one screen."""
    several = SITES if sites.of_application().all else {}
    titles = TITLES | several
    if screen not in titles:
        abort(404)
    limited.check(allowed=screen == limited.SCREEN)
    limits = limited.limits()
    visitor = g.get("visitor")  # None: access is open
    is_admin = visitor is None or visitor.role == "admin"
    if screen in FOR_ADMINS and not is_admin:
        return _page("forbidden.html", 403)
    screens = [name for name in SCREENS if is_admin or name not in FOR_ADMINS]
    screens += several
    if limits:
        screens = [screen]
    behind_gateway = "X-Forwarded-Proto" in request.headers
    is_known = visitor is not None and behind_gateway
    is_wall = screen == "live" and "wall" in request.args
    template = f"{'wall' if is_wall else screen}.html"
    return _page(
        template if is_known or screen not in MANAGING else "unmanaged.html",
        screen=screen,
        title=titles[screen],
        screens=screens,
        limits=limits,
        gateway=_public_gateway(),
        # On this service's own port there is no gateway: the page reads here and cannot edit.
        api="/api/v1" if behind_gateway else "/monitoring/api",
        behind_gateway=behind_gateway,
        gap_minutes=current_app.config["COVERAGE_GAP_MINUTES"],
        lost_minutes=current_app.config["LOST_CONTACT_MINUTES"],
    )


@bp.get("/monitoring/login")
def log_in() -> Response:
    """Answer the page on which people log in: it needs no data, and nobody to be known."""
    provider = current_app.config["OIDC_NAME"]
    problem = PROBLEMS.get(request.args.get("problem", ""), "").format(provider)
    return _page(
        "login.html",
        provider=provider,
        problem=problem[:1].upper() + problem[1:],
        next=request.args.get("next", ""),  # the ingest service says where it may lead
    )


def _page(template: str, status: int = 200, **words: object) -> Response:
    """Return a page on which nothing but our own files is run or shown."""
    response = Response(render_template(template, **words), status)
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
