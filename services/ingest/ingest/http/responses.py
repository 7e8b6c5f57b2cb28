"""Answers that Flask and the event loop give alike: status, headers and body."""

import json
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from werkzeug.http import parse_accept_header, parse_etags

from ingest.errors import RETRY_AFTER_SECONDS, UNAVAILABLE
from ingest.histories.cache import Answer
from ingest.recording.recorder import Outcome

ADDED = b"New Beacon Detection Added"
EXPOSED = ["Retry-After", "X-Circuit-State", "X-Request-ID"]
# Below this a compressed answer is hardly shorter; the gateway has the same bound.
GZIP_MIN_BYTES = 1000


class Reply(NamedTuple):
    """What to answer."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: Iterable[bytes]

    def for_any_origin(self) -> "Reply":
        """Return the same with the headers that flask-cors adds to Flask's answers."""
        return self._replace(headers=self.headers + _CORS)


_CORS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", ", ".join(EXPOSED).encode()),
]


@cache
def added(outcome: Outcome) -> Reply:
    """Answer a detection: 200 once a majority has it in its journal, 202 once our disk has it."""
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(ADDED)),
        (b"x-detection", outcome.value.encode()),
    ]
    return Reply(202 if outcome is Outcome.QUEUED else 200, headers, [ADDED])


@cache
def unavailable() -> Reply:
    """Answer that the database does not."""
    reply = _error(503, UNAVAILABLE)
    reply.headers.append((b"retry-after", b"%d" % RETRY_AFTER_SECONDS))
    return reply


@cache
def late() -> Reply:
    """Answer a request whose body did not come."""
    return _error(408, "the request took too long to arrive").for_any_origin()


def _error(status: int, text: str) -> Reply:
    body = json.dumps({"error": text}, separators=(",", ":")).encode() + b"\n"
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    return Reply(status, headers, [body])


def history(answer: Answer, accepted: str, held: str) -> Reply:
    """Answer a history, for the request's headers Accept-Encoding and If-None-Match."""
    headers = [(b"cache-control", b"no-cache"), (b"vary", b"Accept-Encoding")]
    if answer.etag:
        headers.append((b"etag", answer.etag.encode()))
        if held and parse_etags(held).contains_raw(answer.etag):
            return Reply(304, headers, [])
    headers.append((b"content-type", b"application/json"))
    length, body = answer.length, answer.text()
    if length >= GZIP_MIN_BYTES and _takes_gzip(accepted):
        packed = answer.gzip()
        length, body = len(packed), [packed]
        headers.append((b"content-encoding", b"gzip"))
    headers.append((b"content-length", b"%d" % length))
    return Reply(200, headers, body)


@lru_cache(128)
def _takes_gzip(accepted: str) -> bool:
    return bool(parse_accept_header(accepted)["gzip"])
