"""Clients that read while things break: where everybody is, and the feed of all that is stored."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import requests

from tests.stack.conftest import Stack

LOOK_SECONDS = 0.5


class Watchers:
    """One asks where everybody is, one follows `/changes`."""

    def __init__(self, stack: Stack, newest: Callable[[], dict[str, int]]) -> None:
        """`newest`: the newest timestamp that was acknowledged as stored, of each."""
        self._stack = stack
        self._newest = newest
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=run) for run in (self._look, self._follow)]
        self.answers: Counter[int | str] = Counter()
        self.behind: list[str] = []  # what a complete answer lacked
        self.blind_seconds = 0.0  # the longest without an answer that tells of anybody
        self.followed: Counter[str] = Counter()
        self.doubled = 0

    def __enter__(self) -> "Watchers":
        self._cursor = self._stack.read("/api/v1/changes").text
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _get(self, path: str, **parameters: Any) -> requests.Response | None:
        try:
            answer = requests.get(f"{self._stack.url}{path}", params=parameters, timeout=30)
        except requests.RequestException:  # cut off with the service that answered
            self.answers["cut off"] += 1
            return None
        self.answers[answer.status_code] += 1
        return answer if answer.status_code == 200 else None

    def _look(self) -> None:
        seen_at = time.monotonic()
        while not self._ended.wait(LOOK_SECONDS):
            before = self._newest()
            answer = self._get("/api/v1/staff")
            self.blind_seconds = max(self.blind_seconds, time.monotonic() - seen_at)
            if answer is None:
                continue
            seen_at = time.monotonic()
            people = answer.json()
            if people["complete"]:
                shown = {person["staff_id"]: person["timestamp"] for person in people["data"]}
                self.behind += [
                    f"{staff_id} at {shown.get(staff_id)}, not {at}"
                    for staff_id, at in before.items()
                    if shown.get(staff_id, 0) < at
                ]

    def _follow(self) -> None:
        seen: set[str] = set()
        cursor = _cursor(self._cursor)
        while not self._ended.wait(LOOK_SECONDS):
            answer = self._get("/api/v1/changes", after=cursor, limit=1000)
            if answer is None or '"next"' not in answer.text:  # cut off: the same once more
                continue
            cursor = _cursor(answer.text)
            lines = [json.loads(line) for line in answer.text.splitlines()[:-1]]
            self.doubled += sum(line["id"] in seen for line in lines)
            seen |= {line["id"] for line in lines}
            self.followed.update(line["staff_id"] for line in lines)


def _cursor(text: str) -> str:
    cursor: str = json.loads(text.splitlines()[-1])["next"]
    return cursor
