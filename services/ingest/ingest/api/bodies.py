"""Bodies of requests: of the right kind, in UTF-8, whole, and not too large."""

from typing import Any

from flask import request

from ingest.api.openapi import JSON
from ingest.api.problems import Problem
from ingest.errors import ParameterError
from ingest.rules.strict_json import strict_object

# Values in a body: 20 for each item of the largest batch. More are refused before they are built:
# 1 MiB of short ones would take up to 37 MiB.
MAX_VALUES = 20_000


def json_bytes() -> bytes:
    """Return a body that says it is JSON, as it came, if it does not hold too many values."""
    body = _body(JSON)
    if _values(body) > MAX_VALUES:
        raise Problem("too_large", f"more than {MAX_VALUES} values in the body")
    return body


def _values(body: bytes) -> int:
    """Return a bound on the values of a JSON text: each but the outermost ends at one of these."""
    if len(body) <= MAX_VALUES:  # each has such a byte of its own
        return 0
    return body.count(b",") + body.count(b"]") + body.count(b"}")


def json_object() -> dict[str, Any]:
    """Return the body's JSON object."""
    return strict_object(json_bytes())


def text(kind: str) -> str:
    """Return the body's text."""
    try:
        return _body(kind).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParameterError("body", f"is not UTF-8 (byte {error.start})") from None


def _body(kind: str) -> bytes:
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if request.mimetype != kind or charset not in ("utf-8", "utf8", "us-ascii"):
        raise Problem("unsupported_media_type", f"send the body as {kind} in UTF-8")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Problem("unsupported_media_type", "send the body without Content-Encoding")
    return request.get_data(cache=False)
