"""What the health monitor makes of the gateway's circuits: the real NGINX's, and a fake one's."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitoring.gateway import Gateway as Reader
from monitoring.health_monitor import HealthMonitor
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway
from tests.upstream import Upstream


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """Run NGINX in front of two fake ingest services that tell their names."""
    gateway = Gateway(tmp_path).start()
    gateway.answer_open()
    for number, upstream in enumerate(gateway.ingest):
        report = {"service": f"ingest-{number + 1}", "queued": 0}
        upstream.answer(200, json.dumps(report).encode(), {"Content-Type": "application/json"})
    yield gateway
    gateway.close()


def monitor_of(url: str) -> HealthMonitor:
    reader = Reader(url, 4)
    return HealthMonitor(reader.get, reader.probe, every_seconds=0.5)


def states(monitor: HealthMonitor) -> tuple[str, str]:
    """Check, and return the states of the circuits of the detections and of the reads."""
    monitor.check()
    circuits = monitor.report()["circuits"]
    return circuits["ingest"]["state"], circuits["reads"]["state"]


def test_with_healthy_services_both_circuits_are_closed(gateway: Gateway) -> None:
    monitor = monitor_of(gateway.url)
    eventually(lambda: (states(monitor), len(monitor.services)) == (("closed", "closed"), 2))


def test_hanging_reads_are_no_word_against_the_detections(gateway: Gateway) -> None:
    monitor = monitor_of(gateway.url)
    eventually(lambda: (states(monitor), len(monitor.services)) == (("closed", "closed"), 2))
    for upstream in gateway.ingest:
        upstream.fault, upstream.faulty_path = "hang", "/api/"
    seen: list[str] = []  # of the circuit of the detections

    def is_told() -> bool:
        ingest, reads = states(monitor)
        seen.append(ingest)
        return reads in ("half-open", "open")

    eventually(is_told, 60)
    assert set(seen) == {"closed"}
    assert gateway.request("POST", "/newbeacondetect").status_code == 200


def test_without_any_service_both_are_open_until_one_is_back(gateway: Gateway) -> None:
    monitor = monitor_of(gateway.url)
    eventually(lambda: states(monitor) == ("closed", "closed"))
    for upstream in gateway.ingest:
        upstream.close()
    eventually(lambda: states(monitor) == ("open", "open"))
    gateway.ingest[0].reopen()
    eventually(lambda: states(monitor)[0] in ("closed", "half-open"), 60)


@pytest.mark.long
def test_services_that_hang_are_no_healthy_ones(gateway: Gateway) -> None:
    monitor = monitor_of(gateway.url)
    eventually(lambda: states(monitor) == ("closed", "closed"))
    for upstream in gateway.ingest:
        upstream.fault = "hang"
    eventually(lambda: states(monitor) == ("open", "open"), 60)


@pytest.mark.parametrize(
    ("status", "header", "state"),
    [
        (200, "closed", "closed"),
        (200, "busy", "busy"),
        (503, "open", "open"),
        (503, "busy", "busy"),
        (503, "", "unknown"),
        (200, "", "unknown"),
        (404, "open", "unknown"),
        (429, "", "unknown"),
    ],
)
def test_a_probe_tells_what_the_gateway_says(
    upstream: Upstream, status: int, header: str, state: str
) -> None:
    upstream.answer(status, b"{}", {"X-Circuit-State": header} if header else {})
    assert Reader(upstream.url, 1).probe("ingest")[0] == state
    assert upstream.requests[0][:2] == ("GET", "/_circuit/ingest")


def test_one_circuit_of_which_nothing_is_known_leaves_the_other(upstream: Upstream) -> None:
    upstream.answer(200, b'{"service": "ingest-1"}', {"X-Circuit-State": "closed"})
    upstream.fault, upstream.faulty_path = "reset", "/_circuit/ingest"
    assert states(monitor_of(upstream.url)) == ("unknown", "closed")


def test_without_a_gateway_both_are_unknown() -> None:
    assert states(monitor_of(f"http://127.0.0.1:{free_port()}")) == ("unknown", "unknown")
