"""/owntracks: what iPhones with the app OwnTracks range, taken as detections.

The app deletes a message that gets 2xx or 4xx, and keeps it on a 5xx: so all that is not a
detection is a 200, too, and what may still be stored later is a 503 (docs/clients.md).
"""

import time

from common.routes import OWNTRACKS
from ingest.assembly import Context
from ingest.recording.outcome import Outcome
from ingest.recording.owntracks_tally import Tally
from ingest.rules import owntracks
from ingest.rules.detection_identity import owntracks_key
from ingest.rules.owntracks import Ignored
from ingest.storage.detections.documents import NOWHERE, Document, document
from ingest.web.endpoint import Endpoint
from ingest.web.owntracks_sender import sender
from ingest.web.request import Request
from ingest.web.request_identity import identify
from ingest.web.responses import Response, of_text

# No positions of others: the map stays private.
_TAKEN = of_text(200, b"[]", b"application/json")


def endpoints(context: Context) -> list[Endpoint[Document | None, None]]:
    """Return the endpoint on a context, none where it is off."""
    return [_endpoint(context, context.owntracks)] if context.owntracks else []


def _endpoint(context: Context, tally: Tally) -> Endpoint[Document | None, None]:
    def parse(request: Request) -> Document | None:
        received_at, _ = identify(
            request.header(b"x-request-id"), request.header(b"x-request-start"), time.time()
        )
        ranged = owntracks.read(request.body, sender(request), received_at)
        if isinstance(ranged, Ignored):
            tally.count(ranged)
            return None
        staff_id, mac, rssi, timestamp, device = ranged
        key = owntracks_key(device, timestamp)
        return document(staff_id, NOWHERE, timestamp, rssi, mac, received_at, key)

    async def work(detection: Document | None) -> None:
        if detection is None:
            return
        [outcome] = await context.recording.recorder.submit([detection])
        tally.count(Ignored.REFUSED if outcome is Outcome.REJECTED else None)

    def reply(_: Request, __: None) -> Response:
        return _TAKEN

    return Endpoint(OWNTRACKS, parse, work, reply)
