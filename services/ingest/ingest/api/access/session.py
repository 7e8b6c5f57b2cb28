"""Who is asking, and how people log in and out: /session."""

import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from flask import Response, request
from msgspec import UNSET, Meta, Struct, UnsetType

from common.browsers import DEVICE_COOKIES, SESSION_COOKIES
from ingest.access import devices
from ingest.access.sessions import TokenSession
from ingest.access.visitor import Visitor
from ingest.api.access import audited
from ingest.api.http import bodies, responses
from ingest.api.http.problems import Problem, invalid
from ingest.api.http.query import Flag
from ingest.api.http.readers import read_all
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody
from ingest.assembly import get_context
from ingest.errors import AUTHENTICATE, Forbidden, ParameterError, StoreUnavailable
from ingest.rules import accounts as rules
from ingest.rules.roles import Role, Tells
from ingest.storage.access.accounts import Account
from ingest.web import credentials

_ALONE = "there is no session of a person: only who logged in with name and password has one"
MAX_ADMINS = 5
_EVERYTHING = Flag("everything", "`1`: 403 for who may see one level or team alone")
LOGGED_OUT = {204: Body("The cookie is no longer valid here.", {})}
LOG_IN_PROBLEMS = [
    "invalid_request",
    "not_found",
    "too_large",
    "unsupported_media_type",
    "too_many_attempts",
    "too_many_waiting",
    "store_unavailable",
]

Password = Annotated[str, Meta(min_length=1, max_length=rules.MAX_PASSWORD)]


class Session(ResponseBody):
    """Whoever makes the request."""

    name: Annotated[
        str, Meta(description="Of a person, or the label of a token; empty where access is open")
    ]
    kind: Annotated[
        str,
        Meta(
            description="By what they are known; `anybody`: access is open",
            extra_json_schema={"enum": ["anybody", "person", "token"]},
        ),
    ]
    role: Annotated[
        str,
        Meta(description="What they may do", extra_json_schema={"enum": [r.value for r in Role]}),
    ]
    level: Annotated[str | None, Meta(description="The only level that they may see")]
    team: Annotated[str | None, Meta(description="The only team whose people they may see")]
    expires_at: Annotated[int | None, Meta(description="Until when, unix seconds")]
    csrf_token: Annotated[
        str | UnsetType,
        Meta(description="Of a session: to be sent as `X-CSRF-Token` with each write"),
    ] = UNSET
    admins: Annotated[
        list[str] | UnsetType,
        Meta(description=f"Whom a person asks who may only read, {MAX_ADMINS} at most"),
    ] = UNSET


class LogIn(Struct):
    """Name and password; fields of other names are ignored."""

    name: Annotated[str, Meta(min_length=1, description="Case does not matter")]
    password: Password


class ShownToken(Struct, forbid_unknown_fields=True):
    """A token instead: that of a wall link, or whatever a program sends."""

    token: Annotated[str, Meta(min_length=1)]


@declare(
    "GET",
    "/session",
    tells=Tells.NONE,
    tells_team=Tells.NONE,
    summary="Who makes this request, and what they may do",
    parameters=[_EVERYTHING],
    answers=declarations.gives(Session),
    problems=["invalid_request"],
    curl="curl 'HOST/api/v1/session' -H \"Authorization: Bearer $TOKEN\"",
    tag="access",
)
def session() -> Response:
    """Answer who is asking."""
    visitor = credentials.visitor()
    if _EVERYTHING.read(request.args) and visitor.limits:
        raise Forbidden(f"this link or token shows {visitor.limits} alone")
    return _answer(visitor)


@declare(
    "POST",
    "/session",
    summary="Log in with name and password, or with a token",
    description="The answer sets a cookie that is the session, for 12 hours at most; that of a"
    " token of the role `read` lasts as long as the token. After some failures the next attempt has"
    " to wait, longer each time.",
    body=Body(
        "Who it is.",
        {
            JSON: Content(
                (LogIn, ShownToken),
                example={"name": "anna", "password": "correct horse battery"},
            )
        },
    ),
    answers=declarations.gives(Session),
    problems=["unauthenticated", "forbidden", *LOG_IN_PROBLEMS],
    curl="curl -c cookies 'HOST/api/v1/session' -H 'Content-Type: application/json'"
    """ -d '{"name": "anna", "password": "correct horse battery"}'""",
    tag="access",
)
def log_in() -> Response:
    """Begin a new session, whatever was sent before."""
    context = get_context()
    if context.access.admission.open or not context.access.sessions.possible:
        why = "access is open" if context.access.admission.open else "SESSION_KEY_FILE is not set"
        raise Problem("not_found", f"nobody can log in here: {why}")
    body = bodies.json_object()
    if "token" in body:
        return _log_in_by_token(body)
    values, faults = read_all({"name": rules.any_text, "password": rules.password}, body)
    if faults:
        raise invalid(faults)
    name, account = context.access.login.prove(
        values["name"], values["password"], credentials.source()
    )
    if account is None:
        audited.note_of("", "anybody", "log-in refused", name)
        raise _unproved("wrong name or password")
    audited.note_of(name, "person", "log-in")
    return begun(account)


def _log_in_by_token(body: Mapping[str, Any]) -> Response:
    if len(body) > 1:
        raise ParameterError("token", "comes alone: send it, or name and password")
    visitor = get_context().access.login.holder(rules.any_text(body, "token"), credentials.source())
    if visitor and not visitor.role.allows(Role.READ):
        raise Forbidden(f"a token of the role {visitor.role.value} cannot log in")
    context = get_context()
    # A token is as good without a log-in, which needs no database either: a wall screen that starts
    # while that is away shows who is where.
    with suppress(StoreUnavailable):
        if visitor is None:
            audited.note_of("", "anybody", "log-in refused", "a token")
        elif not context.database.availability.away and context.access.throttle.passes(
            "log-in", visitor.token_id
        ):
            audited.note_of(visitor.name, "token", "log-in", visitor.token_id)
    if visitor is None:
        raise _unproved("no valid token: it was revoked, or has expired")
    text, made = context.access.sessions.issue_to(visitor)
    answer = _answer(made)
    lasts = int((made.expires_at or sys.maxsize) - time.time())
    # A wall screen's outlives the browser.
    _set_cookie(
        answer, text, min(lasts, devices.MAX_AGE_SECONDS) if made.role is Role.READ else None
    )
    return answer


def _unproved(detail: str) -> Problem:
    return Problem("unauthenticated", detail, headers={"WWW-Authenticate": AUTHENTICATE})


@declare(
    "DELETE",
    "/session",
    tells=Tells.NONE,
    tells_team=Tells.NONE,
    summary="Log out here",
    answers=LOGGED_OUT,
    problems=["not_found", "store_unavailable"],
    curl="curl -b cookies -X DELETE 'HOST/api/v1/session' -H \"X-CSRF-Token: $CSRF\"",
    tag="access",
)
def log_out() -> Response:
    """Take the cookie back."""
    visitor = credentials.visitor()
    if not visitor.csrf:
        raise Problem("not_found", "there is no session")
    if get_context().access.throttle.passes(
        "log-out", f"{visitor.kind} {visitor.token_id or visitor.name}"
    ):
        audited.note("log-out")
    return without_cookie()


def person() -> Visitor:
    """Return the person who makes this request."""
    visitor = credentials.visitor()
    if visitor.kind != "person":
        raise Problem("not_found", _ALONE)
    return visitor


def begun(account: Account) -> Response:
    """Answer a new session, with its cookie."""
    sessions = get_context().access.sessions
    text = sessions.issue(account.name, account.role, account.epoch)
    made = sessions.read(text)
    if made is None or isinstance(made, TokenSession):
        raise RuntimeError("a session that has just been issued is none")
    answer = _answer(Visitor(made.name, "person", made.role, made.expires_at, made.csrf))
    _set_cookie(answer, text)
    # Also led here by a provider's site, and that keeps nobody out: so `Lax`.
    kept = get_context().access.devices.issue(credentials.device(), account.name)
    credentials.keep_cookie(answer, DEVICE_COOKIES, kept, devices.MAX_AGE_SECONDS, "Lax")
    return answer


def _answer(visitor: Visitor) -> Response:
    asks = visitor.kind == "person" and visitor.role is Role.READ
    answer = responses.as_json(
        Session(
            visitor.name,
            visitor.kind,
            visitor.role.value,
            visitor.level,
            visitor.team,
            visitor.expires_at,
            visitor.csrf or UNSET,
            get_context().access.cache.admins()[:MAX_ADMINS] if asks else UNSET,
        )
    )
    answer.headers["Cache-Control"] = "no-store"
    return answer


def without_cookie() -> Response:
    """Answer that the session has ended here."""
    answer = Response(status=204)
    _set_cookie(answer, "", max_age=0)
    return answer


def _set_cookie(answer: Response, value: str, max_age: int | None = None) -> None:
    """Keep a session in the browser until it ends, for no other site."""
    credentials.keep_cookie(answer, SESSION_COOKIES, value, max_age, "Strict")
