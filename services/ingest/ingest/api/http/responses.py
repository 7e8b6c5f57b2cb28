"""What every answer of the API shares: JSON from a Struct, ISO times, 304 when unchanged."""

import datetime
import hashlib
import itertools
import threading
from collections.abc import Callable, Iterator

import msgspec
from flask import Response, request

from ingest.api.openapi.declarations import JSON

# Held while something is made that takes megabytes: eight pages of 5000 rows at once took 98 MiB.
one_at_a_time = threading.Lock()
# An answer of fewer pieces has a Content-Length.
WHOLE_PIECES = 8


def as_json(answer: msgspec.Struct, status: int = 200) -> Response:
    """Return an answer as compact JSON."""
    return Response(msgspec.json.encode(answer) + b"\n", status, mimetype=JSON)


def filled(answer: msgspec.Struct, items: Iterator[bytes]) -> Response:
    """Return an answer whose last field is an empty list with these items in it, in pieces.

    `items` is JSON with its commas. A short answer is sent whole.
    """
    opening, closing = around_items(answer)
    pieces = itertools.chain([opening], items, [closing, b"\n"])
    begun = list(itertools.islice(pieces, WHOLE_PIECES))
    if len(begun) < WHOLE_PIECES:
        return Response(b"".join(begun), mimetype=JSON)
    return Response(itertools.chain(begun, pieces), mimetype=JSON)


def around_items(answer: msgspec.Struct) -> tuple[bytes, bytes]:
    """Return the JSON before and after the items of an answer's last list, an empty one."""
    opening, closing = msgspec.json.encode(answer).rsplit(b"[]", 1)
    return opening + b"[", b"]" + closing


def json_unless_held(etag: str, make: Callable[[], msgspec.Struct]) -> Response:
    """Return a 304 when the client holds the answer with this tag, else the answer."""
    return not_modified(etag) or tagged(as_json(make()), etag)


def not_modified(etag: str) -> Response | None:
    """Return a 304 when the client holds the answer with this tag."""
    if not request.if_none_match.contains_weak(etag):
        return None
    return tagged(Response(status=304), etag)


def tagged(response: Response, etag: str) -> Response:
    """Mark a response with a tag; with it the client can ask whether it still holds."""
    response.set_etag(etag, weak=True)
    response.headers["Cache-Control"] = "no-cache"
    return response


def tag(*parts: object) -> str:
    """Return a short text that changes with any of the parts."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def iso(seconds: float) -> str:
    """Return unix seconds as ISO 8601 in UTC."""
    whole = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    return f"{whole.isoformat()[:19]}Z"  # a third of what strftime takes
