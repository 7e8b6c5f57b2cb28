"""The legacy contract: three endpoints that never change."""

from ingest.assembly import Context
from ingest.legacy import detect, extract
from ingest.web.endpoint import Endpoint


def endpoints(context: Context) -> list[Endpoint]:  # type: ignore[type-arg]  # of two kinds
    """Return the two of them that the event loop answers itself."""
    return [detect.endpoint(context), extract.endpoint(context)]
