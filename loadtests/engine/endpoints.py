"""The endpoints that get load: how a request is written, and what a right response holds."""

import json
import uuid
from typing import Any, NamedTuple
from urllib.parse import urlencode

from loadtests.engine.client import Response, WrongResponse
from loadtests.plans import ALL_TIME

BATCH = "/api/v1/detections"
MONITORING, OLD_MONITORING = "/monitoring/latest", "/retrieveformonitoring"
ADDED = b"New Beacon Detection Added"
STORED = (200, 202)  # now, or soon


class Place(NamedTuple):
    """One document of an extract."""

    level: str
    location: str
    timestamp: int


def path_of(path: str, **parameters: object) -> str:
    """Return a path with its parameters."""
    return f"{path}?{urlencode(parameters)}"


def extract(staff: int | str) -> str:
    """Return the path of a whole history."""
    return path_of("/extractbeacon", staff_id=staff, **ALL_TIME)


def detection(staff: int | str, mac: str, timestamp: int) -> dict[str, Any]:
    """Return a detection with an event id of its own, as a batch holds it."""
    named = {"staff_id": staff, "mac": mac, "rssi": -60}
    return named | {"timestamp": timestamp, "event_id": uuid.uuid4().hex}


def insert(one: dict[str, Any]) -> str:
    """Return the path that stores one detection as a phone does."""
    named = {"user_address": one["staff_id"], "beacon_address": one["mac"]}
    rest = {name: one[name] for name in ("rssi", "timestamp", "event_id")}
    return path_of("/newbeacondetect", **named, **rest)


def batch(detections: list[dict[str, Any]]) -> bytes:
    """Return the body that stores many."""
    return json.dumps({"detections": detections}).encode()


def verify_insert(response: Response) -> None:
    """Check the response to an insert."""
    if response.body.strip() != ADDED:
        raise WrongResponse(f"not {ADDED!r}: {response.body[:80]!r}")


def verify_batch(response: Response, size: int) -> None:
    """Check that a batch was taken whole."""
    try:
        counts = json.loads(response.body)["counts"]
    except (ValueError, KeyError, TypeError) as error:
        raise WrongResponse(f"no response to a batch: {response.body[:80]!r}") from error
    if counts.get("stored", 0) + counts.get("queued", 0) != size:
        raise WrongResponse(f"{counts} of {size}")


def newest_first(response: Response) -> list[Place]:
    """Return an extract's documents; WrongResponse when it is not one, or in another order."""
    try:
        found = [
            Place(one["level"], one["location"], one["timestamp"])
            for one in json.loads(response.body)["location"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise WrongResponse(f"no extract ({error!r}): {response.body[:80]!r}") from error
    times = [place.timestamp for place in found]
    if times != sorted(times, reverse=True):
        raise WrongResponse("not newest first")
    return found


def verify_page(response: Response) -> None:
    """Check what an open monitoring page fetches, of either architecture."""
    try:
        found = json.loads(response.body)
    except ValueError as error:
        raise WrongResponse(f"the page's data are no JSON: {response.body[:80]!r}") from error
    if not {"staff", "location"} & set(found):
        raise WrongResponse(f"the page's data lack the staff: {response.body[:80]!r}")
