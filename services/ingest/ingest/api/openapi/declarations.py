"""The declarations of the API's operations: what `document` describes and `/docs` shows."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flask import Blueprint

from common.routes import PREFIX
from ingest.api.http.query import Parameter
from ingest.rules.roles import Role, Tells, needs, role_at

JSON = "application/json"
bp = Blueprint("v1", __name__, url_prefix=PREFIX)

View = Callable[..., Any]


class Content(NamedTuple):
    """What a body of one media type holds: a type, or one of several, that has a JSON schema."""

    type: Any
    example: Any = None
    lines: Any = None  # the types of its lines, where it is text of one JSON object a line


class Body(NamedTuple):
    """What an operation takes or gives, by media type."""

    description: str
    content: Mapping[str, Content]
    headers: Mapping[str, str] = {}
    required: bool = True


class Operation(NamedTuple):
    """One method of one path as people and generators see it."""

    method: str
    path: str
    role: Role
    name: str
    summary: str
    answers: Mapping[int, Body]
    description: str = ""
    parameters: Sequence[Parameter] = ()
    query: Any = None  # a Struct, each field of which is a parameter of the query string
    body: Body | None = None
    problems: Sequence[str] = ()  # their codes
    curl: str = ""
    tag: str = "detections"
    tells: Tells = Tells.ALL  # of which levels
    tells_team: Tells = Tells.ALL


OPERATIONS: list[Operation] = []
# The parameters of each view's query string, by Flask's name of the view.
QUERY_NAMES: dict[str, set[str]] = {}
OPEN_QUERIES: set[str] = set()  # the views to which others may add parameters of their own
# In the order of the document and the page.
TAGS = ("detections", "people", "beacons", "access", "system", "legacy", "health", "description")


def declare(
    method: str, path: str, *, others: bool = False, **words: Any
) -> Callable[[View], View]:
    """Document a view and route it, by the same words; `path` is below /api/v1.

    `others`: its query string may have parameters that are not declared.
    """
    shown = PREFIX + re.sub(r"<\w+:", "<", path)
    role = role_at(method, shown)

    def decorate(view: View) -> View:
        problems = [*words.pop("problems", ()), "invalid_request", "internal_error"]
        problems = list(dict.fromkeys(problems))
        words.setdefault("description", (view.__doc__ or "").strip())
        if role is not Role.NOBODY:
            problems += ["unauthenticated", "forbidden"]
        OPERATIONS.append(
            Operation(method, shown, role, name=view.__name__, problems=problems, **words)
        )
        if others:
            OPEN_QUERIES.add(f"{bp.name}.{view.__name__}")
        described = [parameter.described() for parameter in words.get("parameters", ())]
        QUERY_NAMES[f"{bp.name}.{view.__name__}"] = {
            parameter["name"] for parameter in described if parameter["in"] == "query"
        }
        tells = (words.get(name, Tells.ALL) for name in ("tells", "tells_team"))
        marked = needs(role, *tells)(view)
        bp.add_url_rule(path, view.__name__, marked, methods=[method])
        return view

    return decorate


def in_order() -> list[Operation]:
    """Return everything declared, by tag and path."""
    return sorted(OPERATIONS, key=lambda route: (TAGS.index(route.tag), route.path))


def gives(answer: Any, *, cached: bool = False, file: str = "") -> dict[int, Body]:
    """Return the usual answers: 200 with this type as JSON and, where it is `cached`, 304.

    `file`: what kind of file it is told as, too.
    """
    headers = {"ETag": "Send it back as `If-None-Match`"} if cached else {}
    kinds = {JSON: Content(answer)} | ({file: Content(str)} if file else {})
    done = Body("Done.", kinds, headers)
    return {200: done} | ({304: UNCHANGED} if cached else {})


UNCHANGED = Body("Nothing changed since that `ETag`.", {})
