#!/usr/bin/env python3
"""A phone that loses nothing: what is heard goes to a file first, and from there to Waymark.

    phone.py URL STAFF_ID QUEUE [--token TOKEN]

Each line of the input is a beacon and its strength: `C2A628384B08 -67`. At the end of the input it
ends as soon as the queue is empty; killed at any time and started again, it goes on where it was.
"""

import argparse
import http.client
import json
import random
import sqlite3
import sys
import threading
import time
import uuid
from email.message import Message
from typing import Any
from urllib import error, request

BATCH = 500  # Waymark takes 1000 and 384 KiB
TIMEOUT_SECONDS = 10
LONGEST_PAUSE_SECONDS = 60
SAFE = {"stored", "duplicate", "queued"}  # Waymark has it, in the database or on its own disk


class Queue:
    """Detections on disk, oldest first: what `add` returned from survives a power cut."""

    def __init__(self, path: str) -> None:
        self._changing = threading.Lock()
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.execute("CREATE TABLE IF NOT EXISTS heard (n INTEGER PRIMARY KEY, body TEXT)")

    def add(self, detection: dict[str, Any]) -> None:
        """Keep a detection."""
        with self._changing:
            self._file.execute("INSERT INTO heard (body) VALUES (?)", [json.dumps(detection)])

    def oldest(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the next batch, each with its number here."""
        with self._changing:
            rows = self._file.execute("SELECT n, body FROM heard ORDER BY n LIMIT ?", [BATCH])
            return [(number, json.loads(body)) for number, body in rows]

    def remove(self, numbers: list[int]) -> None:
        """Forget what is safe elsewhere."""
        with self._changing:
            self._file.executemany("DELETE FROM heard WHERE n = ?", [[n] for n in numbers])


class Waymark:
    """Sends batches; each answer says how long to wait before the next."""

    def __init__(self, url: str, token: str | None) -> None:
        self._address = f"{url.rstrip('/')}/api/v1/detections"
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._failures = 0

    def send(self, queue: Queue) -> float:
        """Send the oldest detections; return how many seconds to wait."""
        batch = queue.oldest()
        if not batch:
            return 0.2
        body = {"detections": [item for _, item in batch], "sent_at": int(time.time())}
        try:
            status, headers, answer = self._post(json.dumps(body).encode())
        except (OSError, http.client.HTTPException) as failure:  # no answer, or half of one
            return self._wait(f"no answer: {failure!r}")
        results = _results(answer)
        queue.remove([batch[n][0] for n, result in results.items() if result["status"] in SAFE])
        for n, result in results.items():
            if result["status"] == "rejected":  # it would be rejected again: tell, and let it go
                say(f"rejected: {batch[n][1]}: {result['errors']}")
                queue.remove([batch[n][0]])
        _tell_clock(answer)
        if status in (200, 202):
            self._failures = 0
            return 0.0
        # Also a 400 and a 401 lose nothing: somebody has to correct the address or the token.
        return self._wait(f"{status}: {answer[:200]!r}", headers.get("Retry-After"))

    def _post(self, body: bytes) -> tuple[int, Message, bytes]:
        # A POST: libraries send a GET again by themselves, and would double what has no event id.
        post = request.Request(self._address, body, self._headers)
        try:
            with request.urlopen(post, timeout=TIMEOUT_SECONDS) as response:
                return response.status, response.headers, response.read()
        except error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.headers, refusal.read()

    def _wait(self, why: str, retry_after: str | None = None) -> float:
        """Return how long to wait: as told, else twice as long each time, never all at once."""
        self._failures += 1
        pause = min(2.0 ** min(self._failures, 10) / 2, LONGEST_PAUSE_SECONDS)
        if retry_after and retry_after.isdecimal():
            pause = max(float(retry_after), pause if self._failures > 3 else 0)
        say(f"{why}; again in about {pause:.0f} s")
        return pause * random.uniform(0.75, 1.25)


def _results(answer: bytes) -> dict[int, Any]:
    """Return what became of each item, by its place: a 503 may have stored some."""
    try:
        return {result["index"]: result for result in json.loads(answer)["results"]}
    except (ValueError, KeyError, TypeError):
        return {}


def _tell_clock(answer: bytes) -> None:
    try:
        told = json.loads(answer)
        if told.get("clock", "right") != "right":
            say(f"this clock is {told['clock']} by {abs(told['clock_skew_seconds'])} s: set it")
    except (ValueError, AttributeError):
        return


def say(text: str) -> None:
    """Tell the person behind the phone."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Store what comes in, and send it meanwhile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("staff_id")
    parser.add_argument("queue")
    parser.add_argument("--token")
    options = parser.parse_args()
    queue, waymark = Queue(options.queue), Waymark(options.url, options.token)
    ended = threading.Event()

    def listen() -> None:
        for line in sys.stdin:
            beacon, rssi = line.split()
            # A UUID, never a counter: after a reinstall a counter begins anew, and what it names
            # is taken for what it named before.
            named = {"event_id": str(uuid.uuid4()), "timestamp": int(time.time())}
            queue.add({"staff_id": options.staff_id, "mac": beacon, "rssi": int(rssi)} | named)
            print(named["event_id"], flush=True)  # from here on it is safe
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    while not (ended.is_set() and not queue.oldest()):
        time.sleep(waymark.send(queue))


if __name__ == "__main__":
    main()
