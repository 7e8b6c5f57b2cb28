"""While memory is short, what takes a megabyte for a moment is done one after the other."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ingest import process, turns
from ingest.process import Memory
from scripts.processes.waiting import eventually

MIB = 2**20


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    _have(monkeypatch, 50 * MIB)


def _have(monkeypatch: pytest.MonkeyPatch, used: int) -> None:
    monkeypatch.setattr(process, "memory", lambda: Memory(used, 64 * MIB))
    monkeypatch.setattr(turns, "_looked_at", -1.0)
    monkeypatch.setattr(turns, "TURN_SECONDS", 60)


def _at_once(pieces: int) -> int:
    """Return how many of some threads were ever at work at the same time."""
    inside, most, lock = 0, 0, threading.Lock()
    together = threading.Event()

    def work() -> None:
        nonlocal inside, most
        for _ in range(pieces):
            with turns.turn():
                with lock:
                    inside += 1
                    most = max(most, inside)
                if most > 1:
                    together.set()
                together.wait(0.05)
                with lock:
                    inside -= 1

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work) for _ in range(4)]:
            done.result(60)
    return most


@pytest.mark.usefixtures("short")
def test_while_memory_is_short_one_piece_is_in_hand() -> None:
    assert _at_once(3) == 1


def test_else_nobody_waits_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    _have(monkeypatch, 40 * MIB)
    assert _at_once(3) > 1


@pytest.mark.usefixtures("short")
def test_a_turn_ends_with_who_gives_up_or_fails() -> None:
    assert list(turns.in_turns(range(10), 4)) == list(range(10))
    numbers = turns.in_turns(range(10), 4)
    assert next(numbers) == 0
    assert turns._one.locked()
    del numbers
    assert not turns._one.locked()
    with pytest.raises(ZeroDivisionError), turns.turn():
        raise ZeroDivisionError
    assert not turns._one.locked()


@pytest.mark.usefixtures("short")
def test_who_waits_for_the_database_holds_up_nobody_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = threading.Event()

    def hang() -> None:
        with turns.turn():
            go_on.wait(60)

    with ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(hang)
        eventually(turns._one.locked, 10)
        monkeypatch.setattr(turns, "TURN_SECONDS", 0.1)
        assert list(turns.in_turns(range(3), 2)) == [0, 1, 2]
        go_on.set()
        hanging.result(60)
