"""What can go wrong, in the service's own words, and how each is answered over HTTP."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask, Response, jsonify, request
from pymongo.errors import PyMongoError
from werkzeug.exceptions import HTTPException

log = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 2
UNAVAILABLE = "the database does not answer: nothing was stored, send it again"


class ParameterError(ValueError):
    """A request parameter is missing or bad: which one, and why."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}")
        self.parameter = parameter
        self.reason = reason


class StoreUnavailable(Exception):
    """The database did not confirm an operation: nothing may be promised to the client."""


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn what the driver raises into StoreUnavailable."""
    try:
        yield
    except PyMongoError as error:
        raise StoreUnavailable(str(error)) from error


def init_app(app: Flask) -> None:
    """Answer every error as JSON, never with a page or a stack trace."""
    app.register_error_handler(ParameterError, _bad_parameter)
    app.register_error_handler(StoreUnavailable, _store_unavailable)
    app.register_error_handler(HTTPException, http_error)


def _bad_parameter(error: ParameterError) -> tuple[Response, int]:
    return jsonify(error=str(error), parameter=error.parameter), 400


def _store_unavailable(error: StoreUnavailable) -> tuple[Response, int, dict[str, str]]:
    log.error("request %s: %s", request.headers.get("X-Request-ID", "-"), error)
    answer = jsonify(error=UNAVAILABLE)
    return answer, 503, {"Retry-After": str(RETRY_AFTER_SECONDS)}


def http_error(error: HTTPException) -> tuple[Response, int]:
    """Answer what went wrong outside of our own code: no such address, too large, a bug."""
    if error.code == 413:
        return jsonify(error="body: larger than the limit", parameter="body"), 413
    return jsonify(error=error.name.lower()), error.code or 500
