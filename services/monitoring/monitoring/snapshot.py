"""The latest position of every staff member, read once for all open pages."""

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

CLOSED, OPEN, UNKNOWN = "closed", "open", "unknown"
MAX_WAIT_SECONDS = 1.0


class Snapshot(NamedTuple):
    """Who was last heard where. `taken_at` is unix seconds, None before the first good read.

    `circuit` tells how the newest read went: `closed` (this is it), `open` (no ingest service
    can answer) or `unknown` (the gateway did not answer); then the staff are those of `taken_at`.
    """

    circuit: str
    taken_at: float | None
    staff: list[dict[str, Any]]
    detail: str = ""


class Heard(NamedTuple):
    """Detections, newest first, and the unix seconds at which they were all there were."""

    taken_at: float
    detections: list[dict[str, Any]]


class GatewayUnavailable(Exception):
    """The gateway gave no usable answer; `circuit` says what is known of it."""

    def __init__(self, circuit: str, detail: str) -> None:
        super().__init__(detail)
        self.circuit = circuit


def fetch_detections(gateway_url: str, timeout_seconds: float) -> Heard:
    """Read the detections of the last 15 minutes, newest first, and when they were true."""
    # No proxy from the environment: the gateway is always addressed directly.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{gateway_url}/retrieveformonitoring", timeout=timeout_seconds) as answer:
            # The gateway keeps an answer for its pollers; Date tells when a service gave it.
            answered_at = parsedate_to_datetime(answer.headers["Date"]).timestamp()
            return Heard(answered_at, json.load(answer)["location"])
    except urllib.error.HTTPError as error:
        circuit = OPEN if error.headers.get("X-Circuit-State") == OPEN else UNKNOWN
        raise GatewayUnavailable(circuit, f"the gateway answered {error.code}") from error
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise GatewayUnavailable(UNKNOWN, f"the gateway did not answer: {error}") from error


def latest_per_staff(detections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the newest detection of each staff member, in the order they came (newest first)."""
    latest: dict[Any, dict[str, Any]] = {}
    for detection in detections:
        latest.setdefault(detection["staff_id"], detection)
    return list(latest.values())


class SnapshotReader:
    """Keeps the newest snapshot; `fetch` returns what was heard or raises GatewayUnavailable."""

    def __init__(
        self,
        fetch: Callable[[], Heard],
        lifetime_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._fetch = fetch
        self._lifetime_seconds = lifetime_seconds
        self._clock = clock
        self._reading = threading.Lock()
        self._snapshot = Snapshot(UNKNOWN, None, [])
        self._tried_at = float("-inf")

    def latest(self) -> Snapshot:
        """Return a snapshot; one caller reads, the others get what is there after a short wait.

        Waiting as long as the reader would let a few pages take every thread of the service.
        """
        if not self._reading.acquire(timeout=MAX_WAIT_SECONDS):
            return self._snapshot
        try:
            age = self._clock() - self._tried_at
            if not 0 <= age < self._lifetime_seconds:
                self._snapshot = self._read()
                self._tried_at = self._clock()
            return self._snapshot
        finally:
            self._reading.release()

    def _read(self) -> Snapshot:
        try:
            heard = self._fetch()
            return Snapshot(CLOSED, heard.taken_at, latest_per_staff(heard.detections))
        except GatewayUnavailable as error:
            return self._snapshot._replace(circuit=error.circuit, detail=str(error))
