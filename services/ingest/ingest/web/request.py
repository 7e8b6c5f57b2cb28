"""A request as the endpoints see it, whoever received it, and its parameters."""

import contextlib
import io
import json
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import werkzeug.urls  # noqa: F401  # registers QUOTED
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import FormDataParser
from werkzeug.http import parse_options_header

from common.csv_file import MISSING
from ingest.errors import ParameterError

JSON = "application/json"
URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
# Werkzeug's way with bytes that are no UTF-8: they stay as they were quoted.
QUOTED = "werkzeug.url_quote"
# An endpoint has five parameters; a megabyte of `&` would become half a million.
MAX_PARAMETERS = 1000
# How a compressed body begins: the gateway passes on no header that says it.
GZIP = b"\x1f\x8b"
NOT_JSON = "is not valid JSON"
COMPRESSED = "the body is compressed, and is not read: send it as it is"
UNDECLARED = "the body is JSON, and is not read as such without `Content-Type: application/json`"


class Request(NamedTuple):
    """A request with its whole body."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]  # names in lower case; of repeated ones the last
    body: bytes
    length: int  # of the body, in bytes: as it was declared, or as it came

    def header(self, name: bytes) -> str:
        """Return a header's value, empty when there is none."""
        return self.headers.get(name, b"").decode("latin-1")

    def parameters(self) -> dict[str, Any]:
        """Return query string, form or JSON as one mapping; what the query string gives wins.

        ParameterError names the body when it cannot be read.
        """
        query = _first_values(self.query.decode(errors=QUOTED))
        if not self.body:
            return query
        return query | _of_body(self) | {name: value for name, value in query.items() if value}

    def explained(self, error: ParameterError) -> ParameterError:
        """Return why a parameter is missing, where a body has it that was not read."""
        if error.reason != MISSING:
            return error
        if self.body.startswith(GZIP):
            return ParameterError(error.parameter, f"{MISSING}: {COMPRESSED}")
        if self.body.lstrip().startswith(b"{") and not _is_json(_kind(self)):
            return ParameterError(error.parameter, f"{MISSING}: {UNDECLARED}")
        return error


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object; ParameterError names the body when it is none."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        why = NOT_JSON + (f": {COMPRESSED}" if body.startswith(GZIP) else "")
        raise ParameterError("body", why) from None
    if not isinstance(parsed, dict):
        raise ParameterError("body", "must be a JSON object")
    return parsed


def _of_body(request: Request) -> dict[str, Any]:
    """Return what a form or JSON holds; a body of any other kind is ignored."""
    kind = _kind(request)
    if _is_json(kind):
        return json_object(request.body)
    if kind == MULTIPART:
        return _multipart(request)
    if kind == URL_ENCODED:
        with contextlib.suppress(UnicodeDecodeError):
            return _first_values(request.body.decode())
    return {}


def _is_json(kind: str) -> bool:
    return kind == JSON or (kind.startswith("application/") and kind.endswith("+json"))


def _kind(request: Request) -> str:
    return request.header(b"content-type").partition(";")[0].strip().lower()


def _first_values(text: str) -> dict[str, str]:
    """Return the parameters of a query string or form; the first of a repeated name wins."""
    if text.count("&") >= MAX_PARAMETERS:
        raise ParameterError("parameters", f"are more than {MAX_PARAMETERS}")
    if "%" in text or "+" in text:
        pairs = parse_qsl(text, keep_blank_values=True, errors=QUOTED)
        pairs.reverse()
        return dict(pairs)
    parameters: dict[str, str] = {}  # several times as fast
    for pair in text.split("&"):
        name, _, value = pair.partition("=")
        parameters.setdefault(name, value)
    return parameters


def _multipart(request: Request) -> dict[str, str]:
    _, options = parse_options_header(request.header(b"content-type"))
    parser = FormDataParser(max_form_parts=MAX_PARAMETERS)
    try:
        _, form, files = parser.parse(
            io.BytesIO(request.body), MULTIPART, len(request.body), options
        )
    except RequestEntityTooLarge:
        raise ParameterError("parameters", f"are more than {MAX_PARAMETERS}") from None
    for file in files.values():
        file.close()
    return form.to_dict()
