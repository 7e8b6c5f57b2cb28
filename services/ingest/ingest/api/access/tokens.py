"""The tokens of phones, servers and screens: /tokens, for admins."""

import time
from collections.abc import Mapping
from typing import Annotated, Any

from flask import Response
from msgspec import UNSET, Meta, Struct, UnsetType

from ingest.access.tokens import MAX_DAYS, MAX_HOURS, ROLES, issue
from ingest.api.access import audited
from ingest.api.directory.beacon_input import Name
from ingest.api.http import bodies, responses
from ingest.api.http.problems import Problem, invalid
from ingest.api.http.query import Text
from ingest.api.http.readers import read_all
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody, Seconds
from ingest.assembly import get_context
from ingest.errors import ParameterError
from ingest.rules import request_parameters
from ingest.rules.roles import LEVEL, TEAM, Role
from ingest.storage.access.tokens import MAX_TOKENS, Token, TooManyTokens

_ID = Text("token_id", "Id of the token, not its secret", "0123abcd", "path", "[0-9a-f]{8}")

TokenRole = Annotated[
    str, Meta(description="What its holder may do", extra_json_schema={"enum": list(ROLES)})
]


class TokenInfo(ResponseBody):
    """A token, without its secret; times are unix seconds."""

    id: Annotated[str, Meta(description="Names it, and opens nothing")]
    label: Annotated[str, Meta(description="What it is for")]
    role: TokenRole
    level: Annotated[str | None, Meta(description="The only level that its holder may see")]
    team: Annotated[str | None, Meta(description="The only team whose people its holder may see")]
    created_at: Seconds
    expires_at: Annotated[int | None, Meta(description="When it ends by itself")]
    last_used_at: Annotated[int | None, Meta(description="To the minute")]
    revoked_at: Annotated[int | None, Meta(description="When it was ended")]


class NewToken(TokenInfo):
    """A token that was just made."""

    secret: Annotated[str, Meta(description="Shown only here, and stored nowhere")]


class TokenList(ResponseBody):
    """The newest tokens, with those that have ended."""

    data: list[TokenInfo]


class TokenInput(Struct):
    """What a token is for."""

    label: Name | float
    role: TokenRole
    level: (
        Annotated[Name | float, Meta(description="The only one to be seen, with the role `read`")]
        | UnsetType
        | None
    ) = UNSET
    team: (
        Annotated[
            Name | float,
            Meta(description="The only one whose people are to be seen, with the role `read`"),
        ]
        | UnsetType
        | None
    ) = UNSET
    expires_in_days: Annotated[int, Meta(ge=1, le=MAX_DAYS)] | UnsetType | None = UNSET
    expires_in_hours: Annotated[int, Meta(ge=1, le=MAX_HOURS)] | UnsetType | None = UNSET


@declare(
    "GET",
    "/tokens",
    summary="The tokens",
    description=f"The newest {MAX_TOKENS}; no secret is among them.",
    answers=declarations.gives(TokenList),
    problems=["store_unavailable"],
    curl="curl 'HOST/api/v1/tokens' -H \"Authorization: Bearer $TOKEN\"",
    tag="access",
)
def tokens() -> Response:
    """Answer all tokens."""
    return responses.as_json(
        TokenList([_info(token) for token in get_context().access.tokens.everyone()])
    )


@declare(
    "POST",
    "/tokens",
    summary="Make a token",
    description="Only this answer has its secret. Other services know it within 10 s. Without days"
    " or hours, of which only one may be given, it holds until it is revoked.",
    body=Body(
        "What it is for.",
        {JSON: Content(TokenInput, example={"label": "HACS", "role": "read"})},
    ),
    answers=declarations.gives(NewToken),
    problems=[
        "invalid_request",
        "conflict",
        "too_large",
        "unsupported_media_type",
        "store_unavailable",
    ],
    curl="curl 'HOST/api/v1/tokens' -H \"Authorization: Bearer $TOKEN\""
    """ -H 'Content-Type: application/json' -d '{"label": "HACS", "role": "read"}'""",
    tag="access",
)
def make_token() -> Response:
    """Make a token."""
    audited.refuse_anybody()
    body = bodies.json_object()
    values, faults = read_all(_READERS, body)
    if faults:
        raise invalid(faults)
    context = get_context()
    hours = values["expires_in_hours"] or values["expires_in_days"]
    limits = {name: values[name] for name in (LEVEL, TEAM)}
    secret, token = issue(values["label"], values["role"], hours, int(time.time()), **limits)
    try:
        context.access.tokens.add(token)
    except TooManyTokens:
        raise Problem("conflict", f"there are {MAX_TOKENS} tokens: revoke some first") from None
    made = {"label": token.label, "role": token.role.value, "expires_at": token.expires_at}
    made |= {name: limit for name, limit in limits.items() if limit}
    audited.note("token made", token.token_id, **made)
    context.access.cache.refresh()
    answer = responses.as_json(NewToken(**_fields(token), secret=secret))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@declare(
    "DELETE",
    "/tokens/<token_id>",
    summary="Revoke a token",
    description="Every service refuses it within 10 s. A second time is success too.",
    parameters=[_ID],
    answers={204: Body("It is revoked.", {})},
    problems=["not_found", "store_unavailable"],
    curl="curl -X DELETE 'HOST/api/v1/tokens/0123abcd' -H \"Authorization: Bearer $TOKEN\"",
    tag="access",
)
def revoke_token(token_id: str) -> Response:
    """End a token for good."""
    context = get_context()
    if not context.access.tokens.revoke(token_id, int(time.time())):
        raise Problem("not_found", "there is no such token")
    audited.note("token revoked", token_id)
    context.access.cache.refresh()
    return Response(status=204)


def _fields(token: Token) -> dict[str, Any]:
    fields = token._asdict() | {"id": token.token_id, "role": token.role.value}
    return {name: fields[name] for name in TokenInfo.__struct_fields__}


def _info(token: Token) -> TokenInfo:
    return TokenInfo(**_fields(token))


def _role(body: Mapping[str, Any], field: str) -> Role:
    if body.get(field) not in ROLES:
        raise ParameterError(field, f"must be one of {', '.join(ROLES)}")
    return Role(body[field])


def _level(body: Mapping[str, Any], field: str) -> str | None:
    return request_parameters.printable(body, field) if _is_limited(body, field) else None


def _team(body: Mapping[str, Any], field: str) -> str | None:
    return request_parameters.place_name(body, field) if _is_limited(body, field) else None


def _is_limited(body: Mapping[str, Any], field: str) -> bool:
    """Tell whether a limit is given. Raises ParameterError: others than readers have none."""
    if body.get(field) is not None and body.get("role") != Role.READ.value:
        raise ParameterError(field, "only with the role read")
    return body.get(field) is not None


def _days(body: Mapping[str, Any], field: str) -> int | None:
    days = _whole(body, field, MAX_DAYS)
    return None if days is None else days * 24


def _hours(body: Mapping[str, Any], field: str) -> int | None:
    if None not in (body.get(field), body.get("expires_in_days")):
        raise ParameterError(field, "not together with expires_in_days")
    return _whole(body, field, MAX_HOURS)


def _whole(body: Mapping[str, Any], field: str, most: int) -> int | None:
    number = body.get(field)
    if number is None:
        return None
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or number not in range(1, most + 1):
        raise ParameterError(field, f"must be a whole number from 1 to {most}")
    return int(number)


_READERS = {
    "label": request_parameters.printable,
    "role": _role,
    LEVEL: _level,
    TEAM: _team,
    "expires_in_days": _days,
    "expires_in_hours": _hours,
}
