"""How errors are answered outside of /api/v1: as JSON, never with a page or a stack trace."""

import logging

from werkzeug.exceptions import HTTPException

from ingest.errors import (
    AUTHENTICATE,
    RETRY_AFTER_SECONDS,
    STRANGER,
    BodyTooLarge,
    Busy,
    Forbidden,
    ParameterError,
    StoreUnavailable,
    Unauthenticated,
)
from ingest.web.responses import Response, of_json

log = logging.getLogger(__name__)

# To who reads, and to who wants something stored.
UNAVAILABLE = "the database does not answer, or not in time: nothing can be told, ask again"
NOT_STORED = "the database does not answer: nothing was stored, send it again"


def response_to(error: Exception, request_id: str, *, stores: bool = False) -> Response:
    """Return the response to whatever went wrong with a request; `stores`: one that stores."""
    if isinstance(error, ParameterError):
        return of_json(400, {"error": str(error), "parameter": error.parameter})
    if isinstance(error, Unauthenticated):
        scheme = (b"www-authenticate", AUTHENTICATE.encode())
        return of_json(401, {"error": STRANGER}, scheme)
    if isinstance(error, Forbidden):
        return of_json(403, {"error": str(error)})
    if isinstance(error, BodyTooLarge):
        return of_json(413, {"error": "body: larger than the limit", "parameter": "body"})
    if isinstance(error, Busy):  # no 503: the gateway would take it for a failure, and ask again
        wait = (b"retry-after", b"%d" % error.wait_seconds)
        return of_json(429, {"error": str(error)}, wait)
    if isinstance(error, StoreUnavailable):
        log.error("request %s: %s", request_id or "-", error)
        retry = (b"retry-after", b"%d" % RETRY_AFTER_SECONDS)
        return of_json(503, {"error": NOT_STORED if stores else UNAVAILABLE}, retry)
    if isinstance(error, HTTPException):  # Flask's own: no such address, not with this method
        if error.code == 413:
            return response_to(BodyTooLarge(), request_id)
        return of_json(error.code or 500, {"error": error.name.lower()}, *_allowed(error))
    log.error("request %s", request_id or "-", exc_info=error)
    return of_json(500, {"error": "internal server error"})


def _allowed(error: HTTPException) -> list[tuple[bytes, bytes]]:
    return [(b"allow", value.encode()) for name, value in error.get_headers() if name == "Allow"]


def ending() -> Response:
    """Return the response to a request that is cut off, since the service ends."""
    retry = (b"retry-after", b"%d" % RETRY_AFTER_SECONDS)
    return of_json(503, {"error": "this service is being restarted: send it again"}, retry)


def late() -> Response:
    """Return the response to a request whose body did not come."""
    return of_json(408, {"error": "the request took too long to arrive"})
