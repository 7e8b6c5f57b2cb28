"""Stores the documents that a plan wants there beforehand, in batches."""

import math
import time
from typing import Any

import gevent

from common.beacon import Beacon
from loadtests.engine import endpoints
from loadtests.engine.client import Api, Response, WrongResponse
from loadtests.engine.endpoints import History, Place
from mongo.directory import parse
from scripts.processes.cluster import DIRECTORY

BATCH = 500
LATER, STORE_SECONDS = (202, 503), 60.0  # queued, or not taken
PHONE_SECONDS = 4  # between two detections of one phone
MOVES_AFTER = 10  # detections at one beacon


class Preloader:
    """Writes histories that are known to the letter: another time for each document.

    `oldest` is the time of the first document of each history, unix seconds.
    """

    def __init__(self, api: Api, oldest: int, slower: float = 1.0) -> None:
        self._api = api
        self._batch = math.ceil(BATCH / slower)  # what is slower takes less at once
        self._beacons = parse(DIRECTORY.read_text("utf-8"))
        self._oldest = oldest

    def preload(self, staff: int, history: History, count: int) -> None:
        """Add so many documents to a history, newer than those there; WrongResponse if not."""
        first = self._oldest + PHONE_SECONDS * len(history.preloaded)
        times = range(first, first + PHONE_SECONDS * count, PHONE_SECONDS)
        walked = [(self._beacon(timestamp), timestamp) for timestamp in times]
        history.preload([Place(beacon.level, beacon.location, at) for beacon, at in walked])
        for at in range(0, count, self._batch):
            body = endpoints.batch(
                [self._detection(staff, timestamp) for timestamp in times[at : at + self._batch]]
            )
            self._store(body)
        history.verify(self.extract(staff))

    def _store(self, body: bytes) -> None:
        """Send until all is in the database: an emulated one may be slow at first."""
        deadline = time.monotonic() + STORE_SECONDS
        while (response := self._api.send(endpoints.BATCH, body)).status in LATER:
            if time.monotonic() > deadline:
                break
            gevent.sleep(0.5)
        _right(response)

    def batch(self, staff: int, size: int) -> bytes:
        """Return the body of a batch of detections of now."""
        now = int(time.time())
        return endpoints.batch([self._detection(staff, now) for _ in range(size)])

    def extract(self, staff: int) -> Response:
        """Return a whole history; WrongResponse when there is none."""
        return _right(self._api.send(endpoints.extract(staff)))

    def _detection(self, staff: int, timestamp: int) -> dict[str, Any]:
        return endpoints.detection(staff, self._beacon(timestamp).mac, timestamp)

    def _beacon(self, timestamp: int) -> Beacon:
        """Walk: another beacon after each few detections."""
        return self._beacons[timestamp // PHONE_SECONDS // MOVES_AFTER % len(self._beacons)]


def _right(response: Response) -> Response:
    if not response.status:
        raise WrongResponse(f"the server does not answer: {response.body[:120].decode()}")
    if response.status != 200:
        raise WrongResponse(f"the server answers {response.status}: {response.body[:120]!r}")
    return response
