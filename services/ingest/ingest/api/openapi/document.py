"""The OpenAPI 3.1 document of everything that is declared; its schemas come from the types."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from common.routes import OWNTRACKS
from ingest.api.http.problem_details import CODES, MEDIA_TYPE, ProblemDetails
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import Body, Content, Operation
from ingest.rules.roles import Role, Tells

Schema = dict[str, Any]
_REFERENCE = "#/components/schemas/"
_SCHEME = "token"


class Schemas(NamedTuple):
    """The schema of each type that an operation takes or gives, and what these refer to."""

    by_type: dict[Any, Schema]
    components: dict[str, Schema]

    def of(self, types: Any) -> Schema:
        """Return the schema of a type, or of any one of several."""
        if isinstance(types, tuple):
            return {"anyOf": [self.by_type[type_] for type_ in types]}
        return self.by_type[types]

    def resolved(self, schema: Schema) -> Schema:
        """Return a schema, or what it refers to."""
        name = schema.get("$ref", "").removeprefix(_REFERENCE)
        return self.components[name] if name else schema


@cache
def schemas() -> Schemas:
    """Return the schemas of everything declared; call it when all is."""
    types = list(dict.fromkeys(_types(declarations.OPERATIONS)))
    references, components = msgspec.json.schema_components(
        types, ref_template=f"{_REFERENCE}{{name}}"
    )
    return Schemas(dict(zip(types, references, strict=True)), components)


def _types(operations: Iterable[Operation]) -> Iterator[Any]:
    yield ProblemDetails
    for operation in operations:
        if operation.query:
            yield operation.query
        for body in (operation.body, *operation.answers.values()):
            for content in body.content.values() if body else ():
                for types in (content.type, content.lines or ()):
                    yield from types if isinstance(types, tuple) else (types,)


def document(*, required: bool = False, owntracks: bool = True) -> Schema:
    """Return the OpenAPI document, of a service where access is open or a token required.

    And of one where OwnTracks may post, or not.
    """
    paths: dict[str, Schema] = {}
    for operation in declarations.in_order():
        if operation.path == OWNTRACKS.path and not owntracks:
            continue
        path = operation.path.replace("<", "{").replace(">", "}")
        described = paths.setdefault(path, {})[operation.method.lower()] = _described(operation)
        if required and operation.role is not Role.NOBODY:
            described["security"] = [{_SCHEME: []}]
    schemes = {_SCHEME: {"type": "http", "scheme": "bearer"}} if required else {}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Waymark",
            "version": "1",
            "summary": "Who is where, and who was where.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The gateway that serves this document"}],
        "tags": [{"name": tag} for tag in declarations.TAGS],
        "paths": paths,
        "components": {"schemas": schemas().components, "securitySchemes": schemes},
    }


def _described(operation: Operation) -> Schema:
    schema: Schema = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": description(operation),
        "tags": [operation.tag],
        "parameters": parameters(operation),
        "responses": {str(s): _answer(body) for s, body in operation.answers.items()}
        | _problems(operation.problems),
    }
    if operation.body:
        schema["requestBody"] = {
            "description": operation.body.description,
            "content": _contents(operation.body),
            "required": operation.body.required,
        }
    return schema


def description(operation: Operation) -> str:
    """Return what is said of an operation, with the role that it needs."""
    role = f"Needs the role `{operation.role.value}` where access is not open."
    words = [operation.description, role if operation.role is not Role.NOBODY else ""]
    asked = {"level": operation.tells, "team": operation.tells_team}
    limits = " or ".join(name for name, tells in asked.items() if tells is Tells.ASKED)
    if limits:
        words.append(f"Who may see one {limits} has to ask for that.")
    return " ".join(filter(None, words))


def parameters(operation: Operation) -> list[Schema]:
    """Return the parameters of an operation as OpenAPI has them."""
    parameter_list = [parameter.described() for parameter in operation.parameters]
    if operation.query:
        struct = schemas().resolved(schemas().of(operation.query))
        for name, schema in struct["properties"].items():
            inner = {key: value for key, value in schema.items() if key != "description"}
            parameter_list.append(
                {
                    "name": name,
                    "in": "query",
                    "description": schema["description"],
                    "schema": inner,
                    "required": name in struct["required"],
                }
            )
    return parameter_list


def _answer(body: Body) -> Schema:
    schema: Schema = {"description": body.description}
    if body.content:
        schema["content"] = _contents(body)
    if body.headers:
        schema["headers"] = {
            name: {"description": description, "schema": {"type": "string"}}
            for name, description in body.headers.items()
        }
    return schema


def _contents(body: Body) -> Schema:
    return {kind: _content(content) for kind, content in body.content.items()}


def _content(content: Content) -> Schema:
    schema = schemas().of(content.type)
    if content.lines:
        schema = schema | {"x-line": schemas().of(content.lines)}
    return {"schema": schema} | ({"example": content.example} if content.example else {})


def _problems(codes: Sequence[str]) -> Schema:
    by_status: dict[str, list[str]] = {}
    for code in codes:
        by_status.setdefault(str(CODES[code][0]), []).append(CODES[code][1])
    content = {MEDIA_TYPE: {"schema": schemas().of(ProblemDetails)}}
    return {
        status: {"description": " ".join(meanings), "content": content}
        for status, meanings in by_status.items()
    }
