"""A beacon of the directory, as the API tells it."""

from typing import Annotated

from msgspec import Meta

from common.beacon import Beacon
from ingest.api.directory.beacon_input import Name
from ingest.api.http.problems import Problem
from ingest.api.openapi.schema_fields import Mac, Metres, ResponseBody


class RegisteredBeacon(ResponseBody):
    """A beacon of the directory."""

    mac: Mac
    level: Annotated[Name, Meta(description="Level")]
    location: Annotated[Name, Meta(description="Name of the spot")]
    x: Metres | None
    y: Metres | None
    aliases: Annotated[tuple[Mac, ...], Meta(description="Its other ids")]


def present(beacon: Beacon | None, mac: str) -> Beacon:
    """Return a beacon that was looked for. Raises Problem: it is not there."""
    if beacon is None:
        raise Problem("not_found", f"beacon {mac} is not in the directory")
    return beacon
