"""Responses that the event loop and Flask send alike: status, headers and body."""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from flask import Response as FlaskResponse
from werkzeug.http import parse_accept_header, parse_etags

Headers = list[tuple[bytes, bytes]]


class Response(NamedTuple):
    """What to send; header names in lower case.

    `waits`: more of the body is read from the database while it is sent, so not in the event loop.
    """

    status: int
    headers: Headers
    body: Iterable[bytes]
    waits: bool = False

    def for_flask(self) -> FlaskResponse:
        """Return the same as Flask's."""
        headers = [(name.decode().title(), value.decode()) for name, value in self.headers]
        return FlaskResponse(self.body, self.status, headers)


def of_text(status: int, text: bytes, kind: bytes, *more: tuple[bytes, bytes]) -> Response:
    """Return a short body of a media type, with more headers."""
    length = b"%d" % len(text)
    return Response(status, [(b"content-type", kind), (b"content-length", length), *more], [text])


def of_json(status: int, value: Any, *more: tuple[bytes, bytes]) -> Response:
    """Return an object as compact JSON, its names sorted as Flask does."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True).encode() + b"\n"
    return of_text(status, text, b"application/json", *more)


@lru_cache(128)
def takes_gzip(accept_encoding: str) -> bool:
    """Tell whether a client with this header takes gzip."""
    return bool(parse_accept_header(accept_encoding)["gzip"])


def has(if_none_match: str, etag: str) -> bool:
    """Tell whether a client with this header has the body that an ETag names."""
    return bool(if_none_match) and parse_etags(if_none_match).contains_raw(etag)
