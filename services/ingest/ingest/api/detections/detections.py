"""Taking detections in: POST /detections, one or up to 1000 of them."""

import json
import random
from collections import Counter

import msgspec
from flask import Response, request
from msgspec import UNSET

from ingest.api.detections import detection_input, detection_items
from ingest.api.detections.detection_input import (
    MAX_ITEMS,
    BatchInput,
    DetectionInput,
    ScanInput,
    ScansInput,
    SingleInput,
)
from ingest.api.detections.detection_items import ParsedBatch
from ingest.api.detections.detection_results import (
    WOULD_QUEUE,
    WOULD_STORE,
    Counts,
    DetectionResults,
    UnconfirmedResult,
)
from ingest.api.http import bodies, responses
from ingest.api.http.problems import invalid, unavailable
from ingest.api.http.query import Flag
from ingest.api.openapi import declarations
from ingest.api.openapi.declarations import JSON, Body, Content, declare
from ingest.assembly import Context, get_context
from ingest.errors import StoreUnavailable
from ingest.recording.outcome import Outcome, PartlyStored
from ingest.rules.request_parameters import RIGHT_SECONDS
from ingest.storage.detections.documents import Document, correct, detection
from ingest.storage.directory.directory import Snapshot
from ingest.web import request_identity

# `/docs` puts a fresh one in its place each time.
EXAMPLE_ID = "8f14e45f-ceea-467f-a0e6-5c1d2b7e9a30"
_EXAMPLE = {"staff_id": 0, "mac": "C2:A6:28:38:4B:08", "rssi": -67, "event_id": EXAMPLE_ID}
_DRY_RUN = Flag("dry_run", "`1`: store nothing, answer what would happen")
_ANSWERS = declarations.gives(DetectionResults)
_WOULD: dict[str, str] = {Outcome.STORED: WOULD_STORE, Outcome.QUEUED: WOULD_QUEUE}


@declare(
    "POST",
    "/detections",
    summary="Store detections",
    description=f'One object, or `{{"detections": [...]}}` with up to {MAX_ITEMS} of them. 200:'
    " each is stored by a majority of the database's servers, in their journals, or its result says"
    " `rejected`. 202: some are queued; nothing more is to be done about them. A single object that"
    " is bad is a 400. On 429 and 503 nothing is promised: send all of it again, with the same"
    " `event_id`s and timestamps; a 503 with `results` says which items are stored all the same."
    " Without `event_id`s, the gateway's own retry is harmless too: it"
    " repeats its request id, which with the item's index then names the detection.",
    parameters=[_DRY_RUN],
    body=Body(
        "One detection or many.",
        {
            JSON: Content(
                (DetectionInput, SingleInput, BatchInput, ScanInput, ScansInput),
                example={"detections": [_EXAMPLE]},
            )
        },
    ),
    answers=_ANSWERS | {202: _ANSWERS[200]._replace(description="Done; some are queued.")},
    problems=["invalid_request", "too_large", "unsupported_media_type", "store_unavailable"],
    curl="curl 'HOST/api/v1/detections' -H 'Content-Type: application/json'"
    f" -d '{json.dumps(_EXAMPLE)}'",
)
def post_detections() -> Response:
    """Store one detection or many, and answer what became of each."""
    dry_run = _DRY_RUN.read(request.args)
    sent = detection_input.read(bodies.json_bytes())
    context, identity = get_context(), request_identity.of_flask()
    batch = detection_items.parse(sent, identity, _directory(context))
    if sent.single and batch.faults:
        raise invalid(batch.faults[0])
    if sent.at is not None:
        for document, result in zip(batch.documents, batch.accepted, strict=True):
            if result.skew_seconds is not None:  # else its time is ours
                correct(document, sent.at)
    try:
        outcomes = _outcomes(context, batch.documents, dry_run=dry_run)
    except PartlyStored as error:
        results = detection_items.describe(batch, error.outcomes)
        detail = "some items were not stored; `results` says which"
        unconfirmed = [UnconfirmedResult(**msgspec.structs.asdict(result)) for result in results]
        raise unavailable(detail, unconfirmed) from error
    if batch.telemetry and not dry_run:
        _note_telemetry(context, batch)
    results = detection_items.describe(batch, outcomes)
    counted = Counter(result.status for result in results)
    counts = Counts(*(counted[status] for status in Counts.__struct_fields__))
    status = 202 if counts.queued else 200
    if dry_run:
        for result in results:
            result.status = _WOULD.get(result.status, result.status)
    answer = DetectionResults(results, counts, dry_run, did_you_mean=sent.meant or UNSET)
    if sent.at is not None:
        skew = answer.clock_skew_seconds = int(identity.received_at) - sent.at
        wrong = "behind" if skew > 0 else "ahead"
        answer.clock = "right" if abs(skew) <= RIGHT_SECONDS else wrong
    return responses.as_json(answer, status)


def _directory(context: Context) -> Snapshot | None:
    """Return the directory, None while it cannot be read."""
    try:
        return context.directory_snapshot()
    except StoreUnavailable:
        return None


def _note_telemetry(context: Context, batch: ParsedBatch) -> None:
    """Keep what beacons of the directory told of themselves."""
    directory = context.directory.cache.cached()
    if directory is None:
        return
    # A gateway sends its beacons in one order: of those that find no room others each time.
    for index, readings in random.sample(batch.telemetry, len(batch.telemetry)):
        heard = detection(batch.documents[index])
        if entry := directory.by_id.get(heard.mac):
            context.directory.telemetry.note(entry.mac, heard.heard_at, readings)


def _outcomes(context: Context, documents: list[Document], *, dry_run: bool) -> list[Outcome]:
    """Store the documents and return what became of each, in a dry run what would."""
    if not documents:
        return []
    if not dry_run:
        return context.recording.recorder.record(documents)
    try:
        context.database.availability.check_answers()
        stored = context.histories.detections.already_stored(documents)
    except StoreUnavailable:
        return [Outcome.QUEUED] * len(documents)
    return [Outcome.DUPLICATE if repeat else Outcome.STORED for repeat in stored]
