"""Everybody's detections of the last minutes as the text of the answer, in compressed blocks."""

import itertools
import json
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from ingest.batcher import Batcher
from ingest.errors import StoreUnavailable
from ingest.histories.blocks import Row, grown
from ingest.histories.time_window import COUNT_SECONDS, History, Window
from ingest.rules.request_parameters import TimeRange
from ingest.storage.detections.arrivals import Arrivals
from ingest.storage.detections.detections import Detections
from ingest.storage.histories import recent_state
from ingest.storage.histories.recent_state import RecentState

WINDOW_SECONDS = 15 * 60
# What a phone's clock is ahead at most to be shown. What is dated further ahead comes in when its
# time has come, and leaves like everything else: it would stay for a day, and a crowd of it too.
AHEAD_SECONDS = 60
# What the legacy answer says of a strength that is not known, for its readers want a whole number:
# the weakest that a controller reports, which nobody takes for near. 0 would be the strongest.
NO_RSSI = -127
# How many fit, some 20 bytes each: 380 a second. A 503 is better than to be killed.
MAX_ROWS = 350_000
TOO_MANY = f"more than {MAX_ROWS} detections in the last minutes"
# What is younger is not counted: more of it comes meanwhile.
COMING_SECONDS = 10
# A large answer is to be sent before the next is read, for both would take twice 7 MiB. The gateway
# takes it at once; who does not holds up nobody for longer.
LARGE_BYTES, SENT_SECONDS = 2**20, 1.0
# How many beginnings and ends of rows are kept while they are read: 1 MiB.
MAX_ENCODED = 2000

Answer = tuple[Window, str]  # and its ETag


class _Cached(NamedTuple):
    """What was read up to a timestamp, in which state."""

    state: RecentState
    end: int
    history: History


class LastMinutes:
    """Reads them once for all who ask at the same moment, and only what changed since.

    It needs no note: by their stamps it finds which are new, and the rows by their times.
    """

    def __init__(
        self,
        detections: Detections,
        arrivals: Arrivals,
        make_room: Callable[[int], None],
    ) -> None:
        self._make_room = make_room  # for so many bytes
        self._detections = detections
        self._arrivals = arrivals
        self._cached: _Cached | None = None
        self._sent: Callable[[], Window | None] = lambda: None  # the last one, while it is large
        self._pool = ThreadPoolExecutor(1, "last-minutes")
        self._reads: Batcher[None, Answer] = Batcher(self._read, self._pool)

    def forget(self) -> None:
        """Let go of all, when what is being read is answered: who asks next has it read again."""
        self._pool.submit(self._forget)

    def _forget(self) -> None:
        self._cached = None

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()

    def read(self) -> Answer:
        """Return all that was acknowledged before the call. Raises StoreUnavailable."""
        return self._reads.call(None)

    def _wait_until_sent(self) -> None:
        until = time.monotonic() + SENT_SECONDS
        while self._sent() and time.monotonic() < until:
            time.sleep(0.01)

    def _read(self, calls: list[None]) -> list[Answer | Exception]:
        self._wait_until_sent()
        now = int(time.time())
        start, end = now - WINDOW_SECONDS, now + AHEAD_SECONDS
        counted_at = time.monotonic()
        cached = self._cached
        # Before the rows: what comes between is read again next time.
        state, changed = recent_state.read(self._arrivals, cached and cached.state, start)
        since = start
        if cached and end >= cached.end:  # else the clock was set back
            since = max(start, min(changed, cached.end + 1))
        if cached and since > start:
            counted = cached.history.counted_at
            if counted > counted_at - COUNT_SECONDS:
                counted_at = counted
            elif self._some_are_gone(start, min(since - 1, now - COMING_SECONDS), state):
                since = start
        if cached:  # what is read again has no room beside what was
            older_blocks = cached.history.reaching_before(since)
            history = History(None, start, older_blocks, cached.history.counted_at)
            cached = self._cached = _Cached(cached.state, since - 1, history)
        rows = self._rows(state, since, end)
        if cached and since > start:
            cut, older = cached.history.before(since)
            blocks = grown(itertools.chain(rows, cut)) + older
            blocks = tuple(block for block in blocks if len(range(*block.span(start, end))))
        else:
            blocks = grown(rows)
        if sum(block.rows for block in blocks) > MAX_ROWS:
            raise StoreUnavailable(TOO_MANY)
        history = History(None, start, blocks, counted_at)
        self._cached = _Cached(state, end, history)
        self._make_room(history.size)
        window = history.window(TimeRange("", start, end))
        self._sent = weakref.ref(window) if history.size > LARGE_BYTES else lambda: None
        # By the newest stamp, and by the checksum of the text, with which its gzip member ends.
        etag = f"{state.newest:x}-{window.rows:x}-{window.gzip()[-1].hex()}"
        return [(window, etag)] * len(calls)

    def _some_are_gone(self, start: int, end: int, state: RecentState) -> bool:
        """Tell whether the database has not as many rows of that time: they were deleted."""
        cached = self._cached.history.rows(start, end) if self._cached else 0
        return self._detections.count_recent(start, end, state.read_at) != cached

    def _rows(self, state: RecentState, start: int, end: int) -> Iterator[Row]:
        """Yield each row as JSON; what repeats in them is encoded once."""
        encoded: dict[tuple[Any, ...], tuple[str, str]] = {}
        detections = self._detections.list_recent(start, end, state.read_at)
        for count, (staff_id, level, location, timestamp, rssi, mac) in enumerate(detections):
            if count >= MAX_ROWS:
                raise StoreUnavailable(TOO_MANY)
            texts = encoded.get(key := (staff_id, level, location, mac))
            if texts is None:
                if len(encoded) >= MAX_ENCODED:
                    encoded.clear()
                first = {"staff_id": staff_id, "level": level, "location": location}
                texts = encoded[key] = _compact(first)[:-1], _compact({"mac": mac})[1:]
            dbm = NO_RSSI if rssi is None else rssi
            row = f'{texts[0]},"timestamp":{timestamp},"rssi":{dbm},{texts[1]}'
            yield timestamp, row.encode()


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
