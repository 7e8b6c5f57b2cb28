"""The statistics on samples whose figures are known."""

import math
from pathlib import Path

import pytest

from loadtests import figures, targets
from loadtests.figures import HTTP, VERIFICATION, Row
from loadtests.plans import PLANS, jmeter_delay, requests, until_it_breaks
from loadtests.report.published import AFTER, BEFORE, QUERY, everything, published
from loadtests.shards import people


def row(sent: float, ms: float, error: str = "", due: float | None = None) -> Row:
    return Row("P", "1", "insert", sent if due is None else due, sent, ms, 200, 26, error)


def test_a_summary() -> None:
    rows = [row(number / 10, number + 1.0) for number in range(100)]  # 1 to 100 ms, 10 a second
    rows[3] = rows[3]._replace(error=HTTP)
    rows[4] = rows[4]._replace(error=VERIFICATION, due=rows[4].sent - 0.05)
    summary = figures.summary(rows)
    assert (summary.requests, summary.errors, summary.verification_errors) == (100, 1, 1)
    assert (summary.min, summary.max, summary.mean) == (1, 100, 50.5)
    assert (summary.p50, summary.p99) == (50, 99)
    assert summary.rate == pytest.approx(100 / (9.9 + 0.1))
    assert summary.late_p99_ms == pytest.approx(0, abs=0.001)


def test_a_summary_of_nothing() -> None:
    summary = figures.summary([])
    assert summary.requests == 0
    assert math.isnan(summary.mean)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([5], 0.99, 5), ([1, 2], 0.5, 1), ([3, 1, 2], 0.5, 2), (range(1, 201), 0.99, 198)],
)
def test_percentiles_are_values_that_were_measured(
    values: list[float], share: float, expected: float
) -> None:
    assert figures.percentile(list(values), share) == expected


def test_ratios_are_of_neighbours() -> None:
    assert figures.ratios([10, 20, 90], [5, 5, 10]) == (4, 2, 9)
    assert figures.spread([3, math.nan, 1]) == (2, 1, 3)
    assert math.isnan(figures.spread([]).median)


def test_rows_survive_their_file(tmp_path: Path) -> None:
    rows = [row(0.25, 1.5), row(0.5, 2.5, HTTP)._replace(detail='503 b"a,b"')]
    figures.write_csv(tmp_path / "rows.csv", rows, Row._fields)
    assert figures.read_csv(tmp_path / "rows.csv", Row) == rows


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8080", "http://localhost:1/", "https://[::1]:8443", "http://127.9.9.9"],
)
def test_this_machine_is_a_target(url: str) -> None:
    assert targets.check(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "http://10.0.0.1:8080",
        "http://0.0.0.0",
        "http://127.0.0.1.example.com",
        "http://127.0.0.1@example.com/",
        "http://localhost.example.com",
        "http://[::ffff:8.8.8.8]",
        "http://2130706433",
        "ftp://127.0.0.1",
        "127.0.0.1:8080",
        "",
    ],
)
def test_other_targets_are_refused(url: str) -> None:
    with pytest.raises(targets.ForeignTarget):
        targets.check(url)
    assert url[:4] != "http" or targets.check(url, i_own_this_host=True)


def test_the_plans_rates_are_the_sources() -> None:
    first, second = PLANS["PERF-TP-1"].steps
    assert (requests(first, 60), requests(second, 60)) == (210, 2100)
    assert requests(second, 10) == 350
    assert [sum(count for _, count in step.preload) for step in PLANS["PERF-RT-2"].steps] == [
        600
    ] * 5


def test_staff_0_has_a_fifth_of_the_documents_of_the_last_plan() -> None:
    for name in ("PERF-RT-2-1", "PERF-RT-2-1b"):
        preloads = [rows for step in PLANS[name].steps for rows in step.preload]
        assert sum(count for _, count in preloads) == 9000
        assert sum(count for staff, count in preloads if staff == 0) == 1800


def test_all_passes_are_run_again_with_the_other_five() -> None:
    five = {"PERF-RT-2-1": (0, 1, 2, 3, 4), "PERF-RT-2-1b": (0, 11, 12, 30, 40)}
    for name, staff in five.items():
        steps = PLANS[name].steps
        assert [step.name for step in steps] == [str(total) for total in range(600, 9001, 600)]
        assert [step.preload for step in steps] == [((person, 600),) for person in staff] * 3


def test_the_separation_is_loaded_as_the_source_did() -> None:
    for pages in (1, 10):
        writes, reads = (PLANS[f"SPLIT-{kind}-{pages}"].steps for kind in ("WRITES", "READS"))
        assert [step.staff for step in writes] == [(0,), (1,), (2,), (3,), (4,)]
        assert {step.hacs for step in (*writes, *reads)} == {(0, 2)}


def test_threads_are_divided_over_staff_and_rounds_change_them() -> None:
    assert [step.threads for step in PLANS["PERF-TP-1-1"].steps] == [210, 2100]
    assert {step.staff for step in PLANS["PERF-TP-1-1"].steps} == {(0, 1, 2, 3, 4)}
    rounds = {"PERF-RT-1-1": (0, 1, 2, 3, 4), "PERF-RT-1-1b": (0, 11, 12, 30, 40)}
    for name, staff in rounds.items():
        assert [step.staff for step in PLANS[name].steps] == [(step,) for step in staff]
        assert [step.threads for step in PLANS[name].steps] == [2100, 2520, 2940, 3360, 3780]


def test_every_plan_of_the_source_has_an_open_page() -> None:
    plans = [plan for plan in PLANS.values() if plan.is_the_sources]
    assert all(step.pages for plan in plans for step in plan.steps)
    for pages in (1, 10):
        for name in (f"SPLIT-WRITES-{pages}", f"SPLIT-READS-{pages}"):
            assert {step.pages for step in PLANS[name].steps} == {pages}


def test_every_published_figure_is_of_a_step() -> None:
    known = {(plan.name, step.name) for plan in PLANS.values() for step in plan.steps}
    every = {*published(BEFORE), *published(AFTER)}
    assert every - known == {QUERY}  # the source's first query, which is a form of the old one


def test_20_percent_more_each_time() -> None:
    steps = until_it_breaks(PLANS["PERF-RT-1"].steps)
    threads = [next(steps).threads for _ in range(7)]
    assert threads == [2100, 2520, 2940, 3360, 3780, 4536, 5443]


def test_all_rows_that_the_source_published_are_here() -> None:
    rows = [row for row in everything() if (row.plan, row.step) != QUERY]
    assert len(rows) == 118
    assert all(row.rate and row.min_ms and row.max_ms and row.ms for row in rows)
    assert published(BEFORE)["PERF-RT-2", "1800"].shown() == "4,912 (max 9,094), 12.47/s"
    assert published(AFTER)["PERF-RT-2", "1200"].shown() == "75.4 (max 164)"


@pytest.mark.parametrize(
    ("threads", "rate"), [(210, 3.50), (860, 14.29), (2100, 34.48), (3360, 55.56), (3780, 62.50)]
)
def test_jmeter_rounds_the_delay_between_its_threads(threads: int, rate: float) -> None:
    step = PLANS["PERF-RT-1"].steps[0]._replace(threads=threads)
    assert 1 / jmeter_delay(step) == pytest.approx(rate, abs=0.005)


@pytest.mark.parametrize(
    ("staff", "shards", "expected"),
    [
        (range(5), 2, [1, 4]),
        (range(5), 3, [0, 3, 2]),
        (range(5), 4, [0, 1, 2, 2]),
        ((0, 11, 12, 30, 40), 2, [4, 1]),
        ((0, 11, 12, 30, 40), 3, [2, 2, 1]),
        ((0, 11, 12, 30, 40), 4, [2, 2, 0, 1]),
        (range(1000), 2, [479, 521]),
    ],
)
def test_on_which_shard_people_lie(staff: range, shards: int, expected: list[int]) -> None:
    assert people(staff, shards) == expected
