"""What the states of circuits, services and database come to."""

from typing import Any

import pytest

from monitoring.health_monitor import HealthMonitor
from monitoring.verdict import HEALTHY, Verdict, judge
from tests.services.monitoring.test_health_monitor import Turns

NOW = 1000.0
WELL = {"ingest": "closed", "reads": "closed"}


def service(name: str, **more: Any) -> dict[str, Any]:
    well: dict[str, Any] = {"answers": True, "since": 900.0, "seen_at": NOW, "queued": 0}
    well |= {
        "set_aside": 0,
        "warnings": [],
        "unnoted_seconds": 18,
        "late_seconds": 0,
        "mongodb": {"reachable": True, "latency_ms": 1.0},
    }
    return {"name": name} | well | more


def away(name: str, **more: Any) -> dict[str, Any]:
    return service(name, mongodb={"reachable": False, "latency_ms": None}, **more)


def partly(name: str) -> dict[str, Any]:
    return service(name, mongodb={"reachable": True, "complete": False, "latency_ms": None})


def slow(name: str, latency_ms: float | None = 300.0) -> dict[str, Any]:
    return service(name, mongodb={"reachable": True, "complete": True, "latency_ms": latency_ms})


def silent(name: str, **more: Any) -> dict[str, Any]:
    return service(name, answers=False, **more)


WARNING = {"what": "This machine's clock is 3 days behind", "todo": "Set the clock."}
ONE, OTHER = service("ingest-1"), service("ingest-2")


@pytest.mark.parametrize(
    ("changed", "services", "what"),
    [
        ({}, [ONE, OTHER], HEALTHY),
        ({}, [], HEALTHY),
        ({}, [service("ingest-1", mongodb=None)], HEALTHY),
        ({"ingest": "unknown", "reads": "unknown"}, [], "The gateway does not answer"),
        ({"ingest": "unknown", "reads": "unknown"}, [ONE], "The gateway does not answer"),
        ({"ingest": "open", "reads": "open"}, [ONE, away("b")], "No ingest service answers"),
        ({"ingest": "open"}, [ONE, OTHER], "Detections are not taken in"),
        ({"ingest": "open", "reads": "busy"}, [ONE], "Detections are not taken in"),
        ({"ingest": "unknown"}, [ONE], "Whether detections are taken in cannot be told"),
        ({"ingest": "unknown", "reads": "open"}, [ONE], "Whether detections are taken in cannot"),
        ({}, [away("ingest-1"), away("ingest-2")], "The database does not answer"),
        ({"reads": "open"}, [away("ingest-1")], "The database does not answer"),
        ({}, [away("ingest-1"), silent("ingest-2")], "The database does not answer"),
        # What one said long ago is no news of the database.
        ({}, [away("ingest-1"), service("ingest-2", seen_at=NOW - 60)], "The database does not"),
        (
            {},
            [away("a", seen_at=NOW - 10), service("b", seen_at=NOW - 60)],
            "The database does not",
        ),
        ({}, [away("ingest-1"), OTHER], "ingest-1 does not reach the database"),
        ({}, [away("a"), away("b"), OTHER], "a and b do not reach the database"),
        ({}, [partly("ingest-1"), OTHER], "A part of the database does not answer"),
        ({}, [partly("ingest-1"), silent("b")], "A part of the database does not answer"),
        ({}, [partly("ingest-1"), away("b")], "A part of the database does not answer"),
        ({}, [away("ingest-1"), silent("b") | {"mongodb": partly("b")["mongodb"]}], "The data"),
        ({"reads": "open"}, [ONE, OTHER], "Nothing can be read"),
        ({}, [silent("ingest-1"), silent("ingest-2")], "Nothing can be read"),
        ({"reads": "unknown"}, [ONE], "Whether anything can be read cannot be told"),
        ({"reads": "half-open"}, [ONE, silent("ingest-2")], "ingest-2 does not answer"),
        ({}, [silent("a"), silent("b"), ONE], "a and b do not answer"),
        ({}, [slow("ingest-1"), slow("ingest-2", None)], "The database is slow"),
        ({}, [slow("ingest-1"), OTHER], HEALTHY),
        ({}, [service("a", late_seconds=6), OTHER], "The database is slow"),
        ({}, [slow("ingest-1"), away("b")], "The database is slow"),
        ({}, [slow("ingest-1"), partly("b")], "A part of the database does not answer"),
        ({}, [slow("ingest-1"), silent("b")], "b does not answer"),
        ({"ingest": "busy", "reads": "busy"}, [ONE], "Busy"),
        ({"ingest": "busy"}, [ONE], "Busy"),
        ({"reads": "busy"}, [ONE], "Busy"),
        ({"reads": "half-open"}, [ONE], "An ingest service does not answer"),
        ({}, [service(name, unnoted_seconds=61) for name in "ab"], "Positions are behind"),
        ({}, [ONE, service("b", unnoted_seconds=61)], HEALTHY),
        ({}, [ONE, service("b", set_aside=3)], "3 set aside in the spool"),
        ({}, [ONE, service("b", set_aside=3, warnings=[WARNING])], WARNING["what"]),
        ({}, [ONE, service("b", queued=7)], "Detections wait to be stored"),
    ],
)
def test_the_worst_is_said_first(
    changed: dict[str, str], services: list[dict[str, Any]], what: str
) -> None:
    # As they are read from answers: other objects than our constants.
    states = {name: "".join(state) for name, state in (WELL | changed).items()}
    assert judge(states, services, NOW - 10).what.startswith(what)


def test_what_waits_is_counted_and_since_when_a_service_is_silent() -> None:
    both = [away("ingest-1", queued=1420), away("ingest-2", queued=4)]
    assert judge(WELL, both, NOW).kept == "1,424 detections are safe on disk."
    assert judge(WELL, [service("a", queued=1)], NOW).kept == "1 detection is safe on disk."
    assert judge(WELL, [ONE, silent("b", since=700.0)], NOW).since == 700.0


def test_how_slow_the_database_is_is_told_as_it_was_measured() -> None:
    def rest(*services: dict[str, Any]) -> str:
        return judge(WELL, services, NOW).rest

    assert rest(slow("a", 1200.4), slow("b", None)).startswith("Its answer took 1200 ms. Det")
    assert rest(slow("a", None)).startswith("It does not answer in time. Detections are taken in")
    assert rest(service("a", late_seconds=40)).startswith("For 40 s it has not told in time where")
    assert "shown all the same" in rest(ONE, silent("b"))
    assert "stored late: the database is slow" in rest(slow("a"), silent("b"))


def verdict_of(monitor: HealthMonitor) -> tuple[str, float]:
    verdict: Verdict | None = monitor.verdict
    assert verdict
    assert verdict.since
    return verdict.what, verdict.since


@pytest.fixture
def turns() -> Turns:
    turns = Turns("ingest-1", "ingest-2")
    turns.set_aside = {"queued": 0}
    turns.after(5)
    return turns


def test_a_single_failure_changes_no_verdict(turns: Turns) -> None:
    well = verdict_of(turns.monitor)
    assert well[0] == HEALTHY
    for state in ("open", "unknown", "busy") * 3:
        turns.ingest = state
        turns.after(5)
        assert verdict_of(turns.monitor) == well
        turns.ingest = ""
        turns.after(5)
        assert verdict_of(turns.monitor) == well
        assert turns.monitor.doubt is None


def test_the_second_in_a_row_does_and_it_is_told_since_the_first(turns: Turns) -> None:
    turns.ingest = "open"
    turns.after(5)
    since = turns.now
    turns.after(5)
    assert verdict_of(turns.monitor) == ("Detections are not taken in", since)
    turns.after(30)
    assert verdict_of(turns.monitor) == ("Detections are not taken in", since)
    turns.ingest = ""
    turns.after(5)
    assert verdict_of(turns.monitor)[0] == "Detections are not taken in"
    back = turns.now
    turns.after(5)
    assert verdict_of(turns.monitor) == (HEALTHY, back)
    assert turns.monitor.report()["verdict"]["what"] == HEALTHY
