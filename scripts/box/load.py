"""The loads of the budgets: fourteen people with phones, the mock HACS, and two open pages.

As in the source system each phone reports every 4 s, on a connection of its own each time; under
the peak load they report ten times as often.
"""

import contextlib
import csv
import os
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

DIRECTORY = Path(__file__).resolve().parents[2] / "mongo" / "directory.csv"
PEOPLE = 14
PHONE_SECONDS = {"idle": None, "people": 4.0, "peak": 0.4}  # between two reports of one phone
HACS_SECONDS, PAGE_SECONDS = 10.0, 5.0  # of each person's history; of each open page
PAGES = ("/monitoring/api/staff", "/monitoring/api/staff?level=1")
TIMEOUT_SECONDS = 10.0
END = 4102444800  # of all time
GOOD = {"detection": {200, 202}, "history": {200}, "page": {200}}
ENOUGH = 0.95  # of what is due, and of what was answered


class Load:
    """Clients in threads, which send as long as the context lasts, each when its time has come."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._seconds = PHONE_SECONDS[name]
        self._ended = threading.Event()
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        if token := os.environ.get("WAYMARK_TOKEN"):
            self._opener.addheaders.append(("Authorization", f"Bearer {token}"))
        self.statuses: Counter[tuple[str, int]] = Counter()
        self._ran_seconds = 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Send meanwhile."""
        threads = [] if self._seconds is None else list(self._threads(self._seconds))
        for thread in threads:
            thread.start()
        began = time.monotonic()
        try:
            yield
        finally:
            self._ran_seconds = time.monotonic() - began
            self._ended.set()
            for thread in threads:
                thread.join()

    def problems(self) -> list[str]:
        """Return what was not answered as it should be: a stack that refuses takes little."""
        problems = []
        for name, (clients, seconds) in self._clients().items():
            answers = {status: n for (client, status), n in self.statuses.items() if client == name}
            good = sum(n for status, n in answers.items() if status in GOOD[name])
            # Each sends the first within its time.
            due = max(sum(answers.values()), clients * (self._ran_seconds / seconds - 1))
            if good < ENOUGH * due:
                problems.append(f"{name}: {good} good answers of {due:.0f}")
        return problems

    def _clients(self) -> dict[str, tuple[int, float]]:
        """Return how many of each kind there are, and how often each sends, in seconds."""
        if self._seconds is None:
            return {}
        return {
            "detection": (PEOPLE, self._seconds),
            "history": (PEOPLE, HACS_SECONDS),
            "page": (len(PAGES), PAGE_SECONDS),
        }

    def _threads(self, phone_seconds: float) -> Iterator[threading.Thread]:
        with DIRECTORY.open(newline="") as file:
            macs = [row["mac"] for row in csv.DictReader(file)]
        for person in range(1, PEOPLE + 1):
            yield self._every(phone_seconds, partial(self._report, person, macs))
            history = f"/extractbeacon?staff_id={person}&start_time=0&end_time={END}"
            yield self._every(HACS_SECONDS, partial(self._send, "history", history))
        for path in PAGES:
            yield self._every(PAGE_SECONDS, partial(self._send, "page", path))

    def _every(self, seconds: float, send: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            due = time.monotonic() + random.uniform(0, seconds)  # noqa: S311 - spread, no secret
            while not self._ended.wait(max(0.0, due - time.monotonic())):
                due += seconds
                send()

        return threading.Thread(target=run, daemon=True)

    def _report(self, person: int, macs: list[str]) -> None:
        detection = {
            "user_address": person,
            "beacon_address": random.choice(macs),  # noqa: S311
            "rssi": random.randint(-85, -45),  # noqa: S311
            "timestamp": int(time.time()),
            "event_id": uuid.uuid4().hex,
        }
        body = urllib.parse.urlencode(detection).encode()
        self._send("detection", "/newbeacondetect", body)

    def _send(self, name: str, path: str, body: bytes | None = None) -> None:
        status = 0
        with contextlib.suppress(OSError):
            try:
                with self._opener.open(self._url + path, body, TIMEOUT_SECONDS) as answer:
                    answer.read()
                    status = answer.status
            except urllib.error.HTTPError as error:
                status = error.code
                error.close()
        self.statuses[name, status] += 1
