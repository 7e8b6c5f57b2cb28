"""Errors of the API: what is raised, and the response that it becomes."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus

import msgspec
from flask import Response, request
from msgspec import UNSET, UnsetType
from werkzeug.exceptions import HTTPException

from ingest.api.detections.detection_results import UnconfirmedResult
from ingest.api.http import guesses
from ingest.api.http.problem_details import CODES, MEDIA_TYPE, FaultyField, ProblemDetails
from ingest.errors import (
    AUTHENTICATE,
    RETRY_AFTER_SECONDS,
    STRANGER,
    Busy,
    Fault,
    Forbidden,
    ParameterError,
    StoreUnavailable,
    TooManyAttempts,
    Unauthenticated,
)
from ingest.storage.sealed.blocks import DamagedBlock

log = logging.getLogger(__name__)

_BY_STATUS = {status: code for code, (status, _) in CODES.items()}


class Problem(Exception):
    """A request that gets no usual answer; `errors` are the fields at fault, and why."""

    def __init__(
        self,
        code: str,
        detail: str,
        errors: Sequence[FaultyField] = (),
        headers: Mapping[str, str] | None = None,
        results: Sequence[UnconfirmedResult] | UnsetType = UNSET,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = errors
        self.headers = headers or {}
        self.results = results


def invalid(faults: Sequence[Fault]) -> Problem:
    """Return the problem of bad parameters: all of them, not only the first."""
    named = [FaultyField(*fault) for fault in faults]
    return Problem("invalid_request", "; ".join(map(": ".join, faults)), named)


def unavailable(detail: str, results: Sequence[UnconfirmedResult] | UnsetType = UNSET) -> Problem:
    """Return the problem of a database that did not take, or return, everything."""
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return Problem("store_unavailable", detail, headers=headers, results=results)


def response(problem: Problem) -> Response:
    """Return a problem as its response."""
    status = CODES[problem.code][0]
    details = ProblemDetails(
        type=f"/docs#{problem.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=problem.detail,
        code=problem.code,
        request_id=request.headers.get("X-Request-ID", "-"),
        errors=problem.errors,
        results=problem.results,
    )
    body = msgspec.json.encode(details) + b"\n"
    return Response(body, status, problem.headers, mimetype=MEDIA_TYPE)


def of(error: Exception) -> Problem:
    """Return what goes wrong below the API as a problem of the API."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ParameterError):
        return invalid([error.fault])
    if isinstance(error, Unauthenticated):
        return Problem("unauthenticated", STRANGER, headers={"WWW-Authenticate": AUTHENTICATE})
    if isinstance(error, Forbidden):
        return Problem("forbidden", str(error))
    if isinstance(error, Busy):  # no 503: the gateway would take it for a failure, and ask again
        headers = {"Retry-After": str(error.wait_seconds)}
        return Problem("too_many_waiting", str(error), headers=headers)
    if isinstance(error, TooManyAttempts):
        headers = {"Retry-After": str(error.wait_seconds)}
        return Problem("too_many_attempts", str(error), headers=headers)
    if isinstance(error, StoreUnavailable):
        log.error("request %s: %s", request.headers.get("X-Request-ID", "-"), error)
        return unavailable("the database does not answer; send the request again")
    if isinstance(error, DamagedBlock):  # no 503: the other service cannot read it either
        return Problem("damaged_history", f"{error}; ask for the times beside it")
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
    if status == 404:
        near = guesses.address(request.path)
        detail = "there is nothing at this address; " + (
            f"did you mean {near}?" if near else "/docs lists all there are"
        )
    elif status == 405:
        detail = f"{request.method} is not for this address; {headers.get('Allow', 'none')} are"
    return Problem(_BY_STATUS.get(status, "invalid_request"), detail, headers=headers)
