"""Taking detections in: POST /detections, one or up to 1000 of them."""

import json
from collections import Counter

from flask import Response, request

from ingest.api import bodies, openapi
from ingest.api import detection_items as items
from ingest.api.detection_items import MAX_ITEMS
from ingest.api.openapi import Body, declare
from ingest.api.problems import invalid, unavailable
from ingest.context import Context, get_context
from ingest.errors import StoreUnavailable
from ingest.recording.outcome import Outcome, PartlyStored
from ingest.rules import parameters as parsing
from ingest.storage.directory import Snapshot
from ingest.storage.documents import Document
from ingest.web.request_identity import of_flask

_ITEM = openapi.record(
    {
        "staff_id": openapi.STAFF_ID,
        "mac": openapi.text("MAC of the beacon, any case, with or without `:` or `-`"),
        "rssi": openapi.RSSI,
        "timestamp": {
            "description": "When it was heard, by the device's clock: unix seconds, unix"
            " milliseconds or ISO 8601 with a time zone. From 2020 to 24 h ahead of ours. Without"
            " it, the time at which the request came in.",
            "type": ["number", "string", "null"],
        },
        "event_id": openapi.text(
            "Any text that names this detection, a UUID say; a repeat of the whole item is then"
            " stored once. Without it, a repeat of the request is a detection of its own.",
            pattern="^[!-~]{1,128}$",
        ),
    },
    optional=["timestamp", "event_id"],
) | {"additionalProperties": True}
_EXAMPLE = {"staff_id": 0, "mac": "C2:A6:28:38:4B:08", "rssi": -67, "event_id": "8f14e45f"}
# A request with items that are `unavailable` is a 503.
_STATUSES = [str(outcome) for outcome in Outcome if outcome is not Outcome.UNAVAILABLE]
_RESULT = openapi.record(
    {
        "index": openapi.whole("Its place in the request"),
        "status": openapi.text(
            "`stored` durably; `duplicate`: it was stored before; `queued`: on this service's disk"
            " until the database is back; `rejected`: `errors` says why, do not repeat it",
            enum=_STATUSES,
        ),
        "mac": openapi.MAC,
        "level": openapi.or_null(openapi.LEVEL),
        "location": openapi.or_null(openapi.LOCATION),
        "known": openapi.yes_no("Whether the beacon is in the directory"),
        "skew_seconds": openapi.or_null(
            openapi.whole("Our clock at the arrival less the device's; null without `timestamp`")
        ),
        "ignored": openapi.several(openapi.text("Name"), "Fields that mean nothing here"),
        "errors": openapi.several(
            openapi.record({"field": openapi.text("Field"), "reason": openapi.text("Why")})
        ),
    },
    optional=["mac", "level", "location", "known", "skew_seconds", "ignored"],
)
_ANSWER = openapi.gives(
    {
        "results": openapi.several(_RESULT, "One for each item, in their order"),
        "counts": openapi.record({status: openapi.whole("How many") for status in _STATUSES}),
        "dry_run": openapi.yes_no("Whether nothing was stored"),
    }
)


@declare(
    "POST",
    "/detections",
    summary="Store detections",
    description=f'One object, or `{{"detections": [...]}}` with up to {MAX_ITEMS} of them. 200:'
    " each is stored by a majority of the database's servers, in their journals, or its result says"
    " `rejected`. 202: some are queued; nothing more is to be done about them. A single object that"
    " is bad is a 400. On 429 and 503 nothing is promised: send all of it again, with the same"
    " `event_id`s and timestamps; a 503 with `results` tells which items are stored all the same."
    " Without `event_id`s, the gateway's own retry is harmless too: it"
    " repeats its request id, which with the item's index then names the detection.",
    parameters=[
        openapi.query(
            "dry_run",
            openapi.text("`1`: store nothing, tell what would happen", enum=["0", "1"]),
        )
    ],
    body=Body(
        "One detection or many.",
        {
            "application/json": {
                "schema": {
                    "anyOf": [
                        _ITEM,
                        {
                            "type": "object",
                            "required": ["detections"],
                            "properties": {
                                "detections": openapi.several(_ITEM) | {"maxItems": MAX_ITEMS}
                            },
                        },
                    ]
                },
                "example": {"detections": [_EXAMPLE]},
            }
        },
    ),
    answers=_ANSWER | {202: _ANSWER[200]._replace(description="Done; some are queued.")},
    errors=["invalid_request", "too_large", "unsupported_media_type", "store_unavailable"],
    curl="curl 'HOST/api/v1/detections' -H 'Content-Type: application/json'"
    f" -d '{json.dumps(_EXAMPLE)}'",
)
def post_detections() -> Response:
    """Store one detection or many, and tell what became of each."""
    dry_run = parsing.flag(request.args, "dry_run")
    given, single = items.read(bodies.json_bytes())
    identity = of_flask()
    context = get_context()
    found = items.understand(given, identity, _directory(context))
    if single and found.wrong:
        raise invalid(found.wrong[0])
    try:
        statuses = _outcomes(context, found.documents, dry_run=dry_run)
    except PartlyStored as error:
        told = [json.loads(one) for one in items.tell(found, error.outcomes)]
        raise unavailable("some items were not stored; `results` tells which", told) from error
    results = items.tell(found, statuses)
    counts = dict.fromkeys(_STATUSES, 0) | Counter(statuses)
    counts["rejected"] += len(found.wrong)
    body = f'{{"results":[{",".join(results)}],"counts":{json.dumps(counts)}'
    body += f',"dry_run":{"true" if dry_run else "false"}}}\n'
    return Response(body, 202 if counts["queued"] else 200, mimetype="application/json")


def _directory(context: Context) -> Snapshot | None:
    """Return the directory, None while it cannot be told."""
    try:
        return context.directory_snapshot()
    except StoreUnavailable:
        return None


def _outcomes(context: Context, documents: list[Document], *, dry_run: bool) -> list[Outcome]:
    if not documents:
        return []
    if not dry_run:
        return context.recorder.record(documents)
    try:
        context.recorder.check_answers()
        repeats = context.detections.already_stored(documents)
    except StoreUnavailable:
        return [Outcome.QUEUED] * len(documents)
    return [Outcome.DUPLICATE if repeat else Outcome.STORED for repeat in repeats]
