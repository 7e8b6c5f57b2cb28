"""Who is asking: GET /session."""

from typing import Annotated

from flask import Response
from msgspec import Meta

from ingest.api import openapi, responses
from ingest.api.openapi import declare
from ingest.api.schema_fields import ResponseBody
from ingest.rules.roles import Role
from ingest.web import credentials


class Session(ResponseBody):
    """Whoever makes the request."""

    name: Annotated[str, Meta(description="The label of the token; empty where access is open")]
    kind: Annotated[
        str,
        Meta(
            description="By what they are known; `anybody`: access is open",
            extra_json_schema={"enum": ["anybody", "token"]},
        ),
    ]
    role: Annotated[
        str,
        Meta(description="What they may do", extra_json_schema={"enum": [r.value for r in Role]}),
    ]
    expires_at: Annotated[int | None, Meta(description="Until when, unix seconds")]


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
    visitor = credentials.visitor()
    return responses.as_json(
        Session(visitor.name, visitor.kind, visitor.role.value, visitor.expires_at)
    )
