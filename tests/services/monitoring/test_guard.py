"""Whom the guard remembers, for how long, and what it says while no ingest service does."""

import json
import threading
from typing import Any

import pytest

from monitoring import guard
from monitoring.gateway import GatewayResponse, GatewayUnavailable
from monitoring.guard import MAX_ASKING, MAX_REMEMBERED, CannotTell, Guard

ANNA = {
    "name": "anna",
    "kind": "person",
    "role": "read",
    "expires_at": None,
    "level": None,
    "team": None,
}


class Door:
    """A guard whose ingest service and clock do as they are told."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked: list[dict[str, str]] = []
        self.known: dict[str, dict[str, Any]] = {}
        self.away = ""
        self.refusal = 401
        self.guard = Guard(self.ask, lambda: self.now)

    def ask(self, path: str, credentials: dict[str, str]) -> GatewayResponse:
        assert path == "/api/v1/session"
        self.asked.append(credentials)
        if self.away:
            raise GatewayUnavailable(self.away, "")
        session = self.known.get(credentials["Authorization"])
        body = json.dumps(session or {}).encode()
        return GatewayResponse(200 if session else self.refusal, body, "", self.now)

    def visitor(self, name: str = "anna") -> guard.Visitor:
        return self.guard.visitor({"Authorization": name})

    def times(self, name: str = "anna") -> int:
        return self.asked.count({"Authorization": name})


@pytest.fixture
def door() -> Door:
    door = Door()
    door.known["anna"] = ANNA
    return door


def test_nobody_without_credentials_is_asked_about(door: Door) -> None:
    assert door.guard.visitor({}) == guard.STRANGER
    assert door.asked == []


def test_who_it_is_as_an_ingest_service_says(door: Door) -> None:
    door.known["wall"] = ANNA | {"name": "wall", "kind": "token", "level": "4", "expires_at": 2000}
    door.known["cleaning"] = ANNA | {"kind": "token", "team": "Cleaning"}
    assert door.visitor("cleaning").team == "Cleaning"
    door.known["ben"] = ANNA | {"role": "admin", "csrf_token": "x"}
    anna, wall, ben = (door.visitor(name) for name in ("anna", "wall", "ben"))
    assert anna == (200, 1000.0, float("inf"), "anna", "person", "read", None, False, (), None)
    assert wall == (200, 1000.0, 2000, "wall", "token", "read", "4", False, (), None)
    assert (ben.role, ben.has_session) == ("admin", True)


def test_it_is_remembered_for_ten_seconds_and_never_longer(door: Door) -> None:
    for when, times in ((1000.0, 1), (1009.9, 1), (1010.0, 2), (1011.0, 2), (-2600.0, 3)):
        door.now = when  # the last: a clock that steps back must keep nothing for ever
        door.visitor()
        assert door.times() == times


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_remembered_too_and_ends(door: Door, status: int) -> None:
    door.refusal = status
    assert [door.visitor("ben").status for _ in range(3)] == [status] * 3
    assert door.times("ben") == 1
    door.known["ben"] = ANNA
    door.now += 10
    assert door.visitor("ben").status == 200
    del door.known["anna"]
    assert door.visitor().status == status
    door.known["anna"] = ANNA
    door.visitor()
    del door.known["ben"]
    door.now += 10
    assert door.visitor("ben").status == status  # and is no reader any more
    door.away = "open"
    door.now += 10
    assert door.visitor("ben").status == status


def test_what_ends_ends_at_once_however_lately_it_was_asked(door: Door) -> None:
    door.known["anna"] = ANNA | {"expires_at": 1005}
    door.now = 1004.9
    assert door.visitor().status == 200
    door.now = 1005.0
    assert door.visitor() == guard.STRANGER
    assert door.times() == 1


@pytest.mark.parametrize("state", ["open", "unknown"])
def test_in_an_outage_what_was_known_holds(door: Door, state: str) -> None:
    door.visitor()
    door.away = state
    door.now += 100_000
    assert door.visitor().name == "anna"
    with pytest.raises(CannotTell):
        door.visitor("ben")


def test_while_the_gateway_is_busy_it_holds_for_twenty_seconds(door: Door) -> None:
    door.visitor()
    door.away = "busy"
    door.now = 1019.9
    assert door.visitor().name == "anna"
    door.now = 1020.0
    with pytest.raises(CannotTell):
        door.visitor()


def test_strangers_crowd_out_no_reader(door: Door) -> None:
    door.visitor()
    for number in range(MAX_REMEMBERED):
        door.visitor(f"stranger {number}")
    door.visitor()
    assert door.times() == 1
    door.visitor("stranger 0")
    assert door.times("stranger 0") == 1
    door.visitor("one more")
    door.visitor("stranger 0")
    assert door.times("stranger 0") == 2  # the first that was asked about is the first forgotten
    door.visitor("stranger 2")
    assert door.times("stranger 2") == 1


def test_who_asks_again_is_not_the_first_forgotten(door: Door) -> None:
    door.visitor("stranger 0")
    for number in range(1, MAX_REMEMBERED):
        door.visitor(f"stranger {number}")
    door.now += 10
    door.visitor("stranger 0")
    door.visitor("one more")
    door.visitor("stranger 0")
    assert door.times("stranger 0") == 2


def test_two_are_asked_about_at_once_and_who_is_new_waits_for_nobody(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "ASK_WAIT_SECONDS", 0.01)
    door.visitor()
    door.visitor("gone")
    door.now += 15
    go, asking = threading.Event(), threading.Semaphore(0)

    def ask(*_: Any) -> GatewayResponse:
        asking.release()
        go.wait(30)
        return GatewayResponse(401, b"", "", 0.0)

    door.guard._ask = ask
    threads = [threading.Thread(target=door.visitor, args=(f"{n}",)) for n in range(MAX_ASKING)]
    for thread in threads:
        thread.start()
        assert asking.acquire(timeout=30)
    with pytest.raises(CannotTell):
        door.visitor("new")
    assert door.visitor().name == "anna"  # for a moment more
    door.now += 5
    with pytest.raises(CannotTell):
        door.visitor()
    go.set()
    for thread in threads:
        thread.join()
    assert door.visitor("new").status == 401


def test_its_numbers_are_what_is_promised_of_a_revocation() -> None:
    # With the 10 s of the ingest services within 30 s.
    assert (guard.REMEMBER_SECONDS, guard.OLD_SECONDS) == (10, 20)
    assert (MAX_ASKING, guard.ASK_WAIT_SECONDS, MAX_REMEMBERED) == (2, 1, 500)
