"""What this service observes of the others: who answers, how fast, and since when.

NGINX does not tell the state of its circuit. So the gateway is asked every few seconds, and the
answers, which name the ingest service they come from, are counted.
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from monitoring.keeper import CLOSED, UNKNOWN, Answer, GatewayUnavailable
from monitoring.memory import memory

HALF_OPEN = "half-open"
PATH = "/api/v1/system"
# A service is silent when it was not met in so many rounds, although the gateway was asked often
# enough after that: it takes turns, but other requests take turns as well.
SILENT_ROUNDS = 4
SEARCH = 12
# A service that was taken away on purpose stops being missed.
FORGET_SECONDS = 15 * 60
KEPT_READS = 720  # an hour at one in 5 s

log = logging.getLogger(__name__)


@dataclass
class Service:
    """One ingest service as it was last met; times in unix seconds."""

    seen_at: float
    latency_ms: float
    said: dict[str, Any]
    answers: bool = True
    since: float = 0.0


@dataclass
class Observer:
    """Asks again and again; `get` reads an address of the gateway, as `Gateway.get` does."""

    get: Callable[[str], Answer]
    every_seconds: float = 5.0
    clock: Callable[[], float] = time.time
    circuit: str = UNKNOWN
    detail: str = "nothing was read yet"
    since: float = field(default_factory=time.time)
    services: dict[str, Service] = field(default_factory=dict)
    reads: deque[tuple[int, float | None]] = field(default_factory=lambda: deque(maxlen=KEPT_READS))
    changing: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Observe in a thread of its own, as long as the process lives."""

        def run() -> None:
            while True:
                try:
                    self.observe()
                except Exception:
                    log.exception("the ingest services were not observed")
                time.sleep(self.every_seconds)

        threading.Thread(target=run, name="observer", daemon=True).start()

    def observe(self) -> None:
        """Ask once, and more often when a service was not met for a while."""
        state, detail = self._ask()
        for _ in range(SEARCH):
            if state != CLOSED or not self._missed():
                break
            state, detail = self._ask()
        with self.changing:
            self._judge(state, detail)

    def report(self) -> dict[str, Any]:
        """Return all that is known, for the page."""
        with self.changing:
            services = [
                {
                    "name": name,
                    "answers": service.answers,
                    "since": service.since,
                    "seen_at": service.seen_at,
                    "latency_ms": service.latency_ms,
                    **{key: service.said.get(key) for key in ("queued", "memory", "mongodb")},
                }
                for name, service in sorted(self.services.items())
            ]
            return {
                "now": self.clock(),
                "circuit": {"state": self.circuit, "since": self.since, "detail": self.detail},
                "services": services,
                "monitoring": {"memory": memory()},
                "reads": [{"timestamp": when, "latency_ms": took} for when, took in self.reads],
            }

    def _ask(self) -> tuple[str, str]:
        """Read once; return what that says of the circuit."""
        began, now = time.monotonic(), self.clock()
        try:
            answer = self.get(PATH)
            said = json.loads(answer.body) if answer.status == 200 else {}
            name = str(said["service"])
        except GatewayUnavailable as error:
            self._note(int(now), None)
            return error.circuit, str(error)
        except (ValueError, KeyError, TypeError) as error:
            self._note(int(now), None)
            return UNKNOWN, f"{PATH} was not understood: {error!r}"
        took_ms = round((time.monotonic() - began) * 1000, 1)
        self._note(int(now), took_ms)
        with self.changing:
            known = self.services.setdefault(name, Service(now, took_ms, said, since=now))
            known.seen_at, known.latency_ms, known.said = now, took_ms, said
        return CLOSED, ""

    def _note(self, now: int, took_ms: float | None) -> None:
        with self.changing:
            self.reads.append((now, took_ms))

    def _missed(self) -> list[str]:
        return [name for name, service in self.services.items() if not self._heard(service)]

    def _heard(self, service: Service) -> bool:
        return self.clock() - service.seen_at <= SILENT_ROUNDS * self.every_seconds

    def _judge(self, state: str, detail: str) -> None:
        """Tell the state of each service and of the circuit, and since when."""
        now = self.clock()
        for name, service in list(self.services.items()):
            answers = state == CLOSED and self._heard(service)
            if answers != service.answers:
                service.answers = answers
                service.since = now if answers else service.seen_at
            if not answers and service.seen_at < now - FORGET_SECONDS and state == CLOSED:
                del self.services[name]
        if state == CLOSED and not all(service.answers for service in self.services.values()):
            state, detail = (
                HALF_OPEN,
                "not every ingest service answers; the gateway tries it again",
            )
        if state != self.circuit:
            self.circuit, self.since = state, now
        self.detail = detail
