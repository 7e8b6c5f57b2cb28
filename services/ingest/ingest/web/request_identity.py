"""When a request came in and what it is called: the same on the gateway's retry."""

import itertools
import time
import uuid
from typing import NamedTuple

from flask import request

from ingest.rules.detection_identity import IdempotencyKey

# The gateway stamps a request before it waits for a service, at most so long. A stamp that is
# older, or more than a second ahead of our clock, is a wrong clock's: ours is taken instead.
MAX_AGE_SECONDS = 60
MAX_AHEAD_SECONDS = 1

_INCARNATION = uuid.uuid4().hex  # of this process
_REQUESTS = itertools.count()


class Identity(NamedTuple):
    """When a request was received (unix seconds), and what names it."""

    received_at: float
    key: IdempotencyKey


def identify(request_id: str, stamp: str, now: float) -> Identity:
    """Return the identity of a request with the gateway's two headers (empty: not sent)."""
    received_at = _received_at(stamp, now)
    return Identity(received_at, _key(request_id, stamp, received_at))


def of_flask() -> Identity:
    """Return the identity of Flask's current request."""
    headers = request.headers
    return identify(
        headers.get("X-Request-ID", ""), headers.get("X-Request-Start", ""), time.time()
    )


def _received_at(stamp: str, now: float) -> float:
    """Return the gateway's time of a request as far as it agrees with our clock."""
    try:
        stamped = float(stamp)
    except ValueError:
        return now
    return stamped if now - MAX_AGE_SECONDS <= stamped <= now + MAX_AHEAD_SECONDS else now


def _key(request_id: str, stamp: str, received_at: float) -> IdempotencyKey:
    """Name a request by what the gateway repeats on its retry, whatever any clock of ours says.

    Without a gateway, by what no other request has, in this process or another.
    """
    if not request_id:
        return f"request:{_INCARNATION}-{next(_REQUESTS)}", int(received_at)
    try:
        seconds = int(float(stamp))
    except (ValueError, OverflowError):
        return f"request:{request_id}", None
    return f"request:{request_id}", seconds if 0 <= seconds < 2**32 else None
