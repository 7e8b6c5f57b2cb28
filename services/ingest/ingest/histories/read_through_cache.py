"""Histories, cached compressed in the process and proved exact at every request.

One small read tells the state of the database, and so whether a cached history is still all of it.
When not, only what changed since is read again. Now and then a count tells whether rows are gone.
"""

import asyncio
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from ingest import turns
from ingest.batcher import Batcher
from ingest.errors import StoreUnavailable
from ingest.histories.blocks import Row, grown
from ingest.histories.long_reads import each_block, read_blocks, texts
from ingest.histories.time_window import COUNT_SECONDS, WHOLE_BYTES, History, Window
from ingest.rules.request_parameters import MAX_UNIX_SECONDS, StaffId, TimeRange
from ingest.rules.retention import FOR_EVER, Retention
from ingest.storage.database.client import time_limit
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.states import NOTHING, Mark, State, States

# What all cached histories may take, compressed: 30,000 detections take about 0.3 MiB. And what
# they may take together with the last minutes of everybody, for which they make room; and while
# memory is short.
CACHE_BYTES, TOGETHER_BYTES, SHORT_BYTES = 6 * 2**20, 9 * 2**20, 2 * 2**20
# A history that takes more is read while it is sent, each time, and no other makes room for it.
LONG_BYTES = SHORT_BYTES
# How many windows are cached as sent, each at most WHOLE_BYTES; and while memory is short.
WINDOWS, SHORT_WINDOWS = 10, 3
# How many histories are read at once: each holds a batch of documents of the driver's.
READERS = 2
# Readers of one staff member take turns; those of others in the same group do as well.
READ_GROUPS = 16
# Of a window that ended so long ago only itself is cached: not the history, all up to now, as well.
CACHED_AGE_SECONDS = 86_400
# A database that does not tell a state in this time tells no history either.
STATE_SECONDS = 0.8
# How many states are read with one command.
STATES = 100
# Of how many people it is remembered that their shard did not answer.
MAX_SILENT = 5000


class _Wanted(NamedTuple):
    window: TimeRange
    state: State


class Histories:
    """Answers windows of histories: from memory where that is proved to be all of it."""

    def __init__(
        self,
        detections: Detections,
        states: States,
        check_reachable: Callable[[], None],
        check_shard_of: Callable[[StaffId], None],
        retention: Retention = FOR_EVER,
    ) -> None:
        self._retention = retention
        self._detections = detections
        self._states = states
        self._check_reachable = check_reachable
        self._check_shard_of = check_shard_of
        self._others_bytes = 0
        self.hits = self.misses = 0  # of windows, in memory
        self._lock = threading.Lock()  # of the two below
        self._windows: OrderedDict[tuple[TimeRange, int], Window] = OrderedDict()
        self._cached: OrderedDict[StaffId, History] = OrderedDict()
        self._readers = ThreadPoolExecutor(READERS, "histories")
        self._reads: list[Batcher[_Wanted, Window]] = [
            Batcher(self._read, self._readers) for _ in range(READ_GROUPS)
        ]
        self._state_reader = ThreadPoolExecutor(1, "states")
        self._asked: Batcher[StaffId, State | None] = Batcher(
            self._read_states, self._state_reader, limit=STATES, gather=True
        )
        # Whose shard did not answer: they wait apart, where they hold up nobody else.
        self._silent: set[StaffId] = set()
        self._silent_reader = ThreadPoolExecutor(1, "silent-states")
        self._silent_asked: Batcher[StaffId, State | None] = Batcher(
            self._read_states_there, self._silent_reader, limit=STATES
        )

    def make_room(self, size: int) -> None:
        """Leave so many bytes to the last minutes of everybody."""
        with self._lock:
            self._others_bytes = size
            self._forget_some()

    def forget(self, is_forgotten: Callable[[StaffId], bool]) -> None:
        """Let go of histories of the forgotten."""
        with self._lock:
            for staff_id in [*filter(is_forgotten, self._cached)]:
                del self._cached[staff_id]
            for window, state in [key for key in self._windows if is_forgotten(key[0].staff_id)]:
                del self._windows[window, state]

    def close(self) -> None:
        """End the threads."""
        self._state_reader.shutdown()
        self._silent_reader.shutdown()
        self._readers.shutdown()

    async def window(self, wanted: TimeRange, now: float) -> Window:
        """Return a window with everything that was acknowledged before the call.

        `now` in unix seconds. Raises StoreUnavailable: the database cannot prove or tell it.
        """
        wanted = self._retention.kept(wanted)
        silent = wanted.staff_id in self._silent
        if silent:  # and still known to be so by what waits in the spool, which is asked for often
            self._check_shard_of(wanted.staff_id)
        asked = self._silent_asked if silent else self._asked
        state = await asked.submit(wanted.staff_id)
        if state and (window := self._from_memory(wanted, state.mark.name)):
            self.hits += 1
            return window
        self.misses += 1
        if state is None:  # of a database that was restored: what is remembered is of no use
            with self._lock:
                self._cached.pop(wanted.staff_id, None)
        if state is None or wanted.end < now - CACHED_AGE_SECONDS:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._readers, self._alone, wanted, state)
        reads = self._reads[hash(wanted.staff_id) % READ_GROUPS]
        return await reads.submit(_Wanted(wanted, state))

    def _read_states(self, staff_ids: list[StaffId]) -> list[State | Exception | None]:
        self._check_reachable()
        known = self._known(staff_ids)
        try:
            with time_limit(STATE_SECONDS):
                states = self._states.read(known)
        except StoreUnavailable:
            if len(known) > 1:  # one dead shard is enough
                return self._read_states_there(staff_ids)
            self._note_silent(staff_ids, set(staff_ids))
            raise
        return [states.get(staff_id) for staff_id in staff_ids]

    def _read_states_there(self, staff_ids: list[StaffId]) -> list[State | Exception | None]:
        """Do so for those whose shards answer; the others are silent from now on."""
        self._check_reachable()
        with time_limit(STATE_SECONDS):
            states, silent = self._states.read_there(self._known(staff_ids))
        self._note_silent(staff_ids, silent)
        unavailable = StoreUnavailable("the shard of this staff member does not answer")
        return [
            unavailable if staff_id in silent else states.get(staff_id) for staff_id in staff_ids
        ]

    def _known(self, staff_ids: list[StaffId]) -> dict[StaffId, Mark | None]:
        """Return what is remembered of each."""
        cached = {staff_id: self._cached.get(staff_id) for staff_id in staff_ids}
        return {staff_id: one.mark if one else None for staff_id, one in cached.items()}

    def _note_silent(self, asked: list[StaffId], silent: set[StaffId]) -> None:
        self._silent.difference_update(asked)
        if len(self._silent) < MAX_SILENT:
            self._silent.update(silent)

    def _from_memory(self, wanted: TimeRange, state: int) -> Window | None:
        """Answer from memory alone, None when that is not enough for the state of this name."""
        counted = time.monotonic() - COUNT_SECONDS
        with self._lock:
            window = self._windows.get((wanted, state))
            if window and window.counted_at > counted:
                self._windows.move_to_end((wanted, state))
                return window
            history = self._cached.get(wanted.staff_id)
            if history is None or not _is(history, state) or history.counted_at <= counted:
                return None
            self._cached.move_to_end(wanted.staff_id)
        return self._window(history, wanted, None) if history.floor <= wanted.start else None

    def _read(self, wanted: list[_Wanted]) -> list[Window | Exception]:
        """Answer with what the database has to add: one read for each staff member."""
        by_staff: dict[StaffId, list[_Wanted]] = {}
        for read in wanted:
            by_staff.setdefault(read.window.staff_id, []).append(read)
        histories: dict[StaffId, History | Exception] = {}
        for staff_id, ones in by_staff.items():
            try:
                histories[staff_id] = self._brought_up(staff_id, ones)
            except Exception as error:
                histories[staff_id] = error
        return [self._result(histories[read.window.staff_id], read) for read in wanted]

    def _result(self, history: History | Exception, read: _Wanted) -> Window | Exception:
        return history if isinstance(history, Exception) else self._window(history, *read)

    def _brought_up(self, staff_id: StaffId, wanted: list[_Wanted]) -> History:
        """Return a history that covers all that is wanted of it, and is now cached.

        Of a long one the newest alone, and what was cached stays so.
        """
        history = self._cached.get(staff_id)
        # Of equals the one that was read last.
        state = max((read.state for read in reversed(wanted)), key=lambda read: read.mark.newest)
        start = min(read.window.start for read in wanted)
        if history and history.mark and history.mark.newest > state.mark.newest:
            # Another reader was quicker, or the database is an older copy: it has to say.
            [answer] = self._read_states([staff_id])
            state = answer if isinstance(answer, State) else state
        cached = self._at_state(history, staff_id, state)
        if cached and cached.counted_at <= time.monotonic() - COUNT_SECONDS:
            cached = self._counted(cached, staff_id, state)
        history = self._reaching(cached, staff_id, start, state)
        if history.floor <= start:
            self._cache(staff_id, history)
        elif cached:
            self._cache(staff_id, cached)
        return history

    def _alone(self, wanted: TimeRange, state: State | None) -> Window:
        """Return a window of which nothing else is read; without a state nothing names it.

        It may have what came after the state: so does its name, which counts rows and bytes.
        """
        return self._window(self._history(wanted, state), wanted, state)

    def _window(self, history: History, wanted: TimeRange, state: State | None) -> Window:
        """Return a window, cached for the next who wants the same while nothing changes."""
        window = history.window(wanted, partial(each_block, self._detections, state=state))
        if history.mark and not window.is_long and window.length <= WHOLE_BYTES:
            with self._lock:
                name = history.mark.name
                for one, named in list(self._windows):
                    if one.staff_id == wanted.staff_id and named != name:  # of what was before
                        del self._windows[one, named]
                self._windows[wanted, name] = window
                most = SHORT_WINDOWS if turns.is_short() else WINDOWS
                while len(self._windows) > most:
                    self._windows.popitem(last=False)
        return window

    def _at_state(self, history: History | None, staff_id: StaffId, state: State) -> History | None:
        """Return what is cached at this state, reading what is new; None when it is of no use."""
        if history and not _is(history, state.mark.name):
            since = state.changed_since(history.mark) if history.mark else None
            return None if since is None else self._renewed(history, staff_id, since, state)
        return history

    def _reaching(
        self, history: History | None, staff_id: StaffId, start: int, state: State
    ) -> History:
        """Return a history that begins at a time, unless it is long."""
        if history is None:
            return self._history(TimeRange(staff_id, start, MAX_UNIX_SECONDS), state)
        if start < history.floor and history.size < LONG_BYTES:
            missing = TimeRange(staff_id, start, history.floor - 1)
            older = self._history(missing, state, LONG_BYTES - history.size)
            every = history.blocks + older.blocks
            return History(state.mark, older.floor, every, history.counted_at)
        return history

    def _renewed(self, old: History, staff_id: StaffId, since: int, state: State) -> History:
        """Return the history with what is newer than `since` read again."""
        if since == NOTHING:
            return History(state.mark, old.floor, old.blocks, old.counted_at)
        since = max(since, old.floor)
        rows, rest = old.before(since)
        fresh = self._rows(staff_id, since, state)
        blocks = grown(itertools.chain(fresh, rows)) + rest
        return History(state.mark, old.floor, blocks, old.counted_at)

    def _counted(self, history: History, staff_id: StaffId, state: State) -> History:
        """Return the history as the database has it: read again if that has not as many rows.

        What came after the state may be counted as well: then it is read for nothing.
        """
        now = time.monotonic()
        wanted = TimeRange(staff_id, history.floor, MAX_UNIX_SECONDS)
        if self._detections.count(wanted, state.read_at) != history.rows(*wanted[1:]):
            return self._history(wanted, state)
        return History(history.mark, history.floor, history.blocks, now)

    def _history(self, wanted: TimeRange, state: State | None, room: int | None = None) -> History:
        """Read what may be a whole history, with all that the state has; of a long one the newest.

        `room`: how many bytes of it, where some are there already.
        """
        now = time.monotonic()
        newest, floor = read_blocks(self._detections, wanted, state, room or LONG_BYTES)
        return History(state and state.mark, floor, newest, now)

    def _rows(self, staff_id: StaffId, start: int, state: State) -> Iterator[Row]:
        """Yield the few rows of the end of a history, with all that the state has."""
        wanted = TimeRange(staff_id, start, MAX_UNIX_SECONDS)
        return texts(self._detections.list_between(wanted, state.read_at))

    def _cache(self, staff_id: StaffId, history: History) -> None:
        with self._lock:
            self._cached[staff_id] = history.newest(LONG_BYTES)
            self._cached.move_to_end(staff_id)
            self._forget_some()

    def _forget_some(self) -> None:
        """Forget those that were not asked for for longest."""
        most = SHORT_BYTES if turns.is_short() else CACHE_BYTES
        most = min(most, TOGETHER_BYTES - self._others_bytes)
        size = sum(cached.size for cached in self._cached.values())
        while self._cached and size > most:
            _, gone = self._cached.popitem(last=False)
            size -= gone.size


def _is(history: History, state: int) -> bool:
    return history.mark is not None and history.mark.name == state
