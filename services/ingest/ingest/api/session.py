"""Who is asking, and how people log in and out: /session."""

from typing import Annotated

from flask import Response
from msgspec import UNSET, Meta, Struct, UnsetType

from ingest.access.admission import COOKIE, SECURE_COOKIE
from ingest.access.visitor import Visitor
from ingest.api import audited, bodies, openapi, responses
from ingest.api.openapi import JSON, Body, Content, declare
from ingest.api.problems import Problem, invalid
from ingest.api.readers import read_all
from ingest.api.schema_fields import ResponseBody
from ingest.context import get_context
from ingest.errors import AUTHENTICATE
from ingest.rules import accounts as rules
from ingest.rules.roles import Role
from ingest.storage.accounts import Account
from ingest.web import credentials

_ALONE = "there is no session: only people who logged in with name and password have one"
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
    expires_at: Annotated[int | None, Meta(description="Until when, unix seconds")]
    csrf_token: Annotated[
        str | UnsetType,
        Meta(description="Of a person: to be sent as `X-CSRF-Token` with each write"),
    ] = UNSET


class LogIn(Struct):
    """Name and password; fields of other names are ignored."""

    name: Annotated[str, Meta(min_length=1, description="Case does not matter")]
    password: Password


@declare(
    "GET",
    "/session",
    role=Role.READ,
    summary="Who makes this request, and what they may do",
    answers=openapi.gives(Session),
    curl="curl 'HOST/api/v1/session' -H \"Authorization: Bearer $TOKEN\"",
    tag="access",
)
def session() -> Response:
    """Answer who is asking."""
    return _answer(credentials.visitor())


@declare(
    "POST",
    "/session",
    role=Role.NOBODY,
    summary="Log in with name and password",
    description="The answer sets a cookie that is the session, for 12 hours at most. After some"
    " failures the next attempt has to wait, longer each time.",
    body=Body(
        "Who it is.",
        {JSON: Content(LogIn, example={"name": "anna", "password": "correct horse battery"})},
    ),
    answers=openapi.gives(Session),
    problems=["unauthenticated", *LOG_IN_PROBLEMS],
    curl="curl -c cookies 'HOST/api/v1/session' -H 'Content-Type: application/json'"
    """ -d '{"name": "anna", "password": "correct horse battery"}'""",
    tag="access",
)
def log_in() -> Response:
    """Begin a new session, whatever was sent before."""
    context = get_context()
    if context.admission.open or not context.sessions.possible:
        why = "access is open" if context.admission.open else "SESSION_KEY_FILE is not set"
        raise Problem("not_found", f"nobody can log in here: {why}")
    given = bodies.json_object()
    values, errors = read_all({"name": rules.any_text, "password": rules.password}, given)
    if errors:
        raise invalid(errors)
    name, account = context.login.prove(values["name"], values["password"], credentials.address())
    if account is None:
        audited.note_of("", "anybody", "log-in refused", name)
        headers = {"WWW-Authenticate": AUTHENTICATE}
        raise Problem("unauthenticated", "wrong name or password", headers=headers)
    audited.note_of(name, "person", "log-in")
    return begun(account)


@declare(
    "DELETE",
    "/session",
    role=Role.READ,
    summary="Log out here",
    answers=LOGGED_OUT,
    problems=["not_found", "store_unavailable"],
    curl="curl -b cookies -X DELETE 'HOST/api/v1/session' -H \"X-CSRF-Token: $CSRF\"",
    tag="access",
)
def log_out() -> Response:
    """Take the cookie back."""
    person()
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
    sessions = get_context().sessions
    text = sessions.issue(account.name, account.role, account.epoch)
    made = sessions.read(text)
    if made is None:
        raise RuntimeError("a session that has just been issued is none")
    answer = _answer(Visitor(made.name, "person", made.role, made.expires_at, made.csrf))
    _set_cookie(answer, text)
    return answer


def _answer(visitor: Visitor) -> Response:
    answer = responses.as_json(
        Session(
            visitor.name,
            visitor.kind,
            visitor.role.value,
            visitor.expires_at,
            visitor.csrf or UNSET,
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
    """Keep a session in the browser until it ends, for nobody's scripts and no other site."""
    secure = credentials.over_tls()
    answer.set_cookie(
        SECURE_COOKIE if secure else COOKIE,
        value,
        max_age=max_age,
        secure=secure,
        httponly=True,
        samesite="Strict",
    )
