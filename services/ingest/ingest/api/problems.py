"""Errors of the API as RFC 9457 problem details, each with a stable `code`."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated

import msgspec
from flask import Response, request
from msgspec import UNSET, Meta, UnsetType
from werkzeug.exceptions import HTTPException

from ingest.api.detection_results import UnconfirmedResult
from ingest.api.fields import Answer
from ingest.errors import RETRY_AFTER_SECONDS, ParameterError, StoreUnavailable

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
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


class FaultyField(Answer):
    """A field at fault, and why."""

    field: Annotated[str, Meta(description="Parameter or field at fault")]
    reason: Annotated[str, Meta(description="Why")]
    line: Annotated[int | UnsetType, Meta(description="Line of the file")] = UNSET


class ProblemDetails(Answer):
    """What went wrong, after RFC 9457."""

    type: Annotated[str, Meta(description="Where this kind of problem is described")]
    title: Annotated[str, Meta(description="The status in words")]
    status: Annotated[int, Meta(description="The status")]
    detail: Annotated[str, Meta(description="What went wrong this time")]
    code: Annotated[
        str,
        Meta(description="Stable name of the problem", extra_json_schema={"enum": list(CODES)}),
    ]
    request_id: Annotated[
        str, Meta(description="Name it when you ask; it stands in the gateway's log")
    ]
    errors: Sequence[FaultyField]
    results: Annotated[
        Sequence[UnconfirmedResult] | UnsetType,
        Meta(
            description="Of detections that were stored in part, what became of each, as in a 200."
            " Neither the database nor our disk took those that are `unavailable`: send them"
            " again, or all of it if they have `event_id`s"
        ),
    ] = UNSET


class Problem(Exception):
    """An answer that is not the one asked for; `errors` are the fields at fault and why."""

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


def invalid(errors: Sequence[ParameterError]) -> Problem:
    """Return the problem of bad parameters: all of them, not only the first."""
    named = [FaultyField(error.parameter, error.reason) for error in errors]
    return Problem("invalid_request", "; ".join(map(str, errors)), named)


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
