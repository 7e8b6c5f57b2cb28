"""What the health monitor concludes from which services answer it."""

import json

from monitoring.gateway import GatewayResponse, GatewayUnavailable
from monitoring.health_monitor import FORGET_SECONDS, SILENT_ROUNDS, HealthMonitor


class Turns:
    """A gateway that takes turns among services; nobody is there when none is left."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.requests = 0
        self.now = 1000.0
        self.monitor = HealthMonitor(self.get, clock=lambda: self.now)
        self.monitor.since = self.now

    def get(self, _: str) -> GatewayResponse:
        self.requests += 1
        if not self.names:
            raise GatewayUnavailable("open", "the gateway answered 503")
        self.names.append(self.names.pop(0))
        report = {
            "service": self.names[-1],
            "queued": 3,
            "memory": {},
            "mongodb": {"reachable": True},
        }
        return GatewayResponse(200, json.dumps(report).encode(), "", self.now)

    def after(self, seconds: float) -> str:
        """Check for a while, as often as the service would; return the circuit's state."""
        for _ in range(max(1, int(seconds // 5))):
            self.now += min(seconds, 5)
            self.monitor.check()
        return self.monitor.circuit

    def answering(self) -> dict[str, bool]:
        services = self.monitor.report()["services"]
        return {service["name"]: service["answers"] for service in services}


def test_when_every_service_answers_the_circuit_is_closed() -> None:
    turns = Turns("ingest-1", "ingest-2")
    assert turns.after(5) == "closed"
    since = turns.monitor.since
    assert turns.after(60) == "closed"
    assert turns.answering() == {"ingest-1": True, "ingest-2": True}
    assert turns.monitor.since == since
    report = turns.monitor.report()
    assert report["services"][0]["queued"] == 3
    assert len(report["reads"]) == turns.requests == 13


def test_one_that_is_silent_leaves_it_half_open_until_it_answers_again() -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(20)
    turns.names.remove("ingest-2")
    gone = turns.now
    assert turns.after(SILENT_ROUNDS * 5 + 15) == "half-open"
    assert turns.answering() == {"ingest-1": True, "ingest-2": False}
    missing = turns.monitor.report()["services"][1]
    assert gone - 10 <= missing["since"] <= gone
    turns.names.append("ingest-2")
    assert turns.after(10) == "closed"
    assert turns.answering() == {"ingest-1": True, "ingest-2": True}


def test_one_that_is_missed_by_chance_is_asked_for_again() -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(10)
    for _ in range(20):  # somebody else's requests take every second turn
        turns.get("")
        assert turns.after(5) == "closed"


def test_without_any_it_is_open_since_then() -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(20)
    names, turns.names = turns.names, []
    assert turns.after(5) == "open"
    opened = turns.now
    assert turns.after(30) == "open"
    assert turns.monitor.since == opened
    assert turns.answering() == {"ingest-1": False, "ingest-2": False}
    assert turns.monitor.report()["reads"][-1]["latency_ms"] is None
    turns.names = names
    assert turns.after(10) == "closed"


def test_one_that_was_removed_is_not_reported_for_ever() -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(20)
    turns.names.remove("ingest-2")
    assert turns.after(FORGET_SECONDS + 60) == "closed"
    assert turns.answering() == {"ingest-1": True}


def test_an_answer_without_a_report_is_said() -> None:
    monitor = HealthMonitor(lambda _: GatewayResponse(404, b"{}", "", 0.0))
    monitor.check()
    assert monitor.circuit == "unknown"
    assert "was not understood" in monitor.report()["circuit"]["detail"]
