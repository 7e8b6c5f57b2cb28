"""The newest response of each path of the API, cached so that one read serves every open page."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from monitoring.gateway import CLOSED, UNKNOWN, GatewayResponse, GatewayUnavailable

MAX_WAIT_SECONDS = 1.0
# Together with MAX_BODY_BYTES these keep the cache within this service's 48 MiB of memory.
MAX_CACHED_BYTES = 3 * 1024 * 1024
MAX_CACHED_RESPONSES = 100


class Snapshot(NamedTuple):
    """The newest good response of a path (None before the first), and how the newest read went.

    `circuit` is `closed` when the newest read gave this response, `open` when no ingest service
    can answer, and `unknown` when the gateway did not answer, or gave nothing usable.
    """

    circuit: str = UNKNOWN
    response: GatewayResponse | None = None
    detail: str = "nothing was read yet"


class _Entry:
    def __init__(self) -> None:
        self.reading = threading.Lock()
        self.snapshot = Snapshot()
        self.read_at = float("-inf")  # also when the read failed


class SnapshotCache:
    """Caches one snapshot per path; `get` reads a path or raises GatewayUnavailable."""

    def __init__(
        self,
        get: Callable[[str, GatewayResponse | None], GatewayResponse],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._get = get
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # the last used at the end
        self._changing = threading.Lock()

    def read(self, path: str, lifetime_seconds: float) -> Snapshot:
        """Return the snapshot of a path, read again when it is older than its lifetime.

        One caller reads. The others wait at most MAX_WAIT_SECONDS for it and then get the older
        snapshot: if they waited as long as the reader, a few pages could hold every thread of
        this service while the gateway hangs.
        """
        entry = self._entry(path)
        if not entry.reading.acquire(timeout=MAX_WAIT_SECONDS):
            return entry.snapshot
        try:
            age = self._clock() - entry.read_at
            if not 0 <= age < lifetime_seconds:
                entry.snapshot = self._refreshed(path, entry.snapshot)
                entry.read_at = self._clock()
            return entry.snapshot
        finally:
            entry.reading.release()

    def _refreshed(self, path: str, before: Snapshot) -> Snapshot:
        try:
            return Snapshot(CLOSED, self._get(path, before.response), "")
        except GatewayUnavailable as error:
            return before._replace(circuit=error.circuit, detail=str(error))

    def _entry(self, path: str) -> _Entry:
        with self._changing:
            entry = self._entries.setdefault(path, _Entry())
            self._entries.move_to_end(path)
            while len(self._entries) > 1 and self._is_too_large():
                self._entries.popitem(last=False)
            return entry

    def _is_too_large(self) -> bool:
        responses = [entry.snapshot.response for entry in self._entries.values()]
        cached_bytes = sum(len(response.body) for response in responses if response)
        return cached_bytes > MAX_CACHED_BYTES or len(responses) > MAX_CACHED_RESPONSES
