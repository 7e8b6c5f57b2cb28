"""What the service concludes from who answers it."""

import json
from pathlib import Path

from monitoring.keeper import Answer, GatewayUnavailable
from monitoring.memory import memory
from monitoring.observer import FORGET_SECONDS, SILENT_ROUNDS, Observer


class Turns:
    """A gateway that takes turns among services; nobody is there when none is left."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.asked = 0
        self.now = 1000.0
        self.observer = Observer(self.get, clock=lambda: self.now)
        self.observer.since = self.now

    def get(self, _: str) -> Answer:
        self.asked += 1
        if not self.names:
            raise GatewayUnavailable("open", "the gateway answered 503")
        self.names.append(self.names.pop(0))
        said = {
            "service": self.names[-1],
            "queued": 3,
            "memory": {},
            "mongodb": {"reachable": True},
        }
        return Answer(200, json.dumps(said).encode(), "", self.now)

    def after(self, seconds: float) -> str:
        """Observe after a while, as often as the service would; return the circuit's state."""
        for _ in range(max(1, int(seconds // 5))):
            self.now += min(seconds, 5)
            self.observer.observe()
        return self.observer.circuit

    def answering(self) -> dict[str, bool]:
        services = self.observer.report()["services"]
        return {service["name"]: service["answers"] for service in services}


def test_it_meets_every_service_and_the_circuit_is_closed() -> None:
    turns = Turns("ingest-1", "ingest-2")
    assert turns.after(5) == "closed"
    since = turns.observer.since
    assert turns.after(60) == "closed"
    assert turns.answering() == {"ingest-1": True, "ingest-2": True}
    assert turns.observer.since == since
    report = turns.observer.report()
    assert report["services"][0]["queued"] == 3
    assert len(report["reads"]) == turns.asked == 13


def test_one_that_is_silent_leaves_it_half_open_until_it_answers_again() -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(20)
    turns.names.remove("ingest-2")
    gone = turns.now
    assert turns.after(SILENT_ROUNDS * 5 + 15) == "half-open"
    assert turns.answering() == {"ingest-1": True, "ingest-2": False}
    missing = turns.observer.report()["services"][1]
    assert gone - 10 <= missing["since"] <= gone
    turns.names.append("ingest-2")
    assert turns.after(10) == "closed"
    assert turns.answering() == {"ingest-1": True, "ingest-2": True}


def test_one_that_other_requests_kept_from_us_is_looked_for() -> None:
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
    assert turns.observer.since == opened
    assert turns.answering() == {"ingest-1": False, "ingest-2": False}
    assert turns.observer.report()["reads"][-1]["latency_ms"] is None
    turns.names = names
    assert turns.after(10) == "closed"


def test_one_that_was_taken_away_is_not_missed_for_ever() -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(20)
    turns.names.remove("ingest-2")
    assert turns.after(FORGET_SECONDS + 60) == "closed"
    assert turns.answering() == {"ingest-1": True}


def test_an_answer_that_is_none_is_said() -> None:
    observer = Observer(lambda _: Answer(404, b"{}", "", 0.0))
    observer.observe()
    assert observer.circuit == "unknown"
    assert "was not understood" in observer.report()["circuit"]["detail"]


def test_a_container_knows_its_limit(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("anon 600\nfile 7\n")
    assert memory(tmp_path) == {"used_bytes": 600, "limit_bytes": 1000}
    (tmp_path / "memory.max").write_text("max\n")
    alone = memory(tmp_path)
    assert alone["limit_bytes"] is None
    assert alone["used_bytes"] > 1_000_000  # type: ignore[operator]
