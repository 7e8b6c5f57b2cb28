"""Whether an answer is one that the OpenAPI document declares."""

import json
import re
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from ingest.api.openapi import document


@cache
def _document() -> dict[str, Any]:
    contract: dict[str, Any] = json.loads(json.dumps(document.document()))
    return contract


@cache
def operation(method: str, path: str) -> tuple[str, dict[str, Any]]:
    """Return the declared path that a real one matches, and its operation."""
    paths = sorted(_document()["paths"].items(), key=lambda item: "{" in item[0])
    for declared, methods in paths:  # a fixed path goes before one with a parameter
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(declared))
        if re.fullmatch(pattern, path) and method.lower() in methods:
            return declared, methods[method.lower()]
    raise AssertionError(f"{method} {path} is not in the document")


@cache
def _validator(declared: str, method: str, status: str, kind: str) -> Draft202012Validator:
    content = _document()["paths"][declared][method.lower()]["responses"][status]["content"]
    assert kind in content, f"{method} {declared}: {status} as {kind} is not declared"
    return _of(content[kind]["schema"])


@cache
def _line_validator(declared: str, method: str, status: str, kind: str) -> Draft202012Validator:
    content = _document()["paths"][declared][method.lower()]["responses"][status]["content"]
    return _of(content[kind]["schema"]["x-line"])


def _of(schema: dict[str, Any]) -> Draft202012Validator:
    components = {"components": _document()["components"]}
    return Draft202012Validator(schema | components, format_checker=FormatChecker())


def check(method: str, path: str, status: int, kind: str, body: bytes) -> None:
    """Fail unless status, kind and body of an answer are declared."""
    declared, described = operation(method, path)
    assert str(status) in described["responses"], f"{method} {declared}: {status} is not declared"
    assert status < 500 or status == 503, body
    if not described["responses"][str(status)].get("content"):
        assert body == b"", f"{method} {declared}: {status} has a body"
        return
    value = json.loads(body) if kind.endswith(("/json", "+json")) else body.decode()
    _validator(declared, method, str(status), kind).validate(value)
    if kind == "application/x-ndjson":
        for line in body.splitlines():
            _line_validator(declared, method, str(status), kind).validate(json.loads(line))
