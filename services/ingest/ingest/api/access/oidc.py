"""How people log in with OpenID Connect: /session/oidc, where a provider is set."""

import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from flask import Response, request
from markupsafe import escape

from common.browsers import PROVIDER_COOKIES
from common.routes import PREFIX
from ingest.api.access import audited, session
from ingest.api.http.problems import Problem
from ingest.api.http.query import Text
from ingest.api.openapi.declarations import Body, Content, declare
from ingest.assembly import get_context
from ingest.errors import Busy, LogInRefused, StoreUnavailable, TooManyAttempts
from ingest.rules.openid import HOME, MAX_AGE_SECONDS, page_address
from ingest.storage.access.accounts import Account, OtherLogIn, TooManyAccounts
from ingest.web import credentials

if TYPE_CHECKING:
    from ingest.access.oidc import Oidc

_PATH = "/session/oidc"
_CALLBACK = f"{_PATH}/callback"
_LOG_IN = "/monitoring/login"
# As for the session: the first where TLS protects it.
_NEXT = Text("next", "The page to go to after it", "/monitoring/replay")
# Led here by the provider's site, the browser keeps a strict cookie, but does not send it before a
# page of ours has asked for something. So this is a page, and no redirect.
_GO_ON = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Waymark</title>'
    '<meta http-equiv="refresh" content="0;url={page}">'
    '<p>You are logged in: <a href="{page}">go on</a>.</p></html>\n'
)
_LED_BACK = Body(
    "To the log-in page, which says why nobody is logged in.", {}, {"Location": "Where to go"}
)


@declare(
    "GET",
    _PATH,
    summary="Log in with OpenID Connect",
    description="Leads a browser to the provider, which leads it back. For people, not programs.",
    parameters=[_NEXT],
    answers={303: Body("To the provider.", {}, {"Location": "Where to go"})},
    problems=["invalid_request", "not_found"],
    curl="curl -i 'HOST/api/v1/session/oidc'",
    tag="access",
)
def begin_oidc() -> Response:
    """Lead somebody to the provider."""
    oidc, page = _oidc(), page_address(request.args.get("next", ""))
    try:
        begun = oidc.begin(_redirect_uri(), page)
    except LogInRefused as refused:
        return _led_back(refused.why, page)
    except Busy:
        return _led_back("busy", page)
    answer = Response(status=303, headers={"Location": begun.address})
    _keep(answer, begun.kept, MAX_AGE_SECONDS)
    return answer


@declare(
    "GET",
    _CALLBACK,
    summary="Where the provider leads people back to",
    description="Sets the cookie of the session, and leads on to the page.",
    others=True,  # providers add what they like
    parameters=[
        Text("code", "What the provider proves by it, once"),
        Text("state", "As it was sent to the provider"),
        Text("iss", "The provider's name"),
        Text("error", "Why there is no code"),
    ],
    answers={200: Body("Done.", {"text/html": Content(str)}), 303: _LED_BACK},
    problems=["invalid_request", "not_found"],
    curl="curl -i -b cookies 'HOST/api/v1/session/oidc/callback?code=CODE&state=STATE'",
    tag="access",
)
def finish_oidc() -> Response:
    """Begin a session for whom the provider vouches for."""
    oidc = _oidc()
    expected = oidc.expected(credentials.cookie(PROVIDER_COOKIES))
    answer = _finished(oidc, expected) if expected else _led_back("expired", HOME)
    _keep(answer, "", 0)
    return answer


def _finished(oidc: "Oidc", expected: dict[str, str]) -> Response:
    page = expected["page"]
    try:
        account = _account(oidc, expected)
        how = {"provider": account.provider, "role": account.role.value}
        audited.note_of(account.name, "person", "log-in", **how)
    except LogInRefused as refused:
        return _led_back(refused.why, page)
    except (Busy, TooManyAttempts, StoreUnavailable):
        # No 503: strangers could open the gateway's circuit with it.
        return _led_back("busy", page)
    answer = session.begun(account)
    answer.mimetype = "text/html"
    answer.set_data(_GO_ON.format(page=escape(page)))
    return answer


def _account(oidc: "Oidc", expected: dict[str, str]) -> Account:
    context, source = get_context(), credentials.source()
    context.access.attempts.begin("", source)
    try:
        identity = oidc.prove(request.args.to_dict(), expected)
        name = identity.name
        try:
            account = context.access.accounts.vouched_for(*identity, time.time())
        except OtherLogIn:
            raise LogInRefused("taken", name) from None
        except TooManyAccounts:
            raise LogInRefused("full", name) from None
    except (Busy, StoreUnavailable):
        context.access.attempts.undo("", source)
        raise
    except LogInRefused as refused:
        if refused.why in ("away", "cancelled"):  # no guess of anybody
            context.access.attempts.undo("", source)
        if refused.name:  # the provider says so: it is nothing that a stranger typed
            audited.note_of("", "anybody", "log-in refused", refused.name, why=refused.why)
        raise
    context.access.attempts.undo("", source)
    return account


def _oidc() -> "Oidc":
    context = get_context()
    if context.access.oidc is None or context.access.admission.open:
        why = "access is open" if context.access.admission.open else "OIDC_ISSUER is not set"
        raise Problem("not_found", f"nobody can log in like this: {why}")
    return context.access.oidc


def _redirect_uri() -> str:
    """Return the address of `finish_oidc` as the browser knows it: the provider has a list."""
    scheme = "https" if credentials.over_tls() else "http"
    return f"{scheme}://{request.host}{PREFIX}{_CALLBACK}"


def _led_back(why: str, page: str) -> Response:
    address = f"{_LOG_IN}?{urlencode({'problem': why, 'next': page})}"
    return Response(status=303, headers={"Location": address})


def _keep(answer: Response, value: str, seconds: int) -> None:
    """Keep in the browser what is expected of the way back, which another site leads: so `Lax`."""
    answer.headers["Cache-Control"] = "no-store"
    credentials.keep_cookie(answer, PROVIDER_COOKIES, value, seconds, "Lax")
