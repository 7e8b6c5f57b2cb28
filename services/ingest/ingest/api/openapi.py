"""The declarations of the API's operations, and the OpenAPI 3.1 document made from them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flask import Blueprint

from ingest.api import problems

PREFIX = "/api/v1"
bp = Blueprint("v1", __name__, url_prefix=PREFIX)

Schema = dict[str, Any]
View = Callable[..., Any]


class Body(NamedTuple):
    """What an operation takes or gives: schema (or a reference) and example by media type."""

    description: str
    content: Mapping[str, Schema]
    headers: Mapping[str, str] = {}


class Operation(NamedTuple):
    """One method of one path as people and generators see it."""

    method: str
    path: str
    name: str
    summary: str
    answers: Mapping[int, Body]
    description: str = ""
    parameters: Sequence[Schema] = ()
    body: Body | None = None
    errors: Sequence[str] = ()  # codes of problems
    curl: str = ""
    tag: str = "detections"


OPERATIONS: list[Operation] = []
# In the order of the document and the page.
TAGS = ("detections", "people", "beacons", "system", "legacy", "health", "description")


def declare(method: str, path: str, **words: Any) -> Callable[[View], View]:
    """Document a view and route it, by the same words; `path` is below /api/v1."""

    def decorate(view: View) -> View:
        errors = [*words.pop("errors", ()), "internal_error"]
        words.setdefault("description", (view.__doc__ or "").strip())
        OPERATIONS.append(
            Operation(method, PREFIX + path, name=view.__name__, errors=errors, **words)
        )
        bp.add_url_rule(path, view.__name__, view, methods=[method])
        return view

    return decorate


def text(description: str, **more: Any) -> Schema:
    """Return the schema of a text."""
    return {"type": "string", "description": description} | more


def whole(description: str, **more: Any) -> Schema:
    """Return the schema of a whole number."""
    return {"type": "integer", "description": description} | more


def number(description: str, **more: Any) -> Schema:
    """Return the schema of a number."""
    return {"type": "number", "description": description} | more


def yes_no(description: str) -> Schema:
    """Return the schema of a truth value."""
    return {"type": "boolean", "description": description}


def several(items: Schema, description: str = "") -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items} | ({"description": description} if description else {})


def or_null(schema: Schema) -> Schema:
    """Return a schema that takes null as well."""
    return schema | {"type": [schema["type"], "null"]}


def record(fields: Mapping[str, Schema], *, optional: Sequence[str] = ()) -> Schema:
    """Return the schema of an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }


def query(name: str, schema: Schema) -> Schema:
    """Return an optional parameter of the query string."""
    inner = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": "query", "description": schema["description"], "schema": inner}


def in_path(name: str, schema: Schema) -> Schema:
    """Return a parameter of the path."""
    return query(name, schema) | {"in": "path", "required": True}


def in_header(name: str, schema: Schema) -> Schema:
    """Return an optional header of the request."""
    return query(name, schema) | {"in": "header"}


def gives(fields: Mapping[str, Schema], **more: Any) -> dict[int, Body]:
    """Return the usual answer, 200 with an object of these fields; `cached` adds 304."""
    cached = more.pop("cached", False)
    headers = {"ETag": "Send it back as `If-None-Match`"} if cached else {}
    done = Body("Done.", {"application/json": {"schema": record(fields, **more)}}, headers)
    return {200: done} | ({304: Body("Nothing changed since that `ETag`.", {})} if cached else {})


STAFF_ID: Schema = {
    "description": "Staff id. A canonical decimal is a number: 7 and `7` in quotes are one person.",
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    ],
}
MAC = text("MAC of the beacon, 12 upper-case hexadecimal digits", pattern="^[0-9A-F]{12}$")
SECONDS = whole("Unix seconds", minimum=0)
TIME = text("The same time in ISO 8601, UTC", format="date-time")
LEVEL = text("Level, `unknown` for a beacon that is not in the directory")
LOCATION = text("Name of the spot, `unknown` for a beacon that is not in the directory")
RSSI = whole("Signal strength in dBm", minimum=-127, maximum=20)
METRES = number("Metres on the plan of the level")
IF_NONE_MATCH = in_header(
    "If-None-Match", text("`ETag` of the answer that you have; 304 if it holds")
)
PROBLEM = record(
    {
        "type": text("Where this kind of problem is described"),
        "title": text("The status in words"),
        "status": whole("The status"),
        "detail": text("What went wrong this time"),
        "code": text("Stable name of the problem", enum=list(problems.CODES)),
        "request_id": text("Name it when you ask; it stands in the gateway's log"),
        "errors": several(
            record(
                {
                    "field": text("Parameter or field at fault"),
                    "reason": text("Why"),
                    "line": whole("Line of the file"),
                },
                optional=["line"],
            )
        ),
        "results": several(
            {"type": "object"},
            "Of detections that were stored in part, what became of each, as in a 200. Neither the"
            " database nor our disk took those that are `unavailable`: send them again, or all of"
            " it if they have `event_id`s",
        ),
    },
    optional=["results"],
)


def in_order() -> list[Operation]:
    """Return everything declared, by tag."""
    return sorted(OPERATIONS, key=lambda operation: TAGS.index(operation.tag))


def document() -> Schema:
    """Return the OpenAPI document of everything declared."""
    paths: dict[str, Schema] = {}
    for operation in in_order():
        path = operation.path.replace("<", "{").replace(">", "}")
        paths.setdefault(path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Waymark",
            "version": "1",
            "summary": "Who is where, and who was where.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The gateway that serves this document"}],
        "tags": [{"name": tag} for tag in TAGS],
        "paths": paths,
        "components": {"schemas": {"Problem": PROBLEM}},
    }


def _described(operation: Operation) -> Schema:
    found: Schema = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.description,
        "tags": [operation.tag],
        "parameters": list(operation.parameters),
        "responses": {str(s): _answer(body) for s, body in operation.answers.items()}
        | _problems(operation.errors),
    }
    if operation.body:
        content = dict(operation.body.content)
        description = operation.body.description
        found["requestBody"] = {"description": description, "content": content, "required": True}
    return found


def _answer(body: Body) -> Schema:
    found: Schema = {"description": body.description}
    if body.content:
        found["content"] = dict(body.content)
    if body.headers:
        found["headers"] = {
            name: {"description": description, "schema": {"type": "string"}}
            for name, description in body.headers.items()
        }
    return found


def _problems(codes: Sequence[str]) -> Schema:
    by_status: dict[str, list[str]] = {}
    for code in codes:
        by_status.setdefault(str(problems.CODES[code][0]), []).append(problems.CODES[code][1])
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {"description": " ".join(meanings), "content": content}
        for status, meanings in by_status.items()
    }
