"""When a request came in and what it is called: the same on the gateway's retry."""

import itertools
import time
import uuid

from flask import request

from ingest.storage.detections import IdempotencyKey

# A gateway's clock further off than this is not believed.
MAX_GATEWAY_DELAY_SECONDS = 60

_PROCESS = uuid.uuid4().hex
_REQUESTS = itertools.count()


def received_at() -> float:
    """Return when the gateway got the request: the same on its retry, unlike this clock."""
    return believed(request.headers.get("X-Request-Start"), time.time())


def believed(stamp: str | None, now: float) -> float:
    """Return the gateway's time of a request as far as it agrees with ours (unix seconds)."""
    try:
        stamped = float(stamp or "")
    except ValueError:
        return now
    return stamped if now - MAX_GATEWAY_DELAY_SECONDS <= stamped <= now + 1 else now


def request_key(at: float) -> IdempotencyKey:
    """Return what names the request that was received at a unix time."""
    return key(request.headers.get("X-Request-ID"), request.headers.get("X-Request-Start"), at)


def key(request_id: str | None, stamp: str | None, at: float) -> IdempotencyKey:
    """Name a request by what the gateway repeats on its retry, whatever any clock of ours says.

    Without a gateway, by what no other request has, in this process or another.
    """
    if not request_id:
        return f"request:{_PROCESS}-{next(_REQUESTS)}", int(at)
    try:
        seconds = int(float(stamp or ""))
    except (ValueError, OverflowError):
        return f"request:{request_id}", None
    return f"request:{request_id}", seconds if 0 <= seconds < 2**32 else None
