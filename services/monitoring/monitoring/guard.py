"""Who may see the page: asked of an ingest service, and remembered for a moment.

Only an ingest service knows tokens and sessions. While none answers, what was known holds: just
then the page must show who was where.
"""

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from flask import Flask, Response, current_app, g, jsonify, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from common.browsers import SESSION_COOKIES
from monitoring import limited, static_files
from monitoring.gateway import OPEN, UNKNOWN, GatewayResponse, GatewayUnavailable

# With the 10 s of the ingest services within the 30 s in which a revocation acts.
REMEMBER_SECONDS = 10.0
OLD_SECONDS = 20.0  # where it could not be asked again in time
MAX_REMEMBERED = 500
# Guessed credentials must not take the requests that the page itself needs.
MAX_ASKING = 2
ASK_WAIT_SECONDS = 1.0
PATH = "/api/v1/session"
LOGIN = "/monitoring/login"
# What strangers get: health, the answers of an open circuit, and what the log-in shows.
PUBLIC_VIEWS = {"liveness.healthz", "fallback.circuit_open", "screens.log_in"}
LOGIN_SCRIPT = "screens/login.js"
PUBLIC_FILES = {"style.css", "icon.svg", "boot.js", LOGIN_SCRIPT}

Credentials = dict[str, str]  # the headers that name a visitor


class Visitor(NamedTuple):
    """What an ingest service said of credentials, and when."""

    status: int  # 200: may read; 401: a stranger; 403: the role is too small
    asked_at: float = 0.0
    expires_at: float = float("inf")
    name: str = ""
    kind: str = ""  # "person", "token"
    role: str = ""
    level: str | None = None  # the only one that they may see
    has_session: bool = False  # and so can log out
    admins: tuple[str, ...] = ()  # those whom a visitor asks who may only read
    team: str | None = None  # the only one whose people they may see


STRANGER = Visitor(401)


class CannotTell(Exception):
    """No ingest service answers, and these credentials were never seen."""


class Guard:
    """Tells whether credentials may read; `ask` sends them to an ingest service."""

    def __init__(
        self,
        ask: Callable[[str, Credentials], GatewayResponse],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ask = ask
        self._clock = clock
        # The last asked at the end. There are two, so that no stranger crowds out a reader.
        self._readers: OrderedDict[bytes, Visitor] = OrderedDict()
        self._others: OrderedDict[bytes, Visitor] = OrderedDict()
        self._changing = threading.Lock()
        self._asking = threading.Semaphore(MAX_ASKING)

    def visitor(self, credentials: Credentials) -> Visitor:
        """Return who that is. Raises CannotTell."""
        if not credentials:
            return STRANGER
        key = hashlib.sha256(json.dumps(credentials, sort_keys=True).encode()).digest()
        known = self._readers.get(key) or self._others.get(key)
        if known is None or not 0 <= self._clock() - known.asked_at < REMEMBER_SECONDS:
            known = self._asked(key, credentials, known)
        return known if self._clock() < known.expires_at else STRANGER

    def _asked(self, key: bytes, credentials: Credentials, known: Visitor | None) -> Visitor:
        # A new visitor waits for no other: strangers must not hold this service's threads.
        if not self._asking.acquire(timeout=ASK_WAIT_SECONDS if known else 0):
            return self._old(known)
        try:
            answer = self._ask(PATH, credentials)
        except GatewayUnavailable as error:
            return self._old(known, outage=error.circuit in (OPEN, UNKNOWN))
        finally:
            self._asking.release()
        known = Visitor(answer.status, self._clock())
        if answer.status == 200:
            account = json.loads(answer.body)
            until = account["expires_at"] or known.expires_at
            fields = {name: account[name] for name in ("name", "kind", "role", "level")}
            fields |= {
                "team": account.get("team"),  # an older release knows none
                "has_session": "csrf_token" in account,
                "admins": tuple(account.get("admins", ())),
            }
            known = known._replace(expires_at=until, **fields)
        with self._changing:
            self._readers.pop(key, None)
            self._others.pop(key, None)
            kept = self._readers if known.status == 200 else self._others
            kept[key] = known
            while len(kept) > MAX_REMEMBERED:
                kept.popitem(last=False)
        return known

    def _old(self, known: Visitor | None, *, outage: bool = False) -> Visitor:
        """Return what was known: in an outage however old it is."""
        if known and (outage or self._clock() - known.asked_at < OLD_SECONDS):
            return known
        raise CannotTell


def init_app(app: Flask, guard: Guard) -> None:
    """Let Flask ask before each view, once it has its static files."""
    app.extensions["guard"] = guard
    imported = static_files.imported(LOGIN_SCRIPT, app.extensions["static_files"])
    app.extensions["public_files"] = PUBLIC_FILES.union(imported)
    app.before_request(_admit)
    app.context_processor(lambda: {"visitor": g.get("visitor")})


def _admit() -> BaseResponse | None:
    if request.endpoint is None or request.endpoint in PUBLIC_VIEWS or _is_public_file():
        return None
    over_tls = request.headers.get("X-Forwarded-Proto") == "https"
    names = SESSION_COOKIES[:1] if over_tls else SESSION_COOKIES
    sessions = [f"{name}={request.cookies[name]}" for name in names if name in request.cookies]
    values = {
        "Authorization": request.headers.get("Authorization", ""),
        "Cookie": "; ".join(sessions),  # and nobody else's
    }
    credentials = {name: value for name, value in values.items() if value}
    try:
        g.visitor = current_app.extensions["guard"].visitor(credentials)
    except CannotTell:
        response = jsonify(error="no ingest service answers, and only they know who may read")
        response.status_code, response.headers["Retry-After"] = 503, "5"
        return response
    if g.visitor.status != 200:
        return _refusal(g.visitor.status)
    limited.check_view()
    return None


def _is_public_file() -> bool:
    named = (request.view_args or {}).get("filename")
    return request.endpoint == "static" and named in current_app.extensions["public_files"]


def _refusal(status: int) -> BaseResponse:
    """Lead people to the log-in, and tell programs."""
    if request.method == "GET" and "text/html" in request.headers.get("Accept", ""):
        return redirect(f"{LOGIN}?next={quote(request.full_path.removesuffix('?'))}", 303)
    if status == 403:
        return _error(403, "the role of this token or account may not read")
    response = _error(401, "needs a valid token: send it as `Authorization: Bearer ...`")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _error(status: int, text: str) -> Response:
    response = jsonify(error=text)
    response.status_code = status
    return response
