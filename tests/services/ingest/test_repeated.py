"""Work by the clock: when its rounds begin, what ends it, and what is logged of its failures."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from queue import Queue

import pytest

from ingest.errors import StoreUnavailable
from ingest.tasks import repeated
from ingest.tasks.repeated import AT_ONCE, Repeated, Rest
from scripts.processes.waiting import eventually

FOR_EVER = 3600.0
SOON_SECONDS = 30

Make = Callable[..., Repeated]


@pytest.fixture
def make() -> Iterator[Make]:
    """Return what makes and begins some work, which ends with the test."""
    with ExitStack() as held:

        def made(work: Callable[[], Rest | None], *, fair: bool = False) -> Repeated:
            task = Repeated("work", work, "it is not done", 0.01, fair=fair)
            held.callback(task.join)
            held.callback(task.close)
            task.start()
            return task

        yield made


def test_rounds_follow_each_other_until_there_is_no_more_to_do(make: Make) -> None:
    rests = iter([Rest(0), Rest(0.01), Rest(0, 0.01), None])
    task = make(lambda: next(rests))
    task.join()
    assert next(rests, "none is left") == "none is left"


def test_a_rest_can_be_cut_short_but_not_its_least_part(make: Make) -> None:
    woken: Queue[bool] = Queue()
    rests = iter([Rest(0, FOR_EVER), Rest(0, FOR_EVER), Rest(FOR_EVER)])

    def work() -> Rest:
        woken.put(task.is_woken)
        return next(rests)

    task = Repeated("work", work, "it is not done", FOR_EVER)
    task.start(Rest(0, 0.01))
    assert woken.get(timeout=SOON_SECONDS) is False
    for _ in range(2):
        task.wake()
        assert woken.get(timeout=SOON_SECONDS) is True
    task.wake()
    task.start()  # once is enough
    assert woken.empty()
    task.close()
    task.join()
    assert woken.empty()


def test_a_round_under_way_learns_of_the_end(make: Make) -> None:
    begun = threading.Event()

    def work() -> None:
        begun.set()
        assert task.is_closed_after(FOR_EVER)

    task = Repeated("work", work, "it is not done", FOR_EVER)
    task.start()
    assert begun.wait(SOON_SECONDS)
    task.close()
    task.join()


def test_a_fair_one_rests_as_long_as_it_took(make: Make) -> None:
    times: list[float] = []
    enough = threading.Event()

    def work() -> Rest:
        times.append(time.monotonic())
        enough.wait(0.2)
        times.append(time.monotonic())
        return AT_ONCE

    task = make(work, fair=True)
    eventually(lambda: len(times) >= 4, SOON_SECONDS)
    task.close()
    assert times[2] - times[1] >= times[1] - times[0] - 0.01


def test_each_failure_is_logged_once_and_it_goes_on(
    make: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated, "UNFORESEEN", AT_ONCE)
    away, bug = StoreUnavailable("away"), KeyError("bug")
    rounds = iter([away, away, None, away, bug, bug, None])

    def work() -> Rest | None:
        error = next(rounds, "over")
        if isinstance(error, Exception):
            raise error
        return None if error else AT_ONCE

    make(work).join()
    assert [record.getMessage() for record in caplog.records] == [
        "it is not done: away",
        "it is not done: away",
        "it is not done",
        "it is not done",
    ]
