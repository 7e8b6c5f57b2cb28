"""Every metric: what it tells, in which unit, and which part tells it; how Prometheus reads it.

`/metrics` of each part and docs/metrics.md are made from this table. No label ever names a person,
a beacon or a place, and each has few values.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
# Who tells it; the gateway's are read at the monitoring service.
SERVICES, INGEST, MONITORING, GATEWAY = "each service", "ingest", "monitoring", "gateway"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# The upper ends of the parts of a histogram. Those of seconds reach above what an alarm looks for,
# and to what the gateway waits at most.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
DETECTIONS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
STATUSES = ("2xx", "3xx", "4xx", "5xx")


class Metric(NamedTuple):
    """One metric; a name's end says its unit: `_seconds`, `_bytes`, else a count."""

    name: str
    kind: str
    part: str
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()  # of a histogram


METRICS: list[Metric] = []


def _metric(name: str, kind: str, part: str, text: str, *labels: str) -> Metric:
    bounds = () if kind != HISTOGRAM else SECONDS if name.endswith("_seconds") else DETECTIONS
    METRICS.append(Metric(f"waymark_{name}", kind, part, text, labels, bounds))
    return METRICS[-1]


def _service(name: str, kind: str, text: str, *labels: str) -> Metric:
    return _metric(name, kind, SERVICES, text, *labels)


def _ingest(name: str, kind: str, text: str, *labels: str) -> Metric:
    return _metric(name, kind, INGEST, text, *labels)


def _monitoring(name: str, text: str, *labels: str) -> Metric:
    return _metric(name, GAUGE, MONITORING, text, *labels)


def _gateway(name: str, kind: str, text: str, *labels: str) -> Metric:
    return _metric(name, kind, GATEWAY, text, *labels)


INFO = _service("info", GAUGE, "1, for the name and the version", "service", "version")
STARTED = _service("start_time_seconds", GAUGE, "Unix time at which the service started")
CPU = _service("cpu_seconds_total", COUNTER, "CPU time that the service took")
MEMORY = _service("memory_used_bytes", GAUGE, "Memory that cannot be given back")
MEMORY_LIMIT = _service("memory_limit_bytes", GAUGE, "The limit of that; absent without one")
REQUESTS = _ingest("requests_total", COUNTER, "Requests that were answered", "kind", "status")
REQUEST_SECONDS = _ingest(
    "request_seconds", HISTOGRAM, "Time until an answer began to leave", "kind"
)
DETECTIONS_TAKEN = _ingest(
    "detections_total", COUNTER, "Detections that came in, by what became of them", "outcome"
)
GROUPS = _ingest("group_detections", HISTOGRAM, "Detections that were stored together")
LAST_DETECTION = _ingest(
    "last_detection_timestamp_seconds",
    GAUGE,
    "Unix time of the last that was taken; absent until there is one",
)
SPOOL = _ingest("spool_detections", GAUGE, "Detections that wait for the database")
SPOOL_AGE = _ingest("spool_age_seconds", GAUGE, "How long the first of them has waited; else 0")
SPOOL_ROOM = _ingest("spool_room_detections", GAUGE, "How many more may wait")
SET_ASIDE = _ingest("set_aside_detections", GAUGE, "Damaged or refused ones that were set aside")
SPOOL_DISK = _ingest("spool_disk_free_bytes", GAUGE, "Room on the disk of the spool")
HISTORY_READS = _ingest(
    "history_reads_total",
    COUNTER,
    "Windows of histories, by whether memory had them: hit, miss",
    "cache",
)
NOTES_LAG = _ingest(
    "notes_lag_seconds", GAUGE, "Age of the oldest detection that positions have not noted"
)
POSITIONS_LATE = _ingest(
    "positions_late_seconds", GAUGE, "How long not everybody's position was told in time; else 0"
)
DATABASE_UP = _ingest("database_up", GAUGE, "1 while all of the database answers, else 0")
DATABASE_DEGRADED = _ingest(
    "database_degraded", GAUGE, "1 while a shard, or all of it, took no detections, else 0"
)
DATABASE_SECONDS = _ingest(
    "database_ping_seconds", GAUGE, "How long that took; absent while it is 0"
)
REPLICATION_LAG = _ingest(
    "replication_lag_seconds",
    GAUGE,
    "How far the slowest member is behind; absent with one member, and behind routers",
)
PEOPLE_HEARD = _ingest(
    "people_heard", GAUGE, "People of whom the last 5 minutes have a detection that is noted"
)
WARNINGS = _ingest(
    "operator_warnings", GAUGE, "How many things an operator has to see to; System says which"
)

SERVICE_UP = _monitoring("service_up", "1 while an ingest service answers, else 0", "service")
CIRCUIT = _monitoring(
    "circuit_state",
    "1 for the state that a circuit has, 0 for the others",
    "circuit",
    "state",
)
GATEWAY_UP = _monitoring("gateway_up", "1 while the gateway tells its own metrics, else 0")
HEALTHY = _monitoring("healthy", "1 while the page says that everything is healthy, else 0")
ROWS = _monitoring(
    "stored_detections",
    "Detections by shard; `row`, and `sealed` in blocks. What was just sealed is in both",
    "shard",
    "form",
)
STORED = _monitoring("stored_bytes", "What they take on the disk of a shard", "shard")
INDEXES = _monitoring("index_bytes", "What their indexes take there", "shard")
DISK_FREE = _monitoring("disk_free_bytes", "Room on the disk of the database that has the least")
DISK_LEFT = _monitoring(
    "disk_left_seconds",
    "How long that disk lasts at the rate of now; absent where nobody can tell, or for ever",
)
ARRIVING = _monitoring("detections_a_day", "Detections that come in a day; absent on the first")
BACKUP = _monitoring(
    "backup_last_success_timestamp_seconds",
    "Unix time at which the last whole backup ended; absent until there is one",
)
BACKUP_FAILED = _monitoring(
    "backup_failed", "1 when the last backup failed, else 0; absent where none was ever made"
)
BACKUP_SCHEDULED = _monitoring(
    "backup_scheduled", "1 where a schedule makes backups, else 0; absent likewise"
)

GATEWAY_REQUESTS = _gateway(
    "gateway_requests_total", COUNTER, "Requests that the gateway answered", "kind", "status"
)
GATEWAY_SECONDS = _gateway(
    "gateway_request_seconds",
    HISTOGRAM,
    "Time from the first byte of a request to the last of its answer",
    "kind",
)
REFUSED = _gateway(
    "gateway_refused_total",
    COUNTER,
    "Requests that it refused: `open` circuit, all places `busy`, one `client` asked too much",
    "reason",
)
CERTIFICATE = _gateway(
    "certificate_expiry_timestamp_seconds",
    GAUGE,
    "Unix time at which the certificate expires; absent without one",
)


class Histogram:
    """Counts values by their size; not for several threads at once."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Requests:
    """Counts answers by kind and status, and how long they took; for one thread, as a loop is one.

    All begin at 0: of a counter that begins at 1 Prometheus does not see the first.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        self._of_kind = {kind: (Histogram(SECONDS), [0] * len(STATUSES)) for kind in kinds}

    def observe(self, kind: str, status: int, seconds: float) -> None:
        """Count an answer; `status` is 200 to 599."""
        histogram, statuses = self._of_kind[kind]
        histogram.observe(seconds)
        statuses[status // 100 - 2] += 1

    def write(self, page: "Page", counts: Metric, seconds: Metric) -> None:
        """Write all of it."""
        for kind, (histogram, statuses) in self._of_kind.items():
            for status, count in zip(STATUSES, statuses, strict=True):
                page.add(counts, count, kind, status)
            page.add_histogram(seconds, histogram, kind)


class Page:
    """What one part tells, in Prometheus's text format 0.0.4."""

    def __init__(self) -> None:
        self._lines: dict[Metric, list[str]] = {}

    def add(self, metric: Metric, value: float | None, *labels: str) -> None:
        """Add a value with those labels; None is not told."""
        if value is not None:
            self._add(metric, "", zip(metric.labels, labels, strict=True), value)

    def add_histogram(self, metric: Metric, histogram: Histogram, *labels: str) -> None:
        """Add a histogram with those labels."""
        named, count = list(zip(metric.labels, labels, strict=True)), 0
        ends = [*(f"{bound:g}" for bound in histogram.bounds), "+Inf"]
        for end, more in zip(ends, histogram.counts, strict=True):
            count += more
            self._add(metric, "_bucket", [*named, ("le", end)], count)
        self._add(metric, "_sum", named, histogram.total)
        self._add(metric, "_count", named, count)

    def text(self) -> str:
        """Return the whole text."""
        lines = []
        for metric, samples in self._lines.items():
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
            lines += samples
        return "\n".join([*lines, ""])

    def _add(
        self, metric: Metric, suffix: str, labels: Iterable[tuple[str, str]], value: float
    ) -> None:
        named = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
        shown = f"{{{named}}}" if named else ""
        sample = f"{metric.name}{suffix}{shown} {value!r}"
        self._lines.setdefault(metric, []).append(sample)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
