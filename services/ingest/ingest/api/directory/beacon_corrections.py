"""Correcting the past of a beacon: /beacons/<mac>/correction."""

import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from flask import Response, request
from msgspec import UNSET, Meta, UnsetType

from common.beacon import Beacon
from ingest.api.access import audited
from ingest.api.directory import beacon_input
from ingest.api.directory.registered_beacons import RegisteredBeacon, present
from ingest.api.http import responses
from ingest.api.http.problems import Problem, invalid
from ingest.api.http.query import MAC_IN_PATH, Text
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.api.openapi.schema_fields import ResponseBody, StaffId
from ingest.assembly import get_context
from ingest.errors import ParameterError
from ingest.rules import request_parameters
from ingest.storage.directory.directory import Place

# Holds one of the service's threads for seconds: a few at once would keep everybody waiting.
_correcting = threading.BoundedSemaphore(1)
MAX_NAMED = 50
_ID = Text("id", "`correction` of the answer that began it", pattern="[0-9a-f]{16}")
_UNDONE_ID = _ID._replace(required=True)

Name = Annotated[str, Meta(pattern="^([0-9a-f]{16})?$", description="By which it is undone")]


class CorrectedBeacon(RegisteredBeacon):
    """A beacon as it was put into the directory."""

    corrected: Annotated[int, Meta(description="Past detections that this request gave the place")]
    correction: Name
    warning: Annotated[
        str | UnsetType, Meta(description="What looks wrong with its position, which was stored")
    ] = UNSET


class UnfinishedCorrection(CorrectedBeacon, kw_only=True):
    """A beacon whose past is corrected in part."""

    remaining: Annotated[int, Meta(description="Past detections that still have another place")]


class Undone(ResponseBody):
    """Detections that have their old places again."""

    undone: Annotated[int, Meta(description="How many this request gave them back to")]


class UnfinishedUndo(Undone):
    """A correction that is undone in part."""

    remaining: Annotated[int, Meta(description="Past detections that still have the new place")]


class Whose(ResponseBody):
    """Somebody whose past would change."""

    staff_id: StaffId
    detections: int


class Foreseen(ResponseBody):
    """What a correction would change."""

    detections: int
    people: int
    staff: Annotated[list[Whose], Meta(description=f"Most first, {MAX_NAMED} at most")]


CORRECTS = declarations.gives(CorrectedBeacon) | {
    202: Body("Done in part.", {JSON: Content(UnfinishedCorrection)})
}


@declare(
    "GET",
    "/beacons/<beacon:mac>/correction",
    summary="What a correction of the past would change",
    description="How many stored detections of a beacon, by any of its ids, have another place than"
    " this one, and whose they are. Nothing is changed.",
    parameters=[
        MAC_IN_PATH,
        Text("level", "Level", "4", required=True),
        Text("location", "Name of the spot", "Lobby B", required=True),
        Text("aliases", "Its other ids then, with blanks between; without it, those that it has"),
    ],
    answers=declarations.gives(Foreseen),
    problems=["invalid_request", "store_unavailable"],
    curl="curl 'HOST/api/v1/beacons/C2A628384B08/correction?level=4&location=Lobby%20B'",
    tag="beacons",
)
def foresee_correction(mac: str) -> Response:
    """Answer what a correction would change."""
    wanted, faults = beacon_input.beacon(request.args.to_dict() | {"mac": mac})
    if wanted is None:
        raise invalid(faults)
    context = get_context()
    context.database.availability.check_reachable()
    place = Place(wanted.level, wanted.location)
    people = context.directory.corrections.foresee(
        wanted.mac, wanted.aliases if "aliases" in request.args else None, place
    )
    named = [Whose(*person) for person in people[:MAX_NAMED]]
    return responses.as_json(Foreseen(sum(count for _, count in people), len(people), named))


@declare(
    "POST",
    "/beacons/<beacon:mac>/correction",
    summary="Go on with a correction of the past",
    description="Gives stored detections the place that the beacon has now, for some seconds;"
    " repeat it until the answer is 200. Each detection is a change of its own in `/changes`."
    " Without an `id` it is a correction of its own.",
    parameters=[MAC_IN_PATH, _ID],
    answers=CORRECTS,
    problems=["invalid_request", "not_found", "too_many_waiting", "store_unavailable"],
    curl="curl -X POST 'HOST/api/v1/beacons/C2A628384B08/correction'",
    tag="beacons",
)
def correct_beacon(mac: str) -> Response:
    """Go on with a correction of the past."""
    wanted, name = request_parameters.any_beacon({"mac": mac}, "mac"), _name() or new_name()
    with only_correction():
        context = get_context()
        context.database.availability.check_reachable()
        beacon = present(context.directory.beacons.find([wanted]).get(wanted), wanted)
        place = {"level": beacon.level, "location": beacon.location}
        audited.note("beacon corrected", beacon.mac, **place, correction=name)
        return correct(beacon, name)


@declare(
    "DELETE",
    "/beacons/<beacon:mac>/correction",
    summary="Undo a correction of the past",
    description="Gives the detections that it changed the places that they had before, for some"
    " seconds; repeat it until the answer is 200. Those that were corrected again since stay. The"
    " directory is not changed: put the beacon's old place there first. It undoes that of all ids"
    " that the beacon has then; for one that it has no more, ask with that one, too.",
    parameters=[MAC_IN_PATH, _UNDONE_ID],
    answers=declarations.gives(Undone)
    | {202: Body("Done in part.", {JSON: Content(UnfinishedUndo)})},
    problems=["invalid_request", "too_many_waiting", "store_unavailable"],
    curl="curl -X DELETE 'HOST/api/v1/beacons/C2A628384B08/correction?id=0123456789abcdef'",
    tag="beacons",
)
def undo_correction(mac: str) -> Response:
    """Undo a correction of the past."""
    wanted, name = request_parameters.any_beacon({"mac": mac}, "mac"), _name()
    if not name:
        raise ParameterError(_ID.name, "is missing")
    with only_correction():
        context = get_context()
        context.database.availability.check_reachable()
        audited.note("correction undone", wanted, correction=name)
        beacon = context.directory.beacons.find([wanted]).get(wanted)
        ids = beacon.ids if beacon else [wanted]
        undone, remaining = context.directory.corrections.undo(ids, name)
        audited.note("past given back", wanted, correction=name, detections=undone)
    if remaining is None:
        return responses.as_json(Undone(undone))
    return responses.as_json(UnfinishedUndo(undone, remaining), 202)


@contextmanager
def only_correction() -> Iterator[None]:
    """Let one request at a time correct the past."""
    if not _correcting.acquire(blocking=False):
        detail = "another correction is under way; nothing was changed, try again when it is done"
        raise Problem("too_many_waiting", detail, headers={"Retry-After": "10"})
    try:
        yield
    finally:
        _correcting.release()


def new_name() -> str:
    """Return by what a new correction is undone."""
    return secrets.token_hex(8)


def correct(beacon: Beacon, name: str) -> Response:
    """Correct the past of a beacon, audited before it begins, for some seconds; answer how far."""
    done = get_context().directory.corrections.correct(beacon, name)
    audited.note("past corrected", beacon.mac, correction=name, detections=done.corrected)
    if done.remaining is None:
        corrected = CorrectedBeacon(*beacon, done.corrected, name, warning(beacon))
        return responses.as_json(corrected)
    answer = UnfinishedCorrection(*beacon, done.corrected, name, remaining=done.remaining)
    return responses.as_json(answer, 202)


def warning(beacon: Beacon) -> str | UnsetType:
    """Return what looks wrong with a beacon's position."""
    directory = get_context().directory.cache.current()
    return beacon_input.doubts_of([beacon], directory.beacons).get(beacon.mac, UNSET)


def _name() -> str:
    name: str = request.args.get(_ID.name, "")
    if name and not re.fullmatch(_ID.pattern, name):
        raise ParameterError(_ID.name, "is none that we gave")
    return name
