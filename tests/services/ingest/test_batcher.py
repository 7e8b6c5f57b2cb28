"""Coalescing: who gets the result of which run."""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from ingest.batcher import Batcher, SharedResult
from ingest.errors import StoreUnavailable
from scripts.processes.waiting import eventually
from tests.loops import run


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_an_error_reaches_its_own_caller_or_all_of_a_run(pool: ThreadPoolExecutor) -> None:
    def work(numbers: list[int]) -> list[int | Exception]:
        if 9 in numbers:
            raise ValueError("all of them")
        return [KeyError(n) if n == 1 else n for n in numbers]

    async def submit() -> list[Any]:
        batcher = Batcher(work, pool, limit=3)
        with started_late(pool):
            calls = [asyncio.ensure_future(batcher.submit(n)) for n in (0, 1, 2, 3, 4, 9)]
            await asyncio.sleep(0.01)
        return await asyncio.gather(*calls, return_exceptions=True)

    results = run(submit())
    assert results[:3:2] == [0, 2]
    assert [type(result) for result in results[1:2] + results[3:]] == [KeyError] + [ValueError] * 3


class started_late:  # noqa: N801  # used like a function
    """Keep a pool of one thread busy for the context."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._gate = threading.Event()
        pool.submit(self._gate.wait)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._gate.set()


def test_a_call_never_gets_the_result_of_a_run_that_began_before_it(
    pool: ThreadPoolExecutor,
) -> None:
    began = threading.Event()
    end = threading.Event()
    runs: list[int] = []

    def work(items: list[int]) -> list[int | Exception]:
        runs.append(len(items))
        began.set()
        end.wait(10)
        return [len(runs)] * len(items)

    batcher = Batcher(work, pool)
    with ThreadPoolExecutor(8) as callers:
        first = callers.submit(batcher.call, 0)
        began.wait(10)
        later = [callers.submit(batcher.call, n) for n in range(5)]
        while len(batcher._waiting) < 5:
            time.sleep(0.001)
        end.set()
        assert first.result() == 1
        assert [future.result() for future in later] == [2] * 5
    assert runs == [1, 5]
    assert not batcher.busy


def test_threads_and_loops_share_a_run(pool: ThreadPoolExecutor) -> None:
    batcher: Batcher[int, int] = Batcher(lambda items: [sum(items)] * len(items), pool)

    async def submit() -> int:
        return await batcher.submit(2)

    with ThreadPoolExecutor(2) as callers, started_late(pool):
        calls = [callers.submit(batcher.call, 1), callers.submit(asyncio.run, submit())]
        while len(batcher._waiting) < 2:
            time.sleep(0.001)
    assert [call.result() for call in calls] == [3, 3]


def test_sizes_are_bounded_but_the_largest_goes_alone(pool: ThreadPoolExecutor) -> None:
    runs: list[list[int]] = []

    def work(items: list[int]) -> list[int | Exception]:
        runs.append(items)
        return list(items)

    batcher = Batcher(work, pool, limit=10, size=lambda item: item)
    with ThreadPoolExecutor(5) as callers:
        with started_late(pool):
            calls = []
            for number, item in enumerate((4, 6, 1, 50, 2)):
                calls.append(callers.submit(batcher.call, item))
                while len(batcher._waiting) <= number:
                    time.sleep(0.001)
        assert [call.result() for call in calls] == [4, 6, 1, 50, 2]
    assert runs == [[4, 6], [1], [50], [2]]


def test_a_client_that_left_costs_its_neighbours_nothing(pool: ThreadPoolExecutor) -> None:
    async def submit() -> int:
        batcher: Batcher[int, int] = Batcher(lambda items: list(items), pool)
        with started_late(pool):
            gone = asyncio.ensure_future(batcher.submit(1))
            stays = asyncio.ensure_future(batcher.submit(2))
            await asyncio.sleep(0.01)
            gone.cancel()
        return await stays

    assert run(submit()) == 2


def test_a_shared_result_is_read_once_for_all_of_its_time() -> None:
    reads: list[str] = []

    def read(key: str) -> Any:
        def work() -> str:
            time.sleep(0.05)
            reads.append(key)
            return key

        return work

    shared = SharedResult(60)
    with ThreadPoolExecutor(8) as callers:
        results = list(callers.map(lambda _: shared.get("a", read("a")), range(8)))
    assert (results, reads) == (["a"] * 8, ["a"])
    assert shared.get("b", read("b")) == "b"
    assert reads == ["a", "b"]


def test_nobody_waits_for_a_pool_that_has_ended() -> None:
    began, end = threading.Event(), threading.Event()

    def work(items: list[int]) -> list[int | Exception]:
        began.set()
        end.wait(10)
        return list(items)

    pool = ThreadPoolExecutor(1)
    batcher = Batcher(work, pool)
    with ThreadPoolExecutor(3) as callers:
        first = callers.submit(batcher.call, 1)
        began.wait(10)
        second = callers.submit(batcher.call, 2)
        while len(batcher._waiting) < 1:
            time.sleep(0.001)
        pool.shutdown(wait=False)
        end.set()
        assert first.result(10) == 1
        assert isinstance(second.exception(10), StoreUnavailable)
        for _ in range(2):
            assert isinstance(callers.submit(batcher.call, 3).exception(10), StoreUnavailable)


def test_too_few_results_are_an_error_of_all(pool: ThreadPoolExecutor) -> None:
    batcher: Batcher[int, int] = Batcher(lambda _: [], pool)
    for _ in range(2):
        with pytest.raises(ValueError, match="zip"):
            batcher.call(1)


def test_no_run_is_empty_and_no_two_are_at_once() -> None:
    runs: list[int] = []
    busy = threading.Lock()

    def work(items: list[int]) -> list[int | Exception]:
        assert busy.acquire(blocking=False)
        runs.append(len(items))
        busy.release()
        return list(items)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool, ThreadPoolExecutor(3) as callers:
            batcher = Batcher(work, pool)
            list(callers.map(batcher.call, range(6000)))
    finally:
        sys.setswitchinterval(interval)
    assert (sum(runs), min(runs)) == (6000, 1)


@pytest.mark.parametrize("error", [ValueError(), StopIteration(), KeyboardInterrupt()])
def test_whatever_ends_the_work_its_callers_and_those_after_them_are_answered(
    pool: ThreadPoolExecutor, error: BaseException
) -> None:
    def work(items: list[int]) -> list[int | Exception]:
        if 0 in items:
            raise error
        return list(items)

    async def submit() -> list[Any]:
        batcher = Batcher(work, pool, limit=2)
        with started_late(pool):
            calls = [asyncio.ensure_future(batcher.submit(item)) for item in (0, 1, 2)]
            await asyncio.sleep(0.01)
        every = asyncio.gather(*calls, return_exceptions=True)
        return await asyncio.wait_for(every, 10)

    *lost, third = run(submit())
    assert all(isinstance(result, Exception) for result in lost)
    assert third == 2


def test_an_item_without_a_size_is_an_error_of_its_caller_alone(pool: ThreadPoolExecutor) -> None:
    batcher: Batcher[Any, Any] = Batcher(lambda items: list(items), pool, size=len)
    with ThreadPoolExecutor(1) as callers:
        assert isinstance(callers.submit(batcher.call, 7).exception(10), TypeError)
        assert callers.submit(batcher.call, "seven").result(10) == "seven"


def test_results_that_cannot_be_delivered_hold_up_nobody_else(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(*_: Any) -> None:
        monkeypatch.undo()
        raise MemoryError

    monkeypatch.setattr("ingest.batcher._deliver", fail_once)
    batcher: Batcher[int, int] = Batcher(lambda items: list(items), pool)
    batcher._join(1, Future())
    eventually(lambda: not batcher.busy, 10)
    with ThreadPoolExecutor(1) as callers:
        assert callers.submit(batcher.call, 2).result(10) == 2
