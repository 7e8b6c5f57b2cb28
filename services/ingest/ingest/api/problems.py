"""Errors of the API as RFC 9457 problem details, each with a stable `code`."""

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from flask import Response, request
from werkzeug.exceptions import HTTPException

from ingest.errors import RETRY_AFTER_SECONDS, ParameterError, StoreUnavailable

log = logging.getLogger(__name__)

# Every code, with its status and its meaning; /docs shows this table.
CODES = {
    "invalid_request": (400, "A parameter or the body is missing or bad; `errors` names it."),
    "not_found": (404, "There is nothing at this address, or no such staff member or beacon."),
    "method_not_allowed": (
        405,
        "The address exists, but not with this method; `Allow` lists them.",
    ),
    "cursor_expired": (410, "The database no longer keeps the changes since this cursor."),
    "too_large": (413, "The body, or the number of items in it, is over the limit."),
    "unsupported_media_type": (415, "The body is not of the kind, charset or encoding asked for."),
    "too_many_waiting": (
        429,
        "Too many requests of this long kind are under way here; try again later.",
    ),
    "internal_error": (500, "A bug of ours. Name the request id when you report it."),
    "store_unavailable": (503, "The database does not answer: nothing was promised, try again."),
}
_BY_STATUS = {status: code for code, (status, _) in CODES.items()}


class Problem(Exception):
    """An answer that is not the one asked for; `errors` are the fields at fault and why."""

    def __init__(
        self,
        code: str,
        detail: str,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
        results: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = errors
        self.headers = headers or {}
        self.results = results


def invalid(errors: Sequence[ParameterError]) -> Problem:
    """Return the problem of bad parameters: all of them, not only the first."""
    named = [{"field": error.parameter, "reason": error.reason} for error in errors]
    return Problem("invalid_request", "; ".join(map(str, errors)), named)


def answer(problem: Problem) -> Response:
    """Return a problem as its response."""
    status = CODES[problem.code][0]
    body = {
        "type": f"/docs#{problem.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": problem.detail,
        "code": problem.code,
        "request_id": request.headers.get("X-Request-ID", "-"),
        "errors": list(problem.errors),
    }
    if problem.results is not None:
        body["results"] = problem.results
    text = json.dumps(body) + "\n"
    return Response(text, status, problem.headers, mimetype="application/problem+json")


def unavailable(detail: str, results: Sequence[Mapping[str, Any]] | None = None) -> Problem:
    """Return the problem of a database that did not take, or tell, everything."""
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return Problem("store_unavailable", detail, headers=headers, results=results)


def of(error: Exception) -> Problem:
    """Return what goes wrong below the API as a problem of the API."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ParameterError):
        return invalid([error])
    if isinstance(error, StoreUnavailable):
        log.error("request %s: %s", request.headers.get("X-Request-ID", "-"), error)
        return unavailable("the database does not answer; send the request again")
    if isinstance(error, HTTPException):
        return _of_http(error)
    log.error("request %s", request.headers.get("X-Request-ID", "-"), exc_info=error)
    return Problem("internal_error", "something went wrong here, not with the request")


def _of_http(error: HTTPException) -> Problem:
    status = error.code or 500
    detail = error.description or error.name
    if status == 413:
        limit = request.max_content_length or 0
        detail = f"the body is larger than {limit} bytes; send it in parts"
    headers = {n: v for n, v in error.get_headers() if n in ("Allow", "Location")}
    return Problem(_BY_STATUS.get(status, "invalid_request"), detail, headers=headers)
