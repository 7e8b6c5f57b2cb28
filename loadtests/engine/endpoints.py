"""The endpoints that get load: how a request is written, and what a right response holds."""

import uuid
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from loadtests.engine.client import Api, Response, WrongResponse
from loadtests.plans import ALL_TIME, BEACON
from loadtests.targets import ADDED, STORED

BATCH = "/api/v1/detections"

Body = TypeVar("Body")


class Place(msgspec.Struct, frozen=True):
    """One document of an extract."""

    level: str
    location: str
    timestamp: int


class Extract(msgspec.Struct):
    """The response to an extract."""

    location: list[Place]


class Batch(msgspec.Struct):
    """The response to a batch."""

    counts: dict[str, int]


def extract(staff: int | str) -> str:
    """Return the path of a whole history."""
    return "/extractbeacon?" + urlencode({"staff_id": staff, **ALL_TIME})


def insert_now(staff: int | str) -> str:
    """Return the path that stores one detection as the source's plans do, without a time."""
    return "/newbeacondetect?" + urlencode({"user_address": staff, **BEACON})


def detection(staff: int | str, mac: str, timestamp: int) -> dict[str, Any]:
    """Return a detection with an event id of its own, as a batch holds it."""
    named = {"staff_id": staff, "mac": mac, "rssi": -60}
    return named | {"timestamp": timestamp, "event_id": uuid.uuid4().hex}


def insert(detection: dict[str, Any]) -> str:
    """Return the path that stores one detection as a phone does."""
    named = {"user_address": detection["staff_id"], "beacon_address": detection["mac"]}
    rest = {name: detection[name] for name in ("rssi", "timestamp", "event_id")}
    return "/newbeacondetect?" + urlencode(named | rest)


def batch(detections: list[dict[str, Any]]) -> bytes:
    """Return the body that stores many."""
    return msgspec.json.encode({"detections": detections})


def decoded(response: Response, kind: type[Body]) -> Body:
    """Return a response's JSON; WrongResponse when it is none, or of another shape."""
    try:
        return msgspec.json.decode(response.body, type=kind)
    except msgspec.DecodeError as error:
        raise WrongResponse(f"{error}: {response.body[:80]!r}") from error


def verify_insert(response: Response) -> None:
    """Check the response to an insert."""
    if response.body.strip() != ADDED:
        raise WrongResponse(f"not {ADDED!r}: {response.body[:80]!r}")


def verify_batch(response: Response, size: int) -> None:
    """Check that a batch was taken whole."""
    counts = decoded(response, Batch).counts
    if counts.get("stored", 0) + counts.get("queued", 0) != size:
        raise WrongResponse(f"{counts} of {size}")


def newest_first(response: Response) -> list[Place]:
    """Return an extract's documents; WrongResponse when it is not one, or in another order."""
    location = decoded(response, Extract).location
    times = [place.timestamp for place in location]
    if times != sorted(times, reverse=True):
        raise WrongResponse("not newest first")
    return location


def verify_page(response: Response) -> None:
    """Check what an open monitoring page fetches, of either architecture."""
    if response.status == 304:
        return
    if not {"data", "location"} & set(decoded(response, dict[str, Any])):
        raise WrongResponse(f"no data of the page: {response.body[:80]!r}")


class History:
    """One staff member's documents: those we know to the letter, and how many came since."""

    def __init__(self, stored: int = 0) -> None:
        self.preloaded: list[Place] = []  # oldest first, times all different
        self.sent = self.acknowledged = stored  # live inserts without a time of their own
        self.queued = 0  # of those acknowledged: may still wait for the database
        self.unknown = 0  # sent, and no response came: may be there or not
        self._right: bytes | None = None  # the last body that was found right
        self._counted = (b"", -1)  # the last body of a live history, and its documents

    def preload(self, places: list[Place]) -> None:
        """Add documents newer than all that are there."""
        self.preloaded += places
        self._right = None

    def count(self, response: Response, size: int) -> None:
        """Note what became of that many detections."""
        if response.status in STORED:
            self.acknowledged += size
            self.queued += size * (response.status == 202)
        elif response.status == 0 or response.status >= 500:
            self.unknown += size

    def verify(self, response: Response) -> None:
        """Check an extract while nobody writes: to the letter, or by number after live inserts."""
        if response.body == self._right:
            return
        rows = newest_first(response)
        if self.acknowledged or self.unknown:
            self._verify_count(len(rows), self.acknowledged, self.acknowledged + self.unknown)
        elif rows != self.preloaded[::-1]:
            stored = len(self.preloaded)
            raise WrongResponse(f"{len(rows)} documents, not the {stored} that are stored")
        self._right = response.body

    def read_live(
        self, api: Api, name: str, staff: int, headers: Mapping[str, str], due: float | None = None
    ) -> None:
        """Read while others write: all that was acknowledged before, and nothing unsent."""
        least = self.acknowledged

        def verify(response: Response) -> None:
            if response.body != self._counted[0]:
                self._counted = response.body, len(newest_first(response))
            self._verify_count(self._counted[1], least, self.sent)

        api.measure(name, extract(staff), verify, None, headers, due=due)

    def _verify_count(self, counted: int, least: int, most: int) -> None:
        """Raise WrongResponse when live documents are missing or too many."""
        live = counted - len(self.preloaded)
        if not least <= live <= most:
            least, most = (len(self.preloaded) + count for count in (least, most))
            raise WrongResponse(f"{counted} documents instead of {least} to {most}")
