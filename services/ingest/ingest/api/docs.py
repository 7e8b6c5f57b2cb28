"""The API's own description: /api/v1/openapi.json for generators, /docs for people."""

import json
import re
from functools import lru_cache
from typing import Any

from flask import Blueprint, Response, render_template, request
from markupsafe import Markup, escape

from ingest.api import openapi, problems
from ingest.api import responses as answers
from ingest.api.openapi import OPERATIONS, Body, Operation, declare

bp = Blueprint("docs", __name__, template_folder="templates")
# The page holds no script and loads nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
_CODE = re.compile(r"`([^`]+)`")
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")

_PAGE = Body("The page.", {"text/html": {"schema": {"type": "string"}}})


@declare(
    "GET",
    "/openapi.json",
    summary="This description, as OpenAPI 3.1",
    parameters=[openapi.IF_NONE_MATCH],
    answers={
        200: Body("The document.", {"application/json": {"schema": {"type": "object"}}}),
        304: Body("Nothing changed since that `ETag`.", {}),
    },
    curl="curl 'HOST/api/v1/openapi.json'",
    tag="description",
)
def openapi_json() -> Response:
    """Answer the OpenAPI document."""
    text = _document()
    etag = answers.tag(text)
    response = Response(text, mimetype="application/json")
    return answers.held(etag) or answers.tagged(response, etag)


@lru_cache(maxsize=1)
def _document() -> str:
    return json.dumps(openapi.document(), separators=(",", ":")) + "\n"


@bp.get("/docs")
def docs() -> Response:
    """Show the description to people."""
    host = request.host if _HOST.fullmatch(request.host) else "localhost"
    secure = request.headers.get("X-Forwarded-Proto") == "https"
    page = _page(f"{'https' if secure else 'http'}://{host}")
    return Response(page, headers={"Content-Security-Policy": POLICY}, mimetype="text/html")


OPERATIONS.append(Operation("GET", "/docs", "docs", "This page", {200: _PAGE}, tag="description"))


@lru_cache(maxsize=4)
def _page(host: str) -> str:
    groups: dict[str, list[Operation]] = {}
    for operation in openapi.in_order():
        groups.setdefault(operation.tag, []).append(operation)
    return render_template(
        "docs.html", groups=groups, codes=problems.CODES, host=host, code=_code, fields=_fields
    )


def _code(text: str) -> Markup:
    """Return a text with what stands in backquotes as code, and blank lines as paragraphs."""
    paragraphs = (_CODE.sub(r"<code>\1</code>", str(escape(part))) for part in text.split("\n\n"))
    return Markup("</p><p>").join(Markup(part) for part in paragraphs)  # noqa: S704  # escaped above


def _fields(schema: dict[str, Any], prefix: str = "") -> list[tuple[str, str, str]]:
    """Return name, type and description of each field of a schema, those inside it included."""
    found = []
    for name, field in schema.get("properties", {}).items():
        found.append((prefix + name, _type(field), field.get("description", "")))
        inner = field.get("items", field)
        found += _fields(inner, f"{prefix}{name}{'[]' if 'items' in field else ''}.")
    return found


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    kind = schema.get("type", "")
    kinds = " or ".join(kind) if isinstance(kind, list) else kind
    bounds = [str(schema[name]) for name in ("minimum", "maximum") if name in schema]
    if "enum" in schema:
        kinds = " | ".join(map(str, schema["enum"]))
    return f"{kinds} {' to '.join(bounds)}" if len(bounds) == 2 else kinds
