"""An iPhone with OwnTracks, while parts of a stack are killed and frozen: nothing is lost."""

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from scripts.processes.waiting import eventually
from tests.stack.conftest import Stack, kill_tree, started
from tests.stack.test_verdict import frozen

pytestmark = pytest.mark.long

UUID = "CA271EAE-5FA8-4E80-8F08-2A302A95A959"
BEGIN = int(time.time()) - 3600
PATIENCE_SECONDS = 4  # the app's own is longer
MORE = 12  # messages between two faults: more than both spools take
SPOOL_DETECTIONS = 3


class IPhone:
    """Keeps its queue as Connection.m does: the oldest goes on a 2xx and a 4xx, else it stays."""

    def __init__(self, url: str) -> None:
        self.ranged: list[tuple[str, int]] = []  # beacon and time of each that it queued
        self.statuses: Counter[int] = Counter()  # 0: no answer
        self._url = f"{url}/owntracks"
        self._queue: deque[dict[str, Any]] = deque()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send_all)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def attempts(self) -> int:
        return self.statuses.total()

    def range(self, count: int) -> None:
        """Queue so many beacons, two of each second, and what else the app sends."""
        for number in range(len(self.ranged), len(self.ranged) + count):
            minor, at = number % 2, BEGIN + number // 2
            self._queue.append(
                {
                    "_type": "beacon",
                    "uuid": UUID,
                    "major": 1,
                    "minor": minor,
                    "tst": at,
                    "rssi": -60 - number % 9,
                    "topic": "owntracks/iphone/phone/beacon",
                }
            )
            self.ranged.append((f"ibeacon:{UUID.lower()}:1:{minor}", at))
        self._queue.append({"_type": "location", "lat": 1.29, "lon": 103.77, "tst": BEGIN})

    def try_again(self, times: int) -> None:
        """Wait until it has tried so many times more, or has nothing left to send."""
        wanted = self.attempts + times
        eventually(lambda: self.attempts >= wanted or not self._queue, 120)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _send_all(self) -> None:
        while not self._ended.wait(0.02):
            if not self._queue:
                continue
            status = self._post(self._queue[0])
            self.statuses[status] += 1
            if 200 <= status < 300 or 400 <= status < 500:
                self._queue.popleft()
            else:
                self._ended.wait(0.1)  # the app waits longer

    def _post(self, message: dict[str, Any]) -> int:
        headers = {
            "X-Limit-U": "iphone",
            "X-Limit-D": "phone",
            "Content-Type": "application/json",
        }
        body = json.dumps(message)
        with requests.Session() as session:
            session.trust_env = False
            try:
                answer = session.post(self._url, body, headers=headers, timeout=PATIENCE_SECONDS)
            except requests.RequestException:
                return 0
        assert answer.status_code != 200 or answer.text == "[]"
        return answer.status_code


@pytest.fixture(scope="module")
def office(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack that takes OwnTracks, with spools that are soon full."""
    stack = Stack(root, tmp_path_factory.mktemp("owntracks") / "data")
    stack.environment |= {
        "WAYMARK_OWNTRACKS": "on",
        "SPOOL_MAX_DETECTIONS": str(SPOOL_DETECTIONS),
    }
    with started(stack):
        yield stack


def stored(office: Stack) -> list[tuple[str, int]]:
    page = office.read("/api/v1/staff/iphone/detections", limit=1000).json()
    assert page["next"] is None
    return sorted((row["mac"], row["timestamp"]) for row in page["data"])


def test_an_iphone_loses_nothing_and_doubles_nothing(office: Stack) -> None:
    phone = IPhone(office.url)
    try:
        for part in ("ingest-1", "ingest-2", "gateway", "mongod"):
            phone.range(MORE)
            phone.try_again(2)
            kill_tree(office.pids()[part])
            phone.range(MORE)
            eventually(lambda: office.script("status").returncode == 0, 120)
            with frozen(office, part):
                phone.range(MORE)
                phone.try_again(MORE if part == "mongod" else 2)
            phone.range(MORE)
            eventually(lambda: office.script("status").returncode == 0, 120)
        with frozen(office, "ingest-1", "ingest-2"):
            phone.range(MORE)
            phone.try_again(2)
        eventually(lambda: not phone.waiting, 180)
    finally:
        phone.close()
    assert len(phone.ranged) == 17 * MORE
    # What a spool took comes later.
    eventually(lambda: len(stored(office)) >= len(phone.ranged), 120)
    assert stored(office) == sorted(phone.ranged)
    assert {status for status in phone.statuses if 400 <= status < 500} == set()
    assert phone.statuses[503] > 0  # it was tried
