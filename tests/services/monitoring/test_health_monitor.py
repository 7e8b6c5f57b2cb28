"""What the health monitor concludes from which services answer it."""

import json
import time

import pytest

from common import metrics
from monitoring.certificate import LOOK_SECONDS, WARN_SECONDS, Certificate
from monitoring.gateway import GatewayResponse, GatewayUnavailable
from monitoring.health_monitor import FORGET_SECONDS, PATH, QUIET_SECONDS, SELDOM, HealthMonitor


class Turns:
    """A gateway in front of services; what is in `silent` does not answer."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.silent: set[str] = set()
        self.requests = 0
        self.set_aside: dict[str, object] = {}
        self.now = 1000.0
        self.ingest = ""  # the state of the circuit of the detections, where it is another
        self.reads = ""
        self.monitor = HealthMonitor(self.get, self.probe, clock=lambda: self.now)
        for circuit in self.monitor.circuits.values():
            circuit.since = self.now

    def probe(self, circuit: str) -> tuple[str, str]:
        state = self.ingest if circuit == "ingest" else self.reads
        return state or ("closed" if {*self.names} - self.silent else "open"), ""

    def get(self, path: str) -> GatewayResponse:
        [name] = [one for n, one in enumerate(self.names) if path == PATH.format(n)] or [""]
        if not name:
            return GatewayResponse(404, b"{}", "", self.now)
        self.requests += 1
        if name in self.silent:
            raise GatewayUnavailable("open", "the gateway answered 503")
        report = {
            "service": name,
            "queued": 3,
            "memory": {},
            "mongodb": {"reachable": True, "latency_ms": 1.0},
        } | self.set_aside
        return GatewayResponse(200, json.dumps(report).encode(), "", self.now)

    def after(self, seconds: float) -> str:
        """Check for a while, as often as the service would; return how the reads' circuit is."""
        for _ in range(max(1, int(seconds // 5))):
            self.now += min(seconds, 5)
            self.monitor.check()
        return self.state("reads")

    def state(self, circuit: str) -> str:
        return str(self.monitor.report()["circuits"][circuit]["state"])

    def answering(self) -> dict[str, bool]:
        services = self.monitor.report()["services"]
        return {service["name"]: service["answers"] for service in services}


def test_when_every_service_answers_the_circuit_is_closed() -> None:
    turns = Turns("ingest-1", "ingest-2")
    assert turns.after(5) == "closed"
    since = turns.monitor.circuits["reads"].since
    assert turns.after(60) == "closed"
    assert turns.answering() == {"ingest-1": True, "ingest-2": True}
    assert turns.monitor.circuits["reads"].since == since
    report = turns.monitor.report()
    assert report["services"][0]["queued"] == 3
    assert len(report["reads"]) == turns.requests == 2 * 13


def test_one_that_is_silent_leaves_it_half_open_until_it_answers_again() -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(20)
    turns.silent.add("ingest-2")
    gone = turns.now
    assert turns.after(5) == "half-open"
    assert turns.answering() == {"ingest-1": True, "ingest-2": False}
    assert turns.monitor.report()["services"][1]["since"] == gone
    assert turns.monitor.report()["reads"][-1]["latency_ms"] is None
    turns.silent.clear()
    assert turns.after(5) == "closed"
    assert turns.answering() == {"ingest-1": True, "ingest-2": True}


def test_without_any_it_is_open_since_then() -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(20)
    turns.silent.update(turns.names)
    assert turns.after(5) == "open"
    opened = turns.now
    assert turns.after(30) == "open"
    assert turns.monitor.circuits["reads"].since == opened
    assert turns.answering() == {"ingest-1": False, "ingest-2": False}
    assert turns.monitor.report()["reads"][-1]["latency_ms"] is None
    turns.silent.clear()
    assert turns.after(10) == "closed"


def test_one_that_was_removed_is_not_reported_for_ever() -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(20)
    turns.names.remove("ingest-2")
    assert turns.after(FORGET_SECONDS + 60) == "closed"
    assert turns.answering() == {"ingest-1": True}


@pytest.mark.parametrize("state", ["open", "busy", "unknown"])
def test_each_circuit_has_a_state_of_its_own(state: str) -> None:
    turns = Turns("ingest-1", "ingest-2")
    turns.after(20)
    turns.ingest = state
    assert turns.after(5) == "closed"
    assert turns.state("ingest") == state
    assert turns.answering() == {"ingest-1": True, "ingest-2": True}
    turns.ingest, turns.reads = "", state
    assert turns.after(60) == state
    assert turns.state("ingest") == "closed", "detections are taken in while reads hang"
    assert turns.answering() == {"ingest-1": True, "ingest-2": True}


def test_a_report_that_is_none_is_a_failed_read() -> None:
    monitor = HealthMonitor(
        lambda _: GatewayResponse(404, b"{}", "", 0.0), lambda _: ("closed", "")
    )
    monitor.check()
    report = monitor.report()
    assert report["services"] == []
    assert [read["latency_ms"] for read in report["reads"]] == [None]


def test_what_a_service_has_set_aside_is_told_and_none_where_it_does_not_say() -> None:
    turns = Turns("ingest-1")
    turns.after(5)
    assert turns.monitor.report()["services"][0]["set_aside"] == 0
    turns.set_aside = {"set_aside": 3}
    turns.after(5)
    assert turns.monitor.report()["services"][0]["set_aside"] == 3


def test_what_owntracks_sent_is_told_and_null_where_it_is_off() -> None:
    turns = Turns("ingest-1")
    turns.after(5)
    assert turns.monitor.report()["services"][0]["owntracks"] is None
    counts = {"stored": 3, "ignored": {"location": 1}}
    turns.set_aside = {"owntracks": counts}
    turns.after(5)
    assert turns.monitor.report()["services"][0]["owntracks"] == counts


def test_a_certificate_that_expires_is_told_in_time() -> None:
    told = {"ends": "# none"}
    asked: list[str] = []
    now = 1_800_000_000.0

    def text(path: str) -> str:
        asked.append(path)
        if not told["ends"]:
            raise GatewayUnavailable("unknown", "away")
        return f"waymark_other 1\n{told['ends']}\n"

    certificate = Certificate(text, lambda: now)
    turns = Turns("ingest-1")
    turns.monitor.warnings = certificate.warnings

    def says(ends: str) -> tuple[str, str]:
        nonlocal now
        now += LOOK_SECONDS
        told["ends"] = ends
        turns.after(60)
        verdict = turns.monitor.report()["verdict"]
        return verdict["what"], verdict["rest"]

    name = metrics.CERTIFICATE.name
    assert says("# none")[0] != "The certificate expires soon"
    assert asked == ["/_metrics"]
    assert says(f"{name} {now + WARN_SECONDS + 2 * LOOK_SECONDS}")[1] == ""
    what, todo = says(f"{name} {now + 86_400}")
    assert what == "The certificate expires soon"
    assert todo.startswith("It is good until 2027-01-16 08:10 UTC. See why no new one came")
    assert turns.monitor.report()["warnings"] == [{"what": what, "todo": todo}]
    assert says("") == (what, todo) or says("")[1] == ""  # the gateway is away
    assert says(f"{name} {now - 1:.1f}")[0] == "The certificate has expired"


def test_while_nobody_looks_the_services_are_seldom_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor, now = Turns("ingest-1").monitor, time.monotonic()
    monitor.look()
    assert monitor.pause == monitor.every_seconds
    monkeypatch.setattr(time, "monotonic", lambda: now + QUIET_SECONDS + 60)
    assert monitor.pause == SELDOM * monitor.every_seconds
    assert not monitor.wanted.is_set()
    monitor.look()  # then the next check begins at once
    assert monitor.wanted.is_set()
    assert monitor.pause == monitor.every_seconds
