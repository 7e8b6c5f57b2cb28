"""What state each of the gateway's circuits has, which ingest services answer, and since when.

Every few seconds this service sends a probe through each circuit, which tells whether an ingest
service answered through it. And it reads `/api/v1/system` of each ingest service, at an address of
the gateway for each: through a circuit, one that answers late would be hidden by the others.
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from common.memory import memory
from monitoring.gateway import CLOSED, UNKNOWN, GatewayResponse, GatewayUnavailable
from monitoring.verdict import HALF_OPEN, Verdict, judge

CIRCUITS = ("ingest", "reads")  # as the gateway names them
PATH = "/_service/{}"  # with a number from 0 on
MAX_SERVICES = 64
# A service that was removed on purpose is no longer reported as missing after this time.
FORGET_SECONDS = 15 * 60
# For so many rounds a service's report is taken for the present.
FRESH_ROUNDS = 2
# Another verdict counts when two checks in a row find it; the second comes after this time. So a
# service that hangs is told within 10 s, while somebody looks: 5 between checks, 1.5 in each
# (`/_service/` in NGINX).
DOUBT_SECONDS = 1.0
MAX_READS = 1440  # one hour, at two reads in 5 s
# While nobody has looked for so long, the checks are this much rarer: they are most of what an idle
# stack takes. Whoever looks then has the next check begin at once.
QUIET_SECONDS, SELDOM = 60.0, 6

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

    `get` reads a path through the gateway, `probe` returns the state of a circuit, and why, and
    `warnings` what an operator has to see to at the gateway.
    """

    get: Callable[[str], GatewayResponse]
    probe: Callable[[str], tuple[str, str]]
    every_seconds: float = 5.0
    warnings: Callable[[], list[dict[str, str]]] = list
    clock: Callable[[], float] = time.time
    circuits: dict[str, Circuit] = field(
        default_factory=lambda: {name: Circuit() for name in CIRCUITS}
    )
    services: dict[str, Service] = field(default_factory=dict)
    reads: deque[tuple[int, float | None]] = field(default_factory=lambda: deque(maxlen=MAX_READS))
    warned: list[dict[str, str]] = field(default_factory=list)
    verdict: Verdict | None = None
    doubt: Verdict | None = None  # what the last check found instead
    changing: threading.Lock = field(default_factory=threading.Lock)
    looked_at: float = field(default_factory=time.monotonic)
    wanted: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Check in a thread of its own, as long as the process lives."""

        def run() -> None:
            while True:
                try:
                    self.check()
                except Exception:
                    log.exception("the ingest services were not checked")
                self.wanted.wait(self.pause)
                self.wanted.clear()

        threading.Thread(target=run, name="health-monitor", daemon=True).start()

    @property
    def pause(self) -> float:
        """Return how many seconds lie between two checks, as it is now."""
        if self.doubt:
            return min(DOUBT_SECONDS, self.every_seconds)
        return self.every_seconds * (SELDOM if self._is_quiet() else 1)

    def look(self) -> None:
        """Note that somebody looks."""
        was_quiet, self.looked_at = self._is_quiet(), time.monotonic()
        if was_quiet:
            self.wanted.set()

    def _is_quiet(self) -> bool:
        return time.monotonic() - self.looked_at > QUIET_SECONDS

    def check(self) -> None:
        """Probe each circuit, and read how each service is."""
        probed = {name: self.probe(name) for name in self.circuits}
        seen = self._read_all()
        warnings = self.warnings()
        with self.changing:
            self.warned = warnings
            self._update_services(seen)
            answers = [service.answers for service in self.services.values()]
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
                "warnings": self.warned,
                "monitoring": {"memory": memory()._asdict()},
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
                **{
                    key: service.report.get(key)
                    for key in ("queued", "memory", "mongodb", "owntracks")
                },
                "set_aside": service.report.get("set_aside", 0),
                "unnoted_seconds": service.report.get("unnoted_seconds", 0),
                "late_seconds": service.report.get("late_seconds", 0),
                "warnings": service.report.get("warnings", []),
            }
            for name, service in sorted(self.services.items())
        ]

    def _judge(self) -> None:
        """Come to a verdict; another than before has to be found twice, so that none flaps."""
        states = {name: circuit.state for name, circuit in self.circuits.items()}
        after = self.clock() - FRESH_ROUNDS * self.every_seconds
        verdict = judge(states, self._services(), after, self.warned)
        known = [verdict for verdict in (self.verdict, self.doubt) if verdict]
        same = next((earlier for earlier in known if earlier.what == verdict.what), None)
        since = verdict.since or (same.since if same else self.clock())
        if same or not self.verdict:
            self.verdict, self.doubt = verdict._replace(since=since), None
        else:
            self.doubt = verdict._replace(since=since)

    def _read_all(self) -> set[str]:
        """Read the report of each service; return the names of those that gave one."""
        seen: set[str] = set()
        for number in range(MAX_SERVICES):
            path, began, now = PATH.format(number), time.monotonic(), self.clock()
            try:
                response = self.get(path)
                if response.status == 404 and number:
                    break  # there are no more
                report = json.loads(response.body) if response.status == 200 else {}
                name = str(report["service"])
            except (GatewayUnavailable, ValueError, KeyError, TypeError) as error:
                log.debug("%s: %r", path, error)
                with self.changing:
                    self.reads.append((int(now), None))
                if error.__cause__:
                    break  # the gateway itself does not answer
                continue
            took_ms = round((time.monotonic() - began) * 1000, 1)
            seen.add(name)
            with self.changing:
                self.reads.append((int(now), took_ms))
                service = self.services.setdefault(name, Service(now, took_ms, report, since=now))
                service.seen_at, service.latency_ms, service.report = now, took_ms, report
        return seen

    def _update_services(self, seen: set[str]) -> None:
        """Set whether each service answers, and since when; while none does, none is forgotten."""
        now = self.clock()
        for name, service in list(self.services.items()):
            answers = name in seen
            if answers != service.answers:
                service.answers = answers
                service.since = now if answers else service.seen_at
            if seen and service.seen_at < now - FORGET_SECONDS:
                del self.services[name]
