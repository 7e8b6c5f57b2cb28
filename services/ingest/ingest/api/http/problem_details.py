"""What an error of the API answers: problem details (RFC 9457), each with a stable `code`."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from ingest.api.detections.detection_results import UnconfirmedResult
from ingest.api.openapi.schema_fields import ResponseBody

MEDIA_TYPE = "application/problem+json"
# Every code, with its status and its meaning; /docs shows this table.
CODES = {
    "invalid_request": (400, "A parameter or the body is missing or bad; `errors` names it."),
    "unauthenticated": (
        401,
        "No valid token or log-in came with it, or the password is not that name's.",
    ),
    "forbidden": (
        403,
        "The role of who sent it may not do this, or a write with a cookie lacks `X-CSRF-Token`.",
    ),
    "not_found": (404, "There is nothing at this address, or not what it names."),
    "method_not_allowed": (
        405,
        "The address exists, but not with this method; `Allow` lists them.",
    ),
    "conflict": (
        409,
        "It does not fit what is there: the last admin, a new account without password, too many,"
        " somebody who logs in with OpenID Connect.",
    ),
    "damaged_history": (
        410,
        "A block of sealed detections cannot be read, and a file has no place to say so. Ask for"
        " the times beside it: `/system` names it.",
    ),
    "cursor_expired": (410, "The database no longer keeps the changes since this cursor."),
    "precondition_failed": (
        412,
        "What is there is not what `If-Match` names: somebody changed it since. Read it again."
        " Or something is there, and `If-None-Match: *` wants nothing.",
    ),
    "too_large": (413, "The body, or the number of items in it, is over the limit."),
    "unsupported_media_type": (
        415,
        "The body is not of the kind, charset or encoding that the endpoint takes.",
    ),
    "too_many_attempts": (
        429,
        "Too many log-ins failed; `Retry-After` tells when the next is tried.",
    ),
    "too_many_waiting": (
        429,
        "Too many requests of this long kind are under way here; try again later.",
    ),
    "internal_error": (500, "A bug of ours. Name the request id when you report it."),
    "store_unavailable": (503, "The database does not answer: nothing was promised, try again."),
}


class FaultyField(ResponseBody):
    """A field at fault, and why."""

    field: Annotated[str, Meta(description="Parameter or field at fault")]
    reason: Annotated[str, Meta(description="Why")]
    line: Annotated[int | UnsetType, Meta(description="Line of the file")] = UNSET


class ProblemDetails(ResponseBody):
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
