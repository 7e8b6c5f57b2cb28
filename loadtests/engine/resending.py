"""Good clients: what was not confirmed is sent again, with the same event ids."""

import contextlib
import random
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import Any

import gevent

from loadtests import targets
from loadtests.engine import endpoints
from loadtests.engine.client import CLOSE, Api, Response, Verify, WrongResponse
from loadtests.plans import MAC

MOST_IN_A_BATCH = 1000
RETRY_SECONDS = 1.0
SENDS = 30  # of one request at most


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
            self._store(staff, len(part), due, path=endpoints.BATCH, verify=verify, body=body)

    def single(
        self, staff: str, due: float | None = None, headers: Mapping[str, str] = CLOSE
    ) -> None:
        """Send one detection as a phone does."""
        path = endpoints.insert(endpoints.detection(staff, MAC, int(time.time())))
        self._store(staff, 1, due, path=path, verify=endpoints.verify_insert, headers=headers)

    def read(self, path: str, verify: Verify) -> None:
        """Read, and wait as told when it is too much at once (429, 503)."""
        self.drops += not self._confirmed(partial(self._api.measure, "read", path, verify))

    def _store(self, staff: str, size: int, due: float | None, **request: Any) -> None:
        good = targets.STORED
        if self._confirmed(partial(self._api.measure, "send", good=good, **request), good, due):
            self.acknowledged[staff] += size
        else:
            self.drops += size

    def _confirmed(
        self,
        request: Callable[..., Response],
        good: Container[int] = (200,),
        due: float | None = None,
    ) -> bool:
        """Send until the status is a good one; tell whether it ever was."""
        for _ in range(SENDS):
            if request(due=due).status in good:
                return True
            self.retries += 1
            due = None
            gevent.sleep(RETRY_SECONDS)
        return False

    def verdict(self, problems: list[str], only: int = 0) -> Iterator[str]:
        """Yield PASS, or FAIL and why; `only` looks at so many staff members, by chance."""
        staff_ids = list(self.acknowledged)
        sampled = random.sample(staff_ids, only) if 0 < only < len(staff_ids) else staff_ids
        wrong = [problem for problem in map(self._problem, sampled) if problem]
        if self.drops:
            problems = [*problems, f"{self.drops} dropped"]
        if wrong:
            problems = [*problems, f"{len(wrong)} histories wrong: {wrong[0]}"]
        looked = f"{only} of " if sampled is not staff_ids else ""
        right = f"PASS: stored is what was acknowledged ({looked}{len(staff_ids)} histories)"
        yield f"FAIL: {'; '.join(problems)}" if problems else right

    def _problem(self, staff: str) -> str:
        """Return what is wrong when a history is not exactly what was acknowledged."""
        expected, rows = self.acknowledged[staff], -1
        with contextlib.suppress(WrongResponse):
            rows = len(endpoints.newest_first(self._api.send(endpoints.extract(staff))))
        return "" if rows == expected else f"{staff} {rows}, not {expected}"


def random_mac() -> str:
    """Return the MAC of something that nobody has seen before."""
    return f"{random.getrandbits(48):012X}"
