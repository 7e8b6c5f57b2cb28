"""Forgetting a person: /people/forgotten. The address names nobody: addresses stand in logs."""

from collections.abc import Mapping
from typing import Annotated, Any

from flask import Response
from msgspec import Meta, Struct

from ingest.api.access import audited
from ingest.api.http import bodies, responses
from ingest.api.http.problems import invalid
from ingest.api.http.readers import Reader, read_all
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import STAFF_ID, ResponseBody, StaffText
from ingest.assembly import get_context
from ingest.errors import ParameterError
from ingest.rules import request_parameters


class ForgottenInput(Struct):
    """Who is to be forgotten."""

    staff_id: Annotated[int | StaffText, Meta(description=STAFF_ID)]
    go_on: Annotated[bool, Meta(description="What came since it was begun stays")] = False


class Forgotten(ResponseBody):
    """Somebody of whom nothing is kept."""

    deleted: Annotated[int, Meta(description="Detections that this request deleted")]


class PartlyForgotten(Forgotten):
    """Somebody of whom something is left."""

    remaining: Annotated[int, Meta(description="Detections that are left, at most")]


@declare(
    "POST",
    "/people/forgotten",
    summary="Forget a person",
    description="Deletes all that is kept of a person: detections, latest position, name, and what"
    " was said of a lost contact. The first answer is a 202: repeat it with `go_on` until it is a"
    " 200, for what is being stored now is deleted after 8 s. What waits in spools or is cached"
    " goes within 15 s more. What comes later is new. docs/personal-data.md tells what stays.",
    body=Body("The person.", {JSON: Content(ForgottenInput, example={"staff_id": 7})}),
    answers=declarations.gives(Forgotten)
    | {202: Body("Done in part.", {JSON: Content(PartlyForgotten)})},
    problems=[
        "invalid_request",
        "too_large",
        "unsupported_media_type",
        "store_unavailable",
    ],
    curl="curl -X POST 'HOST/api/v1/people/forgotten' -H 'Content-Type: application/json'"
    """ -d '{"staff_id": 7}'""",
    tag="people",
)
def forget_person() -> Response:
    """Forget one person, or go on with it."""
    readers: dict[str, Reader] = {"staff_id": request_parameters.staff_id, "go_on": _go_on}
    values, faults = read_all(readers, bodies.json_object())
    if faults:
        raise invalid(faults)
    wanted, go_on = values.values()
    context = get_context()
    context.database.availability.check_reachable()
    deleted, remaining = context.recording.forgetting.forget(wanted, go_on=go_on)
    context.people.names.reload()
    if deleted or not go_on:
        audited.note("person forgotten", detections=deleted)
    if remaining is None:
        return responses.as_json(Forgotten(deleted))
    return responses.as_json(PartlyForgotten(deleted, remaining), 202)


def _go_on(body: Mapping[str, Any], field: str) -> bool:
    value = body.get(field, False)
    if not isinstance(value, bool):
        raise ParameterError(field, "must be true or false")
    return value
