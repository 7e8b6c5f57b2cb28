"""/newbeacondetect: store one detection."""

import asyncio
import time
from functools import cache

from common.routes import DETECT
from ingest.assembly import Context
from ingest.errors import ParameterError
from ingest.recording.outcome import Outcome
from ingest.rules import request_parameters
from ingest.rules.detection_identity import event_key
from ingest.storage.detections.documents import NOWHERE, Document, document
from ingest.web.endpoint import Endpoint
from ingest.web.request import Request
from ingest.web.request_identity import identify
from ingest.web.responses import Response, of_text

ADDED = b"New Beacon Detection Added"


def endpoint(context: Context) -> Endpoint[Document, list[Outcome]]:
    """Return the endpoint on a context."""

    def parse(request: Request) -> Document:
        identity = identify(
            request.header(b"x-request-id"), request.header(b"x-request-start"), time.time()
        )
        parameters = request.parameters()
        staff_id, mac, rssi, timestamp, event_id = request_parameters.sighting(
            parameters, identity.received_at
        )
        key = identity.key if event_id is None else event_key(event_id, timestamp)
        when = int(identity.received_at) if timestamp is None else timestamp
        # The recorder knows the place.
        return document(staff_id, NOWHERE, when, rssi, mac, identity.received_at, key)

    def work(detection: Document) -> asyncio.Future[list[Outcome]]:
        return context.recording.recorder.submit([detection])

    def reply(_: Request, outcomes: list[Outcome]) -> Response:
        [outcome] = outcomes
        if outcome is Outcome.REJECTED:
            raise ParameterError("body", "MongoDB refuses this detection")
        return _added(outcome)

    return Endpoint(DETECT, parse, work, reply, is_prompt=True)


@cache
def _added(outcome: Outcome) -> Response:
    """Return 200 once a majority has it in its journal, 202 once our disk has it."""
    status = 202 if outcome is Outcome.QUEUED else 200
    became = (b"x-detection", outcome.value.encode())
    return of_text(status, ADDED, b"text/plain; charset=utf-8", became)
