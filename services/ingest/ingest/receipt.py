"""When a request came in and what it is called: the same on the gateway's retry."""

import itertools
import time
import uuid

from flask import request

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


def request_id() -> str:
    """Return the gateway's id of the request; without a gateway, one of our own."""
    return request.headers.get("X-Request-ID") or new_id()


def new_id() -> str:
    """Return an id that no other request has, in this process or another."""
    return f"{_PROCESS}-{next(_REQUESTS)}"
