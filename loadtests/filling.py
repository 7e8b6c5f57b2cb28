"""Stores the documents that a plan wants there beforehand, as fast as the server takes them."""

import json
import time
import uuid
from typing import Any

import gevent
from gevent.pool import Pool

from loadtests.client import Answer, Api, WrongAnswer, query
from loadtests.histories import History, Place
from loadtests.plans import ALL_TIME
from mongo.directory import Beacon
from scripts.native.layout import ROOT

DIRECTORY = ROOT / "mongo" / "directory.csv"
BATCH = 500
AT_ONCE = 16
PHONE_SECONDS = 4  # between two detections of one phone
MOVES_AFTER = 10  # detections at one beacon


class Filler:
    """Writes histories that are known to the letter: another time for each document."""

    def __init__(self, api: Api, beacons: list[Beacon], oldest: int) -> None:
        self._api = api
        self._beacons = beacons
        self._oldest = oldest  # time of the first document of each history, unix seconds

    def fill(self, staff: int, history: History, count: int) -> None:
        """Add so many documents to a history, newer than those there; WrongAnswer if not."""
        first = self._oldest + PHONE_SECONDS * len(history.filled)
        times = range(first, first + PHONE_SECONDS * count, PHONE_SECONDS)
        history.fill([self._place(timestamp) for timestamp in times])
        for at in range(0, count, BATCH):
            self._send([self._item(staff, timestamp) for timestamp in times[at : at + BATCH]])
        history.verify(self.extract(staff))

    def batch(self, staff: int, size: int) -> bytes:
        """Return the body of a batch of detections of now."""
        now = int(time.time())
        return body([self._item(staff, now) for _ in range(size)])

    def extract(self, staff: int) -> Answer:
        """Return a whole history; WrongAnswer when there is none."""
        return self._right(self._api.call(query("/extractbeacon", staff_id=staff, **ALL_TIME)))

    def _place(self, timestamp: int) -> Place:
        beacon = self._beacon(timestamp)
        return Place(beacon["level"], beacon["location"], timestamp)

    def _item(self, staff: int, timestamp: int) -> dict[str, Any]:
        named = {"staff_id": staff, "mac": self._beacon(timestamp)["mac"]}
        return named | {"rssi": -60, "timestamp": timestamp, "event_id": uuid.uuid4().hex}

    def _beacon(self, timestamp: int) -> Beacon:
        """Walk: another beacon after each few detections."""
        return self._beacons[timestamp // PHONE_SECONDS // MOVES_AFTER % len(self._beacons)]

    def _send(self, items: list[dict[str, Any]]) -> None:
        answer = self._api.call("/api/v1/detections", body(items))
        if answer.status in (404, 405):  # a server without batches
            pool = Pool(AT_ONCE)
            sent = [pool.spawn(self._send_one, item) for item in items]
            gevent.joinall(sent, raise_error=True)
        else:
            self._right(answer)

    def _send_one(self, item: dict[str, Any]) -> None:
        named = {"user_address": item["staff_id"], "beacon_address": item["mac"]}
        rest = {name: item[name] for name in ("rssi", "timestamp", "event_id")}
        self._right(self._api.call(query("/newbeacondetect", **named, **rest), keep=True))

    def _right(self, answer: Answer) -> Answer:
        if answer.status != 200:
            raise WrongAnswer(f"the server answers {answer.status}: {answer.body[:120]!r}")
        return answer


def body(items: list[dict[str, Any]]) -> bytes:
    """Return the JSON of a batch."""
    return json.dumps({"detections": items}).encode()
