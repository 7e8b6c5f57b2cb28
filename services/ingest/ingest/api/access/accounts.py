"""The people who may log in: /accounts, for admins."""

import time
from collections.abc import Mapping
from typing import Annotated, Any

from flask import Response, request
from msgspec import UNSET, Meta, Struct, UnsetType

from ingest.api.access import audited
from ingest.api.access.own_account import NewPassword
from ingest.api.http import bodies, responses
from ingest.api.http.problems import Problem, invalid
from ingest.api.http.query import IF_NEW, Text
from ingest.api.http.readers import Reader, read_all
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody, Seconds
from ingest.assembly import get_context
from ingest.errors import ParameterError
from ingest.rules import accounts as rules
from ingest.rules.roles import Role
from ingest.storage.access.accounts import (
    Account,
    AlreadyThere,
    LastAdmin,
    NoPassword,
    OtherLogIn,
    TooManyAccounts,
)

# A person logs in to look or to manage; phones have tokens.
ROLES = (Role.READ.value, Role.ADMIN.value)
_NAME = Text("name", "Name, any case", "anna", "path", "[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_LAST = "this is the last admin: make somebody else admin first"
_VOUCHED_FOR = "this person logs in with OpenID Connect: the settings tell their role"

PersonRole = Annotated[
    str, Meta(description="What they may do", extra_json_schema={"enum": list(ROLES)})
]


class Person(ResponseBody):
    """Somebody who may log in."""

    name: Annotated[str, Meta(description="What they log in with")]
    role: PersonRole
    created_at: Seconds
    provider: Annotated[
        str, Meta(description="Who vouches for them (OpenID Connect); empty: they have a password")
    ]


class People(ResponseBody):
    """All who may log in, by name."""

    data: list[Person]


class PersonInput(Struct):
    """What somebody may do; without a password theirs stays."""

    role: PersonRole
    password: NewPassword | UnsetType = UNSET


@declare(
    "GET",
    "/accounts",
    summary="Who may log in",
    answers=declarations.gives(People),
    problems=["store_unavailable"],
    curl="curl 'HOST/api/v1/accounts' -H \"Authorization: Bearer $TOKEN\"",
    tag="access",
)
def accounts() -> Response:
    """Answer everybody who may log in."""
    everyone = get_context().access.accounts.everyone()
    return responses.as_json(People([_person(account) for account in everyone]))


@declare(
    "PUT",
    "/accounts/<name>",
    summary="Make or change an account",
    description="A new one needs a password. A new password ends all sessions of the account.",
    parameters=[_NAME, IF_NEW],
    body=Body("What they may do.", {JSON: Content(PersonInput, example={"role": "read"})}),
    answers=declarations.gives(Person),
    problems=[
        "invalid_request",
        "conflict",
        "precondition_failed",
        "too_large",
        "unsupported_media_type",
        "too_many_waiting",
        "store_unavailable",
    ],
    curl="curl -X PUT 'HOST/api/v1/accounts/anna' -H \"Authorization: Bearer $TOKEN\""
    """ -H 'Content-Type: application/json' -d '{"role": "read"}'""",
    tag="access",
)
def put_account(name: str) -> Response:
    """Make an account, or give it another role or password."""
    audited.refuse_anybody()
    body = bodies.json_object() | {"name": name}
    readers: dict[str, Reader] = {"name": rules.new_name, "role": _role}
    if "password" in body:
        readers["password"] = rules.new_password
    values, faults = read_all(readers, body)
    if faults:
        raise invalid(faults)
    context = get_context()
    password = values.get("password")
    stored = context.access.passwords.hash(password) if password else None
    try:
        done = context.access.accounts.put(
            values["name"],
            values["role"],
            stored,
            time.time(),
            only_new=request.if_none_match.star_tag,
        )
    except AlreadyThere:
        why = f"{values['name']} is there already: edit that account"
        raise Problem("precondition_failed", why) from None
    except NoPassword:
        raise Problem("conflict", "there is no such account: a new one needs a password") from None
    except LastAdmin:
        raise Problem("conflict", _LAST) from None
    except OtherLogIn:
        raise Problem("conflict", _VOUCHED_FOR) from None
    except TooManyAccounts:
        raise Problem("conflict", "there are too many accounts: remove some first") from None
    audited.note("account put", done.name, role=done.role.value, new_password=password is not None)
    context.access.cache.refresh()
    return responses.as_json(_person(done))


@declare(
    "DELETE",
    "/accounts/<name>",
    summary="Remove an account",
    description="Its sessions end within 10 s at every service. An account that is not there is"
    " success too: the answer to a repeat is the same.",
    parameters=[_NAME],
    answers={204: Body("There is no such account.", {})},
    problems=["invalid_request", "conflict", "store_unavailable"],
    curl="curl -X DELETE 'HOST/api/v1/accounts/anna' -H \"Authorization: Bearer $TOKEN\"",
    tag="access",
)
def delete_account(name: str) -> Response:
    """Remove an account."""
    context = get_context()
    wanted = rules.new_name({"name": name}, "name")
    try:
        context.access.accounts.remove(wanted)
    except LastAdmin:
        raise Problem("conflict", _LAST) from None
    audited.note("account removed", wanted)
    context.access.cache.refresh()
    return Response(status=204)


def _person(account: Account) -> Person:
    return Person(account.name, account.role.value, account.created_at, account.provider)


def _role(body: Mapping[str, Any], field: str) -> Role:
    if body.get(field) not in ROLES:
        raise ParameterError(field, f"must be {' or '.join(ROLES)}")
    return Role(body[field])
