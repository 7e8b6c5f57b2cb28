"""What people change about their own account: /session/everywhere and /session/password."""

import time
from typing import Annotated

from flask import Response
from msgspec import Meta, Struct

from ingest.api.access import audited, session
from ingest.api.http import bodies
from ingest.api.http.problems import invalid
from ingest.api.http.readers import read_all
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.assembly import get_context
from ingest.errors import ParameterError
from ingest.rules import accounts as rules
from ingest.web import credentials

NewPassword = Annotated[
    str,
    Meta(
        min_length=rules.MIN_PASSWORD,
        max_length=rules.MAX_PASSWORD,
        description="Any characters; long is what makes it good",
    ),
]


class PasswordChange(Struct):
    """The password that holds, and the one to come."""

    old: session.Password
    new: NewPassword


@declare(
    "POST",
    "/session/everywhere",
    summary="Log out everywhere",
    description="All sessions of who asks end, on all machines: within 10 s at every service.",
    answers=session.LOGGED_OUT,
    problems=["not_found", "store_unavailable"],
    curl="curl -b cookies -X POST 'HOST/api/v1/session/everywhere' -H \"X-CSRF-Token: $CSRF\"",
    tag="access",
)
def log_out_everywhere() -> Response:
    """End all sessions of an account."""
    context = get_context()
    context.access.accounts.end_sessions(session.person().name, time.time())
    audited.note("log-out everywhere")
    context.access.cache.refresh()
    return session.without_cookie()


@declare(
    "PUT",
    "/session/password",
    summary="Change one's own password",
    description="All sessions end but this one, which gets a new cookie.",
    body=Body("Both.", {JSON: Content(PasswordChange)}),
    answers=declarations.gives(session.Session),
    problems=session.LOG_IN_PROBLEMS,
    curl="curl -b cookies -X PUT 'HOST/api/v1/session/password' -H \"X-CSRF-Token: $CSRF\""
    """ -H 'Content-Type: application/json'"""
    """ -d '{"old": "correct horse battery", "new": "another horse, a longer one"}'""",
    tag="access",
)
def change_password() -> Response:
    """Replace a password by who knows it."""
    context, visitor = get_context(), session.person()
    readers = {"old": rules.password, "new": rules.new_password}
    values, faults = read_all(readers, bodies.json_object())
    if faults:
        raise invalid(faults)
    _, account = context.access.login.prove(visitor.name, values["old"], credentials.source())
    if account:
        new = context.access.passwords.hash(values["new"])
        account = context.access.accounts.change_password(account, new, time.time())
    if account is None:
        audited.note("password change refused")
        raise ParameterError("old", "is not the password")
    audited.note("password change")
    context.access.cache.refresh()
    return session.begun(account)
