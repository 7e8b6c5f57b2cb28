"""Phones that send each detection until it is confirmed, and count the answers."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import requests
from flask import Flask

from scripts.processes.waiting import eventually

CONFIRMED = (200, 202)  # stored, or safe in the spool
BEACON = "C2A628384B08"

Post = Callable[[dict[str, Any]], int]  # sends a detection, returns the status (0: no answer)


def through(
    *urls: str,
    timeout_seconds: float = 30,
    make_session: Callable[[], requests.Session] = requests.Session,
) -> Callable[[], Post]:
    """Return a function that makes senders over HTTP; each try goes to the next address."""

    def make() -> Post:
        session, tries = make_session(), iter(range(10**9))
        session.trust_env = False

        def post(body: dict[str, Any]) -> int:
            url = f"{urls[next(tries) % len(urls)]}/newbeacondetect"
            try:
                return session.post(url, data=body, timeout=timeout_seconds).status_code
            except requests.RequestException:
                return 0

        return post

    return make


def inside(app: Flask) -> Callable[[], Post]:
    """Return a function that makes senders to an application in this process."""

    def make() -> Post:
        client = app.test_client()
        return lambda body: client.post("/newbeacondetect", json=body).status_code

    return make


class Phones:
    """One phone for each staff id, busy while in the context; each finishes what it began."""

    def __init__(
        self,
        sender: Callable[[], Post],
        staff_ids: list[Any],
        *,
        per_phone: int | None = None,  # detections of a phone; without it, until the context ends
        rest_seconds: float = 0.005,
        patience_seconds: float = 120,
    ) -> None:
        self._sender = sender
        self._per_phone = per_phone
        self._rest_seconds = rest_seconds
        self._patience_seconds = patience_seconds
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(staff_id,)) for staff_id in staff_ids
        ]
        self.answers: Counter[int] = Counter()
        self.confirmed: dict[str, Any] = {}  # staff id of each event
        self.worst_tries = 0
        self.longest_seconds = 0.0

    def __enter__(self) -> "Phones":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._per_phone is None:
            self._stopped.set()
        for thread in self._threads:
            thread.join()

    @property
    def acknowledged(self) -> Counter[Any]:
        """Return how many detections of each staff member were confirmed."""
        return Counter(self.confirmed.values())

    def wait_for(self, status: int, more: int, seconds: float = 30) -> None:
        """Wait until so many more requests were answered with a status."""
        wanted = self.answers[status] + more
        eventually(lambda: self.answers[status] >= wanted, seconds)

    def _run(self, staff_id: Any) -> None:
        post = self._sender()
        sent = 0
        while not self._stopped.is_set() and (self._per_phone is None or sent < self._per_phone):
            self._send_until_confirmed(post, staff_id)
            sent += 1
            time.sleep(self._rest_seconds)

    def _send_until_confirmed(self, post: Post, staff_id: Any) -> None:
        event = uuid.uuid4().hex
        body = {"user_address": staff_id, "beacon_address": BEACON, "rssi": -20, "event_id": event}
        first = time.monotonic()
        tries = 0
        while time.monotonic() - first < self._patience_seconds:
            began = time.monotonic()
            status = post(body)
            tries += 1
            with self._lock:
                self.answers[status] += 1
                self.worst_tries = max(self.worst_tries, tries)
                self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
                if status in CONFIRMED:
                    self.confirmed[event] = staff_id
                    return
            time.sleep(0.1)
