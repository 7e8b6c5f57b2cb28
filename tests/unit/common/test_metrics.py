"""The table of metrics, and the text that Prometheus reads."""

import re
from pathlib import Path

import pytest

from common import metrics
from common.metrics import (
    COUNTER,
    HISTOGRAM,
    INGEST,
    METRICS,
    SECONDS,
    Histogram,
    Metric,
    Page,
    Requests,
)
from common.routes import KINDS, OTHER, ROUTES, Route, kind_at
from tests.metrics import complaints, samples
from tests.needs import need

# Of what is in a unit, the base one; nothing else ends so.
NOT_BASE = re.compile(r"_(ms|minutes|hours|kb|mb|kib|mib|percent)(_|$)")
# What would have as many values as there are people, beacons, places or requests.
TOO_MANY = {"staff_id", "mac", "beacon", "location", "level", "team", "path", "address", "client"}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_each_is_named_as_prometheus_wants(metric: Metric) -> None:
    assert re.fullmatch(r"waymark_[a-z]+(_[a-z]+)*", metric.name)
    assert not NOT_BASE.search(metric.name)
    assert metric.name.endswith("_total") == (metric.kind == COUNTER)
    assert not metric.name.endswith(("_count", "_sum", "_bucket"))
    assert metric.help
    assert not set("\n\\|") & set(metric.help)
    assert not TOO_MANY & set(metric.labels)
    assert (metric.kind == HISTOGRAM) == bool(metric.bounds)


def test_each_is_there_once() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names) > 20


def test_what_promtool_reads_is_what_was_counted() -> None:
    need("promtool")
    page = Page()
    requests = Requests(KINDS)
    for status, seconds in ((200, 0.004), (202, 0.005), (503, 99.0)):
        requests.observe("ingest", status, seconds)
    requests.write(page, metrics.REQUESTS, metrics.REQUEST_SECONDS)
    page.add(metrics.INFO, 1, 'a "name"\\\n', "1.0")
    page.add(metrics.MEMORY, 1 << 60)
    page.add(metrics.MEMORY_LIMIT, None)
    page.add(metrics.NOTES_LAG, 1e-7)
    assert complaints(page.text()) == ""
    values = samples(page.text())
    assert values['waymark_requests_total{kind="ingest",status="2xx"}'] == 2
    assert values['waymark_requests_total{kind="ingest",status="5xx"}'] == 1
    assert values['waymark_requests_total{kind="batch",status="5xx"}'] == 0
    assert values['waymark_request_seconds_bucket{kind="ingest",le="0.005"}'] == 2
    assert values['waymark_request_seconds_bucket{kind="ingest",le="10"}'] == 2
    assert values['waymark_request_seconds_bucket{kind="ingest",le="+Inf"}'] == 3
    assert values['waymark_request_seconds_count{kind="ingest"}'] == 3
    assert values['waymark_request_seconds_sum{kind="ingest"}'] == pytest.approx(99.009)
    assert values['waymark_info{service="a \\"name\\"\\\\\\n",version="1.0"}'] == 1
    assert values["waymark_memory_used_bytes"] == 1 << 60
    assert "waymark_memory_limit_bytes" not in values


def test_promtool_complains_of_what_is_wrong() -> None:
    need("promtool")
    page = Page()
    page.add(Metric("waymark_errors", COUNTER, INGEST, "Without its end"), 1)
    assert "_total" in complaints(page.text())


def test_a_value_needs_all_its_labels() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Page().add(metrics.REQUESTS, 1, "ingest")


def test_a_value_on_a_bound_is_below_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        histogram.observe(value)
    assert (histogram.counts, histogram.total) == ([2, 2, 1], 7.5)


def test_how_much_is_told_is_bounded() -> None:
    """Whatever is asked for: the kinds of requests are fixed."""
    requests = Requests(KINDS)
    for number in range(1000):
        requests.observe(kind_at(f"/api/v1/staff/{number}/detections"), 200, 0.1)
        requests.observe(kind_at(f"/{number}"), 404, 0.1)
    page = Page()
    requests.write(page, metrics.REQUESTS, metrics.REQUEST_SECONDS)
    assert len(samples(page.text())) == len(KINDS) * (4 + len(SECONDS) + 3)
    assert len(KINDS) < 10


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_each_address_has_its_kind(route: Route) -> None:
    assert kind_at(re.sub(r"<\w+>", "7", route.path)) == route.kind
    assert kind_at(f"{route.path}/more/x") == OTHER


def test_no_document_is_older_than_the_table(root: Path) -> None:
    text = (root / "docs" / "metrics.md").read_text()
    told = re.findall(r"^\| `(waymark_\w+)` \| (\w+) \| ([^|]+) \| ([^|]*) \| (.*) \|$", text, re.M)
    assert told == [metrics_row(metric) for metric in METRICS]


def metrics_row(metric: Metric) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return (metric.name, metric.kind, metric.part, labels, metric.help)
