"""What state each of the gateway's circuits has, which ingest services answer, and since when.

Every few seconds this service sends a probe through each circuit, which tells whether an ingest
service answered through it. And it reads `/api/v1/system`, through the circuit of the reads: each
answer names the ingest service that it comes from.
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from monitoring.gateway import BUSY, CLOSED, UNKNOWN, GatewayResponse, GatewayUnavailable
from monitoring.memory import memory_usage
from monitoring.verdict import HALF_OPEN, Verdict, judge

CIRCUITS = ("ingest", "reads")  # as the gateway names them
PATH = "/api/v1/system"
# A service counts as silent when it gave no answer for this many rounds ...
SILENT_ROUNDS = 4
# ... and this many extra requests did not reach it either: the gateway takes turns between the
# services, but other clients' requests shift the turns, so one request may miss a healthy service.
EXTRA_REQUESTS = 12
# A service that was removed on purpose is no longer reported as missing after this time.
FORGET_SECONDS = 15 * 60
# For so many rounds a service's report is taken for the present.
FRESH_ROUNDS = 2
# Another verdict counts when two checks in a row find it; the second comes after this time.
DOUBT_SECONDS = 1.0
MAX_READS = 1440  # one hour, at two reads in 5 s

log = logging.getLogger(__name__)


@dataclass
class Service:
    """One ingest service as it last answered; times in unix seconds."""

    seen_at: float
    latency_ms: float
    report: dict[str, Any]
    answers: bool = True
    since: float = 0.0  # `answers` has its value since then


@dataclass
class Circuit:
    """One circuit of the gateway as its last probe found it."""

    state: str = UNKNOWN
    detail: str = "nothing was read yet"
    since: float = field(default_factory=time.time)  # it has its state since then


@dataclass
class HealthMonitor:
    """Checks circuits and ingest services in a loop.

    `get` reads a path through the gateway, `probe` returns the state of a circuit, and why.
    """

    get: Callable[[str], GatewayResponse]
    probe: Callable[[str], tuple[str, str]]
    every_seconds: float = 5.0
    clock: Callable[[], float] = time.time
    circuits: dict[str, Circuit] = field(
        default_factory=lambda: {name: Circuit() for name in CIRCUITS}
    )
    services: dict[str, Service] = field(default_factory=dict)
    reads: deque[tuple[int, float | None]] = field(default_factory=lambda: deque(maxlen=MAX_READS))
    verdict: Verdict | None = None
    doubt: Verdict | None = None  # what the last check found instead
    changing: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Check in a thread of its own, as long as the process lives."""

        def run() -> None:
            while True:
                try:
                    self.check()
                except Exception:
                    log.exception("the ingest services were not checked")
                pause = min(DOUBT_SECONDS, self.every_seconds)
                time.sleep(pause if self.doubt else self.every_seconds)

        threading.Thread(target=run, name="health-monitor", daemon=True).start()

    def check(self) -> None:
        """Probe, and read twice; while a service is silent for some rounds, read more often."""
        probed = {name: self.probe(name) for name in self.circuits}
        # Twice: the probe takes a turn as well, so of two services one read meets always the same.
        is_read = self._read() and self._read()
        for _ in range(EXTRA_REQUESTS):
            if not is_read or all(map(self._seen_lately, self.services.values())):
                break
            is_read = self._read()
        reads = probed["reads"][0]
        with self.changing:
            if is_read or reads != BUSY:  # busy: a service that cannot be asked is not silent
                self._update_services(is_open=not is_read and reads != CLOSED)
            answers = [one.answers for one in self.services.values()]
            for name, (state, detail) in probed.items():
                # Services are read: when none answers, that says nothing of the detections.
                is_missing = not all(answers) and (name == "reads" or any(answers))
                if state == CLOSED and is_missing:
                    state, detail = HALF_OPEN, "not every ingest service answers"
                circuit = self.circuits[name]
                if state != circuit.state:
                    circuit.since = self.clock()
                circuit.state, circuit.detail = state, detail
            self._judge()

    def report(self) -> dict[str, Any]:
        """Return all that is known, for the screen "System"."""
        with self.changing:
            return {
                "now": self.clock(),
                "verdict": self.verdict._asdict() if self.verdict else None,
                "circuits": {name: asdict(circuit) for name, circuit in self.circuits.items()},
                "services": self._services(),
                "monitoring": {"memory": memory_usage()},
                "reads": [{"timestamp": when, "latency_ms": took} for when, took in self.reads],
            }

    def _services(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "answers": service.answers,
                "since": service.since,
                "seen_at": service.seen_at,
                "latency_ms": service.latency_ms,
                **{key: service.report.get(key) for key in ("queued", "memory", "mongodb")},
                "set_aside": service.report.get("set_aside", 0),
            }
            for name, service in sorted(self.services.items())
        ]

    def _judge(self) -> None:
        """Come to a verdict; another than before has to be found twice, so that none flaps."""
        states = {name: circuit.state for name, circuit in self.circuits.items()}
        after = self.clock() - FRESH_ROUNDS * self.every_seconds
        found = judge(states, self._services(), after)
        known = [one for one in (self.verdict, self.doubt) if one]
        same = next((one for one in known if one.what == found.what), None)
        since = found.since or (same.since if same else self.clock())
        if same or not self.verdict:
            self.verdict, self.doubt = found._replace(since=since), None
        else:
            self.doubt = found._replace(since=since)

    def _read(self) -> bool:
        """Read one service's report; return whether there was one."""
        began, now = time.monotonic(), self.clock()
        try:
            response = self.get(PATH)
            report = json.loads(response.body) if response.status == 200 else {}
            name = str(report["service"])
        except (GatewayUnavailable, ValueError, KeyError, TypeError) as error:
            log.debug("%s: %r", PATH, error)
            self._add_read(int(now), None)
            return False
        took_ms = round((time.monotonic() - began) * 1000, 1)
        self._add_read(int(now), took_ms)
        with self.changing:
            service = self.services.setdefault(name, Service(now, took_ms, report, since=now))
            service.seen_at, service.latency_ms, service.report = now, took_ms, report
        return True

    def _add_read(self, now: int, took_ms: float | None) -> None:
        with self.changing:
            self.reads.append((now, took_ms))

    def _seen_lately(self, service: Service) -> bool:
        return self.clock() - service.seen_at <= SILENT_ROUNDS * self.every_seconds

    def _update_services(self, *, is_open: bool) -> None:
        """Set whether each service answers, and since when: while all is open, none does."""
        now = self.clock()
        for name, service in list(self.services.items()):
            answers = not is_open and self._seen_lately(service)
            if answers != service.answers:
                service.answers = answers
                service.since = now if answers else service.seen_at
            if not is_open and service.seen_at < now - FORGET_SECONDS:
                del self.services[name]
