"""Coalescing: calls that come while one run of the work is under way share the next run."""

import asyncio
import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from ingest.errors import StoreUnavailable, without_frames

# When so many calls came within two runs, a moment more makes one group of them, not two.
MANY, GATHER_SECONDS = 8, 0.002

Item = TypeVar("Item")
Result = TypeVar("Result")

AnyFuture = TypeVar("AnyFuture", "asyncio.Future[Any]", "Future[Any]")

_Waiting = tuple[Item, int, "asyncio.Future[Any] | Future[Any]"]  # the number is the item's size


class Batcher(Generic[Item, Result]):
    """Runs the work for all who called meanwhile, in one go, in a thread of a pool.

    One run at a time. A run takes only calls that were made before it began, so its results hold
    for all that was true when they were made. `work` returns a result, or an error, for each item;
    an error that it raises is everybody's. `limit` bounds the sizes of one run's items together,
    but for an item that is larger alone. `gather`: wait for a moment where many call all the time.
    """

    def __init__(
        self,
        work: Callable[[list[Item]], list[Result | Exception]],
        pool: Executor,
        *,
        limit: int = sys.maxsize,
        size: Callable[[Item], int] = lambda _: 1,
        gather: bool = False,
    ) -> None:
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_work: Callable[[list[Item]], Awaitable[list[Result | Exception]]]
        self._task: asyncio.Task[None] | None = None  # a loop alone would let go of it
        self._pool = pool
        self._limit = limit
        self._size = size
        self._gather = gather
        self._lock = threading.Lock()  # of the two below
        self._waiting: list[_Waiting[Item]] = []
        self._busy = False
        self._last = 0  # how many items the last run had

    @property
    def busy(self) -> bool:
        """Tell whether a run is under way, or about to begin."""
        return self._busy

    def run_in(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[list[Item]], Awaitable[list[Result | Exception]]],
    ) -> None:
        """From now on await this work in an event loop, instead of the other one in the pool."""
        self._loop_work = work
        self._loop = loop

    def submit(self, item: Item) -> "asyncio.Future[Result]":
        """Return the result of an item, to be awaited in the running event loop."""
        return self._join(item, asyncio.get_running_loop().create_future())

    def call(self, item: Item) -> Result:
        """Return the result of an item, for a thread that waits for it."""
        result: Result = self._join(item, Future()).result()
        return result

    def _join(self, item: Item, result: AnyFuture) -> AnyFuture:
        size = self._size(item)
        with self._lock:
            self._waiting.append((item, size, result))
            starts, self._busy = not self._busy, True
        if starts:
            self._start()
        return result  # the caller gives it no name: an error that it raises would lead back to it

    def _start(self) -> None:
        """Begin a run; when the pool, or the loop, has ended, so have those who wait."""
        try:
            if self._loop is None:
                self._pool.submit(self._run)
            elif self._loop is _current_loop():
                self._start_in_loop()
            else:
                self._loop.call_soon_threadsafe(self._start_in_loop)
        except Exception as error:
            with self._lock:
                group, self._waiting = self._waiting, []
                self._busy = False
            stopped = StoreUnavailable(f"no run can begin: {error}")
            _deliver(group, [stopped] * len(group))

    def _run(self) -> None:
        if self._gather and self._last + len(self._waiting) >= MANY:
            time.sleep(GATHER_SECONDS)  # who has just got a result is about to call again
        try:
            group = self._next_group()
            self._last = len(group)
            _deliver(group, self._results(group))
        finally:
            self._end_run()

    def _start_in_loop(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run_in_loop())

    async def _run_in_loop(self) -> None:
        try:
            if self._gather and self._last + len(self._waiting) >= MANY:
                await asyncio.sleep(GATHER_SECONDS)
            group = self._next_group()
            self._last = len(group)
            _deliver(group, await self._results_in_loop(group))
        except asyncio.CancelledError:  # the loop ends: no run begins there any more
            self._loop = None
            raise
        finally:
            self._end_run()

    async def _results_in_loop(self, group: list[_Waiting[Item]]) -> list[Result | Exception]:
        try:
            results = await self._loop_work([item for item, _, _ in group])
            return [result for _, result in zip(group, results, strict=True)]
        except Exception as error:
            return [error] * len(group)
        except asyncio.CancelledError:  # a thread may still wait
            _deliver(group, [StoreUnavailable("the service ends")] * len(group))
            raise

    def _end_run(self) -> None:
        with self._lock:
            again = self._busy = bool(self._waiting)
        if again:
            self._start()

    def _next_group(self) -> list[_Waiting[Item]]:
        with self._lock:
            total = count = 0
            for _, size, _ in self._waiting:
                total += size
                if count and total > self._limit:
                    break
                count += 1
            group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    def _results(self, group: list[_Waiting[Item]]) -> list[Result | Exception]:
        try:
            results = self._work([item for item, _, _ in group])
            return [result for _, result in zip(group, results, strict=True)]
        except Exception as error:
            return [error] * len(group)
        except BaseException as error:  # in the futures of a loop it would end the loop
            ended = RuntimeError("the work ended")
            ended.__cause__ = error
            return [ended] * len(group)


def _deliver(group: list[_Waiting[Item]], results: list[Result | Exception]) -> None:
    """Hand over the results: to threads at once, to an event loop all of its own in one step."""
    for result in results:
        if isinstance(result, Exception):
            _let_go(result)
    in_loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for (_, _, future), result in zip(group, results, strict=True):
        if isinstance(future, Future):
            _settle([(future, result)])
        else:
            in_loops.setdefault(future.get_loop(), []).append((future, result))
    current = _current_loop()
    for loop, pairs in in_loops.items():
        if loop is current:
            _settle(pairs)
            continue
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it who waited
            loop.call_soon_threadsafe(_settle, pairs)


def _current_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _let_go(error: Exception) -> None:
    """Let go of an error's frames; of one that nobody expects a note says where it was raised."""
    if error.__traceback__ and not isinstance(error, StoreUnavailable):
        error.add_note("".join(traceback.format_tb(error.__traceback__)))
    without_frames(error)


def _settle(pairs: list[tuple[Any, Any]]) -> None:
    for future, result in pairs:
        if future.done():  # the client left
            continue
        if isinstance(result, StopIteration):  # which no future of a loop takes
            future.set_exception(RuntimeError(repr(result)))
        elif isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


class SharedResult:
    """One reading for all who ask for it within some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._cached: tuple[Hashable, float, Any] = (None, -seconds, None)
        pool = ThreadPoolExecutor(1, "shared-result")
        self._batcher: Batcher[tuple[Hashable, Callable[[], Any]], Any]
        self._batcher = Batcher(self._read, pool)

    def get(self, key: Hashable, read: Callable[[], Any]) -> Any:
        """Return what was read for the same key not long ago, else read it, one at a time.

        Whoever comes while it is read gets what was read before, if that was for the same key.
        """
        cached, read_at, value = self._cached
        if cached == key and (self._fresh(read_at) or self._batcher.busy):
            return value
        return self._batcher.call((key, read))

    def _fresh(self, read_at: float) -> bool:
        return time.monotonic() - read_at < self._seconds

    def _read(self, items: list[tuple[Hashable, Callable[[], Any]]]) -> list[Any]:
        values = []
        for key, read in items:
            cached, read_at, value = self._cached
            if cached != key or not self._fresh(read_at):
                value = read()
                self._cached = (key, time.monotonic(), value)
            values.append(value)
        return values
