"""The API's own description: /api/v1/openapi.json for generators, /docs for people."""

import base64
import hashlib
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
from flask import Blueprint, Response, render_template, request
from markupsafe import Markup, escape

from common.routes import DOCS
from ingest.api.detections.detections import EXAMPLE_ID
from ingest.api.http import responses
from ingest.api.http.problem_details import CODES
from ingest.api.http.query import IF_NONE_MATCH
from ingest.api.openapi import declarations, document, legacy_schema
from ingest.api.openapi.declarations import JSON, OPERATIONS, Body, Content, Operation, declare
from ingest.api.openapi.document import Schema
from ingest.assembly import get_context
from ingest.rules.roles import needs, role_at

_ROLE = role_at("GET", DOCS.path)
bp = Blueprint("docs", __name__, template_folder="templates")
# The page holds no script and loads nothing; its one style is known by its hash.
POLICY = (
    "default-src 'none'; style-src 'sha256-{}'; form-action 'none'; base-uri 'none';"
    " frame-ancestors 'none'"
)
# What a first call needs where access is not open.
_HEADER = " -H 'Authorization: Bearer TOKEN'  # of ./scripts/token"
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
# README and docs/api.md lead to this file: of Markdown it has bold, code, and lists below them.
_PHONE = Path(__file__).parent / "templates" / "phone.md"
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")


class _Field(NamedTuple):
    name: str
    type: str
    description: str


@declare(
    "GET",
    "/openapi.json",
    summary="This description, as OpenAPI 3.1",
    parameters=[IF_NONE_MATCH],
    answers={
        200: Body("The document.", {JSON: Content(dict[str, Any])}),
        304: declarations.UNCHANGED,
    },
    curl="curl 'HOST/api/v1/openapi.json'",
    tag="description",
)
def openapi_json() -> Response:
    """Answer the OpenAPI document."""
    context = get_context()
    text = _document(
        required=not context.access.admission.open, owntracks=context.owntracks is not None
    )
    etag = responses.tag(text)
    response = Response(text, mimetype=JSON)
    return responses.not_modified(etag) or responses.tagged(response, etag)


@cache
def _document(*, required: bool, owntracks: bool) -> bytes:
    return msgspec.json.encode(document.document(required=required, owntracks=owntracks)) + b"\n"


@bp.get(DOCS.path)
@needs(_ROLE)
def docs() -> Response:
    """Show the description to people."""
    host = request.host if _HOST.fullmatch(request.host) else "localhost"
    secure = request.headers.get("X-Forwarded-Proto") == "https"
    required = not get_context().access.admission.open
    page = _page(f"{'https' if secure else 'http'}://{host}", required=required)
    policy = POLICY.format(_style_hash(page))
    # Who copies an example twice, or from another reader's page, sends two detections.
    page = re.sub(EXAMPLE_ID, lambda _: str(uuid4()), page)
    return Response(page, headers={"Content-Security-Policy": policy}, mimetype="text/html")


_PAGE = {200: Body("The page.", {"text/html": Content(str)}), **legacy_schema.REFUSED}
OPERATIONS.append(Operation("GET", DOCS.path, _ROLE, "docs", "This page", _PAGE, tag="description"))


@lru_cache(maxsize=4)
def _page(host: str, *, required: bool) -> str:
    groups: dict[str, list[Operation]] = {}
    for operation in declarations.in_order():
        groups.setdefault(operation.tag, []).append(operation)
    curls = {operation.name: operation.curl.replace("HOST", host) for operation in OPERATIONS}

    def first(name: str) -> str:
        return curls[name] + (_HEADER if required else "")

    return render_template(
        "docs.html",
        groups=groups,
        codes=CODES,
        curls=curls,
        first=first,
        code=_code,
        phone=_phone(),
        fields=_fields_of,
        parameters=document.parameters,
        description=document.description,
    )


def _style_hash(page: str) -> str:
    (style,) = _STYLE.findall(page)
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def _code(text: str) -> Markup:
    """Return a text with what stands in backquotes as code, and blank lines as paragraphs."""
    paragraphs = (_CODE.sub(r"<code>\1</code>", str(escape(part))) for part in text.split("\n\n"))
    return Markup("</p><p>").join(Markup(part) for part in paragraphs)  # noqa: S704  # escaped above


def _phone() -> list[tuple[Markup, list[Markup]]]:
    """Return the sections of what a phone has to know: each heading with its points."""
    blocks = [_BOLD.sub(r"\1", block) for block in _PHONE.read_text("utf-8").split("\n\n")[2:]]
    points = [[_code(item) for item in block[2:].split("\n- ")] for block in blocks[1::2]]
    return list(zip(map(_code, blocks[::2]), points, strict=True))


def _fields_of(content: Content) -> list[_Field]:
    """Return the fields of a body, each once where several types have it."""
    types = content.lines or content.type
    of_each = types if isinstance(types, tuple) else (types,)
    fields = (field for type_ in of_each for field in _fields(document.schemas().of(type_)))
    return list({field.name: field for field in fields}.values())


def _fields(schema: Schema, prefix: str = "") -> list[_Field]:
    """Return the fields of a schema, those inside of them included."""
    fields = []
    for name, field in document.schemas().resolved(schema).get("properties", {}).items():
        fields.append(_Field(prefix + name, _type(field), _description(field)))
        inner = field.get("items", field)
        fields += _fields(inner, f"{prefix}{name}{'[]' if 'items' in field else ''}.")
    return fields


def _description(schema: Schema) -> str:
    own: str = schema.get("description", "")
    return own or next(filter(None, map(_description, schema.get("anyOf", ()))), "")


def _type(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(kind) for kind in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind: str = document.schemas().resolved(schema).get("type", "")
    bounds = [str(schema[name]) for name in ("minimum", "maximum") if name in schema]
    return f"{kind} {' to '.join(bounds)}" if len(bounds) == 2 else kind
