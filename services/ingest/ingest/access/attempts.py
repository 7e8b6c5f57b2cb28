"""How often somebody may try to log in: after some failures only with a growing delay.

Each service counts for itself, without the database. The gateway gives each the same share of the
attempts: with two services, twice as many pass as stand here.
"""

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from ingest.access.devices import Device
from ingest.errors import TooManyAttempts

# Of whom failures are remembered, 250 bytes each; who tried longest ago is forgotten first.
MAX_REMEMBERED = 4096
# Failures that are so old do not count: longer than any delay.
FORGET_SECONDS = 3600.0
SELDOM_SECONDS = 60.0


class _Rule(NamedTuple):
    free: int  # failures without a delay
    longest_seconds: float

    def delay(self, failures: int) -> float:
        """Return how long to wait after so many failures: 1 s, 2 s, 4 s..."""
        over = failures - self.free
        return 0.0 if over < 0 else min(self.longest_seconds, 2.0 ** min(over, 20))


# Whoever guesses one account's password from one address, or in one browser of its owner.
PAIR = _Rule(2, 600)
# An address, which may be a whole campus: never long, or one who fails keeps out the others.
ADDRESS = _Rule(10, 8)
# An account, from wherever: never long, or anybody could keep its owner out.
ACCOUNT = _Rule(50, 4)

_Key = tuple[str, str]  # a name, and an address or the id of a browser


class Source(NamedTuple):
    """Where an attempt comes from."""

    address: str
    device: Device | None = None

    def rules(self, name: str) -> dict[_Key, _Rule]:
        """Return what counts an attempt, and how; without a name one that tells none.

        In a browser in which that person has logged in, nothing that others share with it counts.
        """
        if self.device and name in ("", *self.device.names):
            return {(name, self.device.id): PAIR if name else ADDRESS}
        network = _network(self.address)
        rules = {("", network): ADDRESS}
        return rules | ({(name, network): PAIR, (name, ""): ACCOUNT} if name else {})


class _Failures(NamedTuple):
    times: int
    last: float
    before: float  # the last but one


class Throttle:
    """Lets the same thing pass once a minute: who may read cannot fill the audit with log-ins."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._passed: OrderedDict[_Key, float] = OrderedDict()

    def passes(self, what: str, name: str) -> bool:
        """Tell whether it has not passed within a minute."""
        now, key = self._clock(), (what, name)
        with self._lock:
            if now - self._passed.get(key, -math.inf) < SELDOM_SECONDS:
                return False
            self._passed[key] = now
            self._passed.move_to_end(key)
            while len(self._passed) > MAX_REMEMBERED:
                self._passed.popitem(last=False)
            return True


class Attempts:
    """Counts an attempt before it is known to fail: many at once gain nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[_Key, _Failures] = OrderedDict()

    def begin(self, name: str, source: Source) -> None:
        """Count an attempt. Raises TooManyAttempts, and then does not."""
        now = self._clock()
        with self._lock:
            rules = source.rules(name)
            wait = max(self._wait(key, rule, now) for key, rule in rules.items())
            if wait > 0:
                raise TooManyAttempts(math.ceil(wait))
            for key in rules:
                count, failures = self._count(key, now), self._failures.get(key)
                before = failures.last if failures else -math.inf
                self._failures[key] = _Failures(count + 1, now, before)
                self._failures.move_to_end(key)
            while len(self._failures) > MAX_REMEMBERED:
                self._failures.popitem(last=False)

    def undo(self, name: str, source: Source) -> None:
        """Take an attempt back that did not fail."""
        with self._lock:
            for key in source.rules(name):
                if failures := self._failures.get(key):
                    times = max(0, failures.times - 1)
                    self._failures[key] = _Failures(times, failures.before, failures.before)

    def succeeded(self, name: str, source: Source) -> None:
        """Forget the failures of who has logged in, but not what else came from there."""
        self.undo(name, source)
        with self._lock:
            for key, rule in source.rules(name).items():
                if rule is PAIR:
                    self._failures.pop(key, None)

    def _wait(self, key: _Key, rule: _Rule, now: float) -> float:
        failures = self._failures.get(key)
        return failures.last + rule.delay(self._count(key, now)) - now if failures else 0.0

    def _count(self, key: _Key, now: float) -> int:
        failures = self._failures.get(key)
        return failures.times if failures and now - failures.last < FORGET_SECONDS else 0


def _network(address: str) -> str:
    """Return the address, of IPv6 the part that one subscriber has all of."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "?"
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((address, 64), strict=False))
