#!/usr/bin/env python3
"""A phone that loses nothing: what is heard goes to a file first, and from there to Waymark.

    phone.py URL STAFF_ID QUEUE [--token TOKEN]

Each line of the input is a beacon and its strength: `C2A628384B08 -67`. At the end of the input it
ends as soon as the queue is empty; killed at any time and started again, it goes on where it was.
What Waymark rejects stays in the queue's table `rejected`. One process for each queue.
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
NO_CLOCK_BEFORE = 1577836800  # 2020: what says so has lost its clock
SAFE = {"stored", "duplicate", "queued"}  # Waymark has it, in the database or on its own disk

Row = tuple[int, dict[str, Any]]


class Queue:
    """Detections on disk, oldest first: what `add` returned from survives a power cut."""

    def __init__(self, path: str) -> None:
        self._changing = threading.Lock()
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.execute("CREATE TABLE IF NOT EXISTS heard (n INTEGER PRIMARY KEY, body TEXT)")
        self._file.execute("CREATE TABLE IF NOT EXISTS rejected (body TEXT, why TEXT)")

    def add(self, detection: dict[str, Any]) -> None:
        """Keep a detection."""
        with self._changing:
            self._file.execute("INSERT INTO heard (body) VALUES (?)", [json.dumps(detection)])

    def oldest(self, count: int) -> list[Row]:
        """Return so many, each with its number here."""
        with self._changing:
            rows = self._file.execute("SELECT n, body FROM heard ORDER BY n LIMIT ?", [count])
            return [(number, json.loads(body)) for number, body in rows]

    def settle(self, safe: list[Row], rejected: list[tuple[Row, Any]]) -> None:
        """Forget what is safe elsewhere, and lay aside what nobody wants, in one step."""
        gone = [[number] for number, _ in (*safe, *(row for row, _ in rejected))]
        aside = [[json.dumps(body), json.dumps(why)] for (_, body), why in rejected]
        with self._changing:
            self._file.execute("BEGIN")
            self._file.executemany("INSERT INTO rejected VALUES (?, ?)", aside)
            self._file.executemany("DELETE FROM heard WHERE n = ?", gone)
            self._file.execute("COMMIT")


class Waymark:
    """Sends batches; each answer says how long to wait before the next."""

    def __init__(self, url: str, token: str | None) -> None:
        self._address = f"{url.rstrip('/')}/api/v1/detections"
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._failures = 0
        self._most = BATCH

    def send(self, queue: Queue) -> float:
        """Send the oldest detections; return how many seconds to wait."""
        batch = queue.oldest(self._most)
        if not batch:
            return 0.2
        body = {"detections": [item for _, item in batch], "sent_at": int(time.time())}
        try:
            status, headers, answer = self._post(json.dumps(body).encode())
        except (OSError, http.client.HTTPException) as failure:  # no answer, or half of one
            return self._wait(f"no answer: {failure!r}")
        told = _object(answer)
        results = _results(told, len(batch))  # a 503 may have stored some
        safe = [batch[n] for n, result in results.items() if result.get("status") in SAFE]
        rejected = [
            (batch[n], result.get("errors"))
            for n, result in results.items()
            if result.get("status") == "rejected"  # it would be rejected again
        ]
        for row, why in rejected:
            say(f"rejected: {row[1]}: {why}")
        queue.settle(safe, rejected)
        if told.get("clock", "right") != "right":
            say(f"this clock is {told['clock']} by {told.get('clock_skew_seconds')} s: set it")
        if status in (200, 202) and len(results) == len(batch):
            self._failures, self._most = 0, BATCH
            return 0.0
        if status == 413:
            self._most = max(1, self._most // 2)
        # Also a 400 and a 401 lose nothing: somebody has to correct the address or the token. A
        # 200 without results is the page of some wireless network.
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
        pause = 2.0 ** min(self._failures, 10) / 2
        if retry_after and retry_after.isdecimal():
            pause = max(float(retry_after), pause if self._failures > 3 else 0)
        pause = min(pause, LONGEST_PAUSE_SECONDS)
        say(f"{why}; again in about {pause:.0f} s")
        return pause * random.uniform(0.75, 1.25)


def _object(answer: bytes) -> dict[str, Any]:
    try:
        told = json.loads(answer)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _results(told: dict[str, Any], count: int) -> dict[int, dict[str, Any]]:
    """Return what became of each item, by its place."""
    results = told.get("results")
    return {
        result["index"]: result
        for result in (results if isinstance(results, list) else [])
        if isinstance(result, dict) and result.get("index") in range(count)
    }


def heard(line: str, staff_id: str) -> dict[str, Any]:
    """Return the detection of a line. Raises ValueError."""
    beacon, _, rssi = line.strip().rpartition(" ")
    if not beacon:
        raise ValueError("a line is a beacon and its strength")
    # A UUID, never a counter: after a reinstall a counter begins anew, and what it names is taken
    # for what it named before.
    detection: dict[str, Any] = {"staff_id": staff_id, "mac": beacon, "rssi": round(float(rssi))}
    detection["event_id"] = str(uuid.uuid4())
    if (now := int(time.time())) >= NO_CLOCK_BEFORE:  # else the server's time counts
        detection["timestamp"] = now
    return detection


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
    ended, failures = threading.Event(), []

    def listen() -> None:
        try:
            for line in sys.stdin:
                try:
                    detection = heard(line, options.staff_id)
                except (ValueError, OverflowError) as reason:
                    say(f"not heard: {line!r}: {reason}")
                    continue
                queue.add(detection)
                print(detection["event_id"], flush=True)  # from here on it is safe
        except (OSError, sqlite3.Error, UnicodeError) as failure:  # a full disk
            failures.append(failure)
        finally:
            ended.set()

    threading.Thread(target=listen, daemon=True).start()
    while not (ended.is_set() and not queue.oldest(1)):
        time.sleep(waymark.send(queue))
    if failures:
        sys.exit(f"hears nothing any more: {failures[0]!r}")


if __name__ == "__main__":
    main()
