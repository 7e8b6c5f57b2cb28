"""When a request came in and what it is called: the same on the gateway's retry."""

import time
import uuid

from flask import request

# A gateway's clock further off than this is not believed.
MAX_GATEWAY_DELAY_SECONDS = 60


def received_at() -> float:
    """Return when the gateway got the request: the same on its retry, unlike this clock."""
    now = time.time()
    try:
        stamped = float(request.headers.get("X-Request-Start", ""))
    except ValueError:
        return now
    return stamped if now - MAX_GATEWAY_DELAY_SECONDS <= stamped <= now + 1 else now


def request_id() -> str:
    """Return the gateway's id of the request; without a gateway, one of our own."""
    return request.headers.get("X-Request-ID") or uuid.uuid4().hex
