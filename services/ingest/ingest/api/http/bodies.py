"""Bodies of requests: of the right kind, in UTF-8, whole, and not too large."""

import itertools
import re
import zlib
from typing import Any

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge

from ingest.api.http.problems import Problem
from ingest.api.openapi.declarations import JSON
from ingest.errors import ParameterError
from ingest.rules.strict_json import strict_object

# Values in a body: 12 for each item of the largest batch. More are refused before they are built:
# 1 MiB of short ones would take up to 37 MiB.
MAX_VALUES = 12_000
# Up to the end of a value, past the strings before it. Nothing in it is tried twice.
_VALUE = re.compile(rb'(?:[^],}"]++|"(?:[^"\\]++|\\.)*+"?)*+[],}]', re.DOTALL)


def json_bytes() -> bytes:
    """Return a body that says it is JSON, as it came."""
    return _body(JSON)


def json_object(body: bytes | None = None) -> dict[str, Any]:
    """Return the JSON object of the request's body, or of one that was read already.

    Problem: it holds too many values; known before they are built.
    """
    text = json_bytes() if body is None else body
    if _has_too_many_values(text):
        raise Problem("too_large", f"more than {MAX_VALUES} values in the body")
    return strict_object(text)


def _has_too_many_values(text: bytes) -> bool:
    """Tell whether a JSON text may: each value but the outermost ends at a `,`, `]` or `}`."""
    if sum(map(text.count, (b",", b"]", b"}"))) <= MAX_VALUES:
        return False
    return next(itertools.islice(_VALUE.finditer(text), MAX_VALUES, None), None) is not None


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
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if encoding == "gzip":
        return _inflated(request.get_data(cache=False), request.max_content_length or 0)
    if encoding != "identity":
        raise Problem("unsupported_media_type", "send the body with Content-Encoding gzip or none")
    return request.get_data(cache=False)


def _inflated(packed: bytes, limit: int) -> bytes:
    """Return what a body was before gzip; nothing beyond the limit is ever made of it."""
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)  # 16: with the head and the checksum of gzip
    try:
        body = reader.decompress(packed, limit + 1)
    except zlib.error:
        raise ParameterError("body", "is not gzip") from None
    if len(body) > limit:
        raise RequestEntityTooLarge
    if not reader.eof or reader.unused_data:
        raise ParameterError("body", "is not one whole gzip member")
    return body
