"""The legacy contract: three endpoints that never change."""

from ingest.assembly import Context
from ingest.legacy import detect, extract
from ingest.web.endpoint import Endpoint


def endpoints(context: Context) -> list[Endpoint]:  # type: ignore[type-arg]  # of two kinds
    """Return those that phones and HACS call all the time, for whoever serves them."""
    return [detect.endpoint(context), extract.endpoint(context)]
