"""Good clients: what was not confirmed is sent again, with the same event ids."""

import contextlib
import random
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import gevent

from loadtests.client import Api, WrongAnswer, query
from loadtests.filling import body
from loadtests.histories import newest_first, verify_added, verify_batch
from loadtests.plans import ALL_TIME

MOST_IN_A_BATCH = 1000
RETRY_SECONDS = 1.0
TRIES = 30


class Senders:
    """Clients that send again until they are answered, and know what must be stored."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.run = uuid.uuid4().hex[:6]  # in every name, so that a stack takes a next run
        self.acknowledged: dict[str, int] = defaultdict(int)
        self.retries = 0
        self.drops = 0

    def batch(self, staff: str, macs: list[str], due: float | None = None) -> None:
        """Send detections of now by one staff member, at most 1000 a request."""
        for at in range(0, len(macs), MOST_IN_A_BATCH):
            part = macs[at : at + MOST_IN_A_BATCH]
            items = [_item(staff, mac) for mac in part]

            def verify(answer: Any, size: int = len(part)) -> None:
                verify_batch(answer, size)

            self._send(staff, len(part), "/api/v1/detections", verify, body(items), due)

    def single(self, staff: str, due: float | None = None, *, keep: bool = False) -> None:
        """Send one detection as a phone does."""
        item = _item(staff, "C2A628384B08")
        named = {"user_address": staff, "beacon_address": item["mac"]}
        rest = {name: item[name] for name in ("rssi", "timestamp", "event_id")}
        path = query("/newbeacondetect", **named, **rest)
        self._send(staff, 1, path, verify_added, None, due, keep=keep)

    def read(self, path: str, verify: Callable[[Any], Any]) -> None:
        """Read, and wait as told when it is too much at once (429, 503)."""
        for _ in range(TRIES):
            answer = self._api.ask("read", path, _when_good(verify), good=(200, 429, 503))
            if answer.status not in (429, 503):
                return
            self.retries += 1
            gevent.sleep(RETRY_SECONDS)
        self.drops += 1

    def _send(
        self,
        staff: str,
        size: int,
        path: str,
        verify: Callable[[Any], None],
        text: bytes | None,
        due: float | None,
        *,
        keep: bool = False,
    ) -> None:
        for _ in range(TRIES):
            answer = self._api.ask("send", path, verify, text, due=due, good=(200, 202), keep=keep)
            if answer.status in (200, 202):
                self.acknowledged[staff] += size
                return
            self.retries += 1
            due = None
            gevent.sleep(RETRY_SECONDS)
        self.drops += size

    def stored(self, staff: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return who has not exactly what was acknowledged: what is stored, and what should be."""
        wrong = {}
        for one in staff:
            count, found = self.acknowledged[one], -1
            with contextlib.suppress(WrongAnswer):
                answer = self._api.call(query("/extractbeacon", staff_id=one, **ALL_TIME))
                found = len(newest_first(answer))
            if found != count:
                wrong[one] = (found, count)
        return wrong


def tag() -> str:
    """Return the MAC of something that nobody has seen before."""
    return f"{random.getrandbits(48):012X}"


def _when_good(verify: Callable[[Any], Any]) -> Callable[[Any], None]:
    def check(answer: Any) -> None:
        if answer.status == 200:
            verify(answer)

    return check


def _item(staff: str, mac: str) -> dict[str, Any]:
    now = int(time.time())
    named = {"staff_id": staff, "mac": mac, "rssi": -60}
    return named | {"timestamp": now, "event_id": uuid.uuid4().hex}
