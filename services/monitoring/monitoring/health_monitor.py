"""Which ingest services answer, how fast, since when, and what that says of the circuit.

NGINX does not tell the state of its circuit. So this service reads `/api/v1/system` through the
gateway every few seconds. Each answer names the ingest service that it comes from.
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from monitoring.gateway import CLOSED, UNKNOWN, GatewayResponse, GatewayUnavailable
from monitoring.memory import memory_usage

HALF_OPEN = "half-open"
PATH = "/api/v1/system"
# A service counts as silent when it gave no answer for this many rounds ...
SILENT_ROUNDS = 4
# ... and this many extra requests did not reach it either: the gateway takes turns between the
# services, but other clients' requests shift the turns, so one request may miss a healthy service.
EXTRA_REQUESTS = 12
# A service that was removed on purpose is no longer reported as missing after this time.
FORGET_SECONDS = 15 * 60
MAX_READS = 720  # one hour, at one read in 5 s

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
class HealthMonitor:
    """Checks the ingest services in a loop; `get` reads a path through the gateway."""

    get: Callable[[str], GatewayResponse]
    every_seconds: float = 5.0
    clock: Callable[[], float] = time.time
    circuit: str = UNKNOWN
    detail: str = "nothing was read yet"
    since: float = field(default_factory=time.time)  # the circuit has its state since then
    services: dict[str, Service] = field(default_factory=dict)
    reads: deque[tuple[int, float | None]] = field(default_factory=lambda: deque(maxlen=MAX_READS))
    changing: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Check in a thread of its own, as long as the process lives."""

        def run() -> None:
            while True:
                try:
                    self.check()
                except Exception:
                    log.exception("the ingest services were not checked")
                time.sleep(self.every_seconds)

        threading.Thread(target=run, name="health-monitor", daemon=True).start()

    def check(self) -> None:
        """Read once; while a known service has not answered for some rounds, read more often."""
        state, detail = self._read()
        for _ in range(EXTRA_REQUESTS):
            if state != CLOSED or all(map(self._seen_lately, self.services.values())):
                break
            state, detail = self._read()
        with self.changing:
            self._update(state, detail)

    def report(self) -> dict[str, Any]:
        """Return all that is known, for the screen "System"."""
        with self.changing:
            services = [
                {
                    "name": name,
                    "answers": service.answers,
                    "since": service.since,
                    "seen_at": service.seen_at,
                    "latency_ms": service.latency_ms,
                    **{key: service.report.get(key) for key in ("queued", "memory", "mongodb")},
                }
                for name, service in sorted(self.services.items())
            ]
            return {
                "now": self.clock(),
                "circuit": {"state": self.circuit, "since": self.since, "detail": self.detail},
                "services": services,
                "monitoring": {"memory": memory_usage()},
                "reads": [{"timestamp": when, "latency_ms": took} for when, took in self.reads],
            }

    def _read(self) -> tuple[str, str]:
        """Read one service's report; return what the read says of the circuit, and why."""
        began, now = time.monotonic(), self.clock()
        try:
            response = self.get(PATH)
            report = json.loads(response.body) if response.status == 200 else {}
            name = str(report["service"])
        except GatewayUnavailable as error:
            self._add_read(int(now), None)
            return error.circuit, str(error)
        except (ValueError, KeyError, TypeError) as error:
            self._add_read(int(now), None)
            return UNKNOWN, f"{PATH} was not understood: {error!r}"
        took_ms = round((time.monotonic() - began) * 1000, 1)
        self._add_read(int(now), took_ms)
        with self.changing:
            service = self.services.setdefault(name, Service(now, took_ms, report, since=now))
            service.seen_at, service.latency_ms, service.report = now, took_ms, report
        return CLOSED, ""

    def _add_read(self, now: int, took_ms: float | None) -> None:
        with self.changing:
            self.reads.append((now, took_ms))

    def _seen_lately(self, service: Service) -> bool:
        return self.clock() - service.seen_at <= SILENT_ROUNDS * self.every_seconds

    def _update(self, state: str, detail: str) -> None:
        """Set the state of each service and of the circuit, and since when each has it."""
        now = self.clock()
        for name, service in list(self.services.items()):
            answers = state == CLOSED and self._seen_lately(service)
            if answers != service.answers:
                service.answers = answers
                service.since = now if answers else service.seen_at
            if not answers and service.seen_at < now - FORGET_SECONDS and state == CLOSED:
                del self.services[name]
        if state == CLOSED and not all(service.answers for service in self.services.values()):
            state = HALF_OPEN
            detail = "not every ingest service answers; the gateway tries it again"
        if state != self.circuit:
            self.circuit, self.since = state, now
        self.detail = detail
