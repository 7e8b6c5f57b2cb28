"""What every answer of the API shares: compact JSON, times in two forms, 304 when unchanged."""

import datetime
import hashlib
import json
import threading
from typing import Any

from flask import Response, request

# Held while something is made that takes megabytes: eight pages of 5000 rows at once took 98 MiB.
one_at_a_time = threading.Lock()


def as_json(value: Any, status: int = 200) -> Response:
    """Return a value as compact JSON."""
    text = json.dumps(value, separators=(",", ":")) + "\n"
    return Response(text, status, mimetype="application/json")


def iso(seconds: float) -> str:
    """Return unix seconds as ISO 8601 in UTC."""
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def seconds(date: datetime.datetime) -> float:
    """Return the unix seconds of a date as the driver reads it: UTC without saying so."""
    return date.replace(tzinfo=datetime.UTC).timestamp()


def tag(*parts: object) -> str:
    """Return a short text that changes with any of the parts."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def held(etag: str) -> Response | None:
    """Return a 304 when the client has this already."""
    if not request.if_none_match.contains_weak(etag):
        return None
    return tagged(Response(status=304), etag)


def tagged(response: Response, etag: str) -> Response:
    """Let the client ask next time whether this still holds."""
    response.set_etag(etag, weak=True)
    response.headers["Cache-Control"] = "no-cache"
    return response
