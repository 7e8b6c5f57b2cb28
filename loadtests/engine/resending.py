"""Good clients: what was not confirmed is sent again, with the same event ids."""

import contextlib
import random
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import gevent

from loadtests.engine import endpoints
from loadtests.engine.client import CLOSE, Api, Response, Verify, WrongResponse

MOST_IN_A_BATCH = 1000
RETRY_SECONDS = 1.0
SENDS = 30  # of one request at most
BUSY = (429, 503)


class Clients:
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
            now, part = int(time.time()), macs[at : at + MOST_IN_A_BATCH]
            body = endpoints.batch([endpoints.detection(staff, mac, now) for mac in part])
            verify = partial(endpoints.verify_batch, size=len(part))
            self._store(staff, len(part), endpoints.BATCH, verify, body, due)

    def single(
        self, staff: str, due: float | None = None, headers: Mapping[str, str] = CLOSE
    ) -> None:
        """Send one detection as a phone does."""
        path = endpoints.insert(endpoints.detection(staff, "C2A628384B08", int(time.time())))
        self._store(staff, 1, path, endpoints.verify_insert, None, due, headers)

    def read(self, path: str, verify: Verify) -> None:
        """Read, and wait as told when it is too much at once (429, 503)."""

        def when_good(response: Response) -> None:
            if response.status == 200:
                verify(response)

        good = (200, *BUSY)
        for _ in range(SENDS):
            if self._api.measure("read", path, when_good, good=good).status not in BUSY:
                return
            self.retries += 1
            gevent.sleep(RETRY_SECONDS)
        self.drops += 1

    def _store(
        self,
        staff: str,
        size: int,
        path: str,
        verify: Verify,
        body: bytes | None,
        due: float | None,
        headers: Mapping[str, str] = CLOSE,
    ) -> None:
        good = endpoints.STORED
        for _ in range(SENDS):
            response = self._api.measure("send", path, verify, body, headers, due=due, good=good)
            if response.status in good:
                self.acknowledged[staff] += size
                return
            self.retries += 1
            due = None
            gevent.sleep(RETRY_SECONDS)
        self.drops += size

    def verdict(self, problems: list[str], only: int = 0) -> Iterator[str]:
        """Yield PASS, or FAIL and why; `only` looks at so many staff members, by chance."""
        every = list(self.acknowledged)
        sampled = 0 < only < len(every)
        wrong = self._stored_wrong(random.sample(every, only) if sampled else every)
        if self.drops:
            problems = [*problems, f"{self.drops} dropped"]
        if wrong:
            staff, (found, expected) = next(iter(wrong.items()))
            problems = [*problems, f"{len(wrong)} histories wrong: {staff} {found}, not {expected}"]
        looked = f"{only} of " if sampled else ""
        right = f"PASS: stored is what was acknowledged ({looked}{len(every)} histories)"
        yield f"FAIL: {'; '.join(problems)}" if problems else right

    def _stored_wrong(self, staff: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return who has not exactly what was acknowledged: what is stored, and what should be."""
        wrong = {}
        for one in staff:
            count, found = self.acknowledged[one], -1
            with contextlib.suppress(WrongResponse):
                found = len(endpoints.newest_first(self._api.send(endpoints.extract(one))))
            if found != count:
                wrong[one] = (found, count)
        return wrong


def random_mac() -> str:
    """Return the MAC of something that nobody has seen before."""
    return f"{random.getrandbits(48):012X}"
