"""What a comparison's files say, on files whose figures are known."""

import json
import re
import tarfile
from pathlib import Path

import pytest

from loadtests.architectures import DURABLE, NEW, OLD, sharded
from loadtests.figures import HTTP, Row, write_csv
from loadtests.plans import PLANS
from loadtests.report import report
from loadtests.report.results import Results
from scripts.processes import ROOT

FACTS = {
    **dict.fromkeys(("processor", "kernel", "python", "commit", "began"), "x"),
    **dict.fromkeys(("cores", "memory_gib", "minutes", "ramp_seconds", "repetitions"), 1),
    "load_average": [0.1, 2.0],
    "failed": [],
    "runs": [3, 3],
}


def rows(threads: int, seconds: float, ms: float, errors: int = 0) -> list[Row]:
    """Return a step's requests, evenly over so many seconds."""
    count = round(threads * seconds / 60)
    times = [number * seconds / count for number in range(count)]
    kinds = [HTTP if number < errors else "" for number in range(count)]
    return [
        Row("SWEEP-INSERT", str(threads), "insert", at, at, ms, 200, 26, kind)
        for at, kind in zip(times, kinds, strict=True)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_text(json.dumps(FACTS))
    for kind in ("rows", "usage"):
        (tmp_path / kind).mkdir()
    architectures = {
        "old": [
            *rows(600, 2, 5),
            *slow(rows(960, 2, 5)),
        ],  # a second late after two: a mean that looks good
        "new": [*rows(600, 2, 10), *rows(960, 2, 10), *rows(1536, 2, 10, errors=2)],
        DURABLE: [*rows(600, 2, 30), *rows(960, 2, 30)],
    }
    for name, requests in architectures.items():
        write_csv(tmp_path / "rows" / f"1-{name}-SWEEP-INSERT.csv", requests, Row._fields)
    (tmp_path / "rows" / "1-new-PERF-TP-1.part").write_text("of a run that was interrupted")
    return tmp_path


@pytest.mark.parametrize(("architecture", "rate"), [("old", 10), ("new", 16), (DURABLE, 16)])
def test_the_highest_rate_is_one_that_was_kept_up_with(
    folder: Path, architecture: str, rate: float
) -> None:
    assert Results(folder).highest_rate("SWEEP-INSERT", architecture) == (rate, rate, rate)


def test_ratios_are_by_the_new_one(folder: Path) -> None:
    for architecture, ratio in (("old", 0.5), (DURABLE, 3)):
        range_of_ratios = Results(folder).ratio("SWEEP-INSERT", "600", architecture)
        assert range_of_ratios.median == pytest.approx(ratio)


def test_the_summary_has_a_line_for_each_old_form(folder: Path) -> None:
    for name, ms in (("old", 10), ("new", 20), (DURABLE, 5)):
        requests = [row._replace(plan="PERF-TP-1", step="2100") for row in rows(2100, 1, ms)]
        write_csv(folder / "rows" / f"1-{name}-PERF-TP-1.csv", requests, Row._fields)
    report.write(folder)
    text = (folder / "report.md").read_text()
    theirs = "17.2 (max 95.0) | 21.3 (max 109)"
    assert f"| PERF-TP-1 | 2100 | old | 10.0 | 20.0 | 0.5 | {theirs} |" in text
    assert f"| PERF-TP-1 | 2100 | {DURABLE} | 5.0 | 20.0 | 0.2 |  |  |" in text


def test_the_report_says_so(folder: Path) -> None:
    assert report.write(folder) == 0
    text = (folder / "report.md").read_text()
    assert "| inserts | old | 10 | too slow | 1.6 |" in text
    assert "| inserts | new | 16 | errors, 3.9 % |  |" in text
    assert f"| inserts | {DURABLE} | 16 |  | 1.0 |" in text
    assert "NOT FINISHED" not in text
    (folder / "run.json").write_text(json.dumps(FACTS | {"runs": [3, 8]}))
    report.write(folder)
    assert "NOT FINISHED: 3 of 8 runs" in (folder / "report.md").read_text()


def is_late(requests: list[Row]) -> list[Row]:
    """Return requests that the generator sent 200 ms late."""
    return [row._replace(sent=row.sent + 0.2) for row in requests]


def slow(requests: list[Row]) -> list[Row]:
    """Return requests of which each waits longer than the one before."""
    return [row._replace(ms=row.ms + 500 * row.sent) for row in requests]


@pytest.mark.parametrize(
    ("late", "old_rate", "new_rate", "ratio"),
    [
        ({"new"}, "10", "at least 10", "at least 1.0"),
        ({"old"}, "at least 10", "16", "-"),
        ({"old", "new"}, "at least 10", "at least 10", "-"),
    ],
)
def test_a_sweep_that_the_generator_ended_is_a_lower_bound(
    folder: Path, late: set[str], old_rate: str, new_rate: str, ratio: str
) -> None:
    second = {"old": slow(rows(960, 2, 10)), "new": rows(960, 2, 10)}
    for name, last in second.items():
        # What was late looks good: that is why it must not count.
        last = is_late(rows(960, 2, 10)) if name in late else last
        requests = [*rows(600, 2, 10), *last]
        write_csv(folder / "rows" / f"1-{name}-SWEEP-INSERT.csv", requests, Row._fields)
    report.write(folder)
    text = (folder / "report.md").read_text()
    old_line, new_line = (
        next(line for line in text.splitlines() if line.startswith(f"| inserts | {name} |"))
        for name in ("old", "new")
    )
    assert f"| old | {old_rate} |" in old_line
    assert old_line.endswith(f"| {ratio} |")
    assert f"| new | {new_rate} |" in new_line


def test_a_ratio_with_a_late_generator_is_none(folder: Path) -> None:
    requests = [row._replace(plan="PERF-TP-1", step="2100") for row in rows(2100, 1, 10)]
    write_csv(folder / "rows" / "1-old-PERF-TP-1.csv", requests, Row._fields)
    write_csv(folder / "rows" / "1-new-PERF-TP-1.csv", is_late(requests), Row._fields)
    assert Results(folder).ratio("PERF-TP-1", "2100", "old").shown() == "-"
    report.write(folder)
    assert "| PERF-TP-1 | 2100 | old | 10.0 | - | - |" in (folder / "report.md").read_text()


def of_shards(folder: Path, plan: str, base: str, ms: dict[int, dict[str, float]]) -> None:
    """Write what sides with so many shards answered, by step, with these means."""
    for shards, steps in ms.items():
        kind = PLANS[plan].steps[0].kind
        requests = [
            row._replace(plan=plan, step=step, name=kind)
            for step, mean in steps.items()
            for row in rows(2100, 1, mean)
        ]
        write_csv(folder / "rows" / f"1-{sharded(base, shards)}-{plan}.csv", requests, Row._fields)


def test_sharding_has_rows_of_its_own(folder: Path) -> None:
    report.write(folder)
    assert "Sharding alone" not in (folder / "report.md").read_text()
    of_shards(folder, "PERF-RT-1-1", OLD, {0: {"2100": 10}, 2: {"2100": 20}})
    gains: dict[int, dict[str, float]] = {0: {"600": 10, "3000": 50, "6000": 100, "9000": 150}}
    gains |= {2: {"600": 20, "3000": 40, "6000": 50, "9000": 60}}
    gains |= {3: {"600": 20, "3000": 60, "6000": 120, "9000": 160}}
    of_shards(folder, "PERF-RT-2-1", OLD, gains)
    of_shards(folder, "PERF-RT-2-1", NEW, {0: {"600": 10}, 2: {"600": 8}})
    report.write(folder)
    text = (folder / "report.md").read_text()
    assert "| an insert, PERF-RT-1-1 | old | - | 0.50 | - | - |" in text
    assert "| a history, PERF-RT-2-1, 6000 documents | old | - | 2.00 | 0.83 | - |" in text
    pays = "PERF-RT-2-1 pays from so many documents on"
    assert f"| {pays} | old | - | 3000 | never here | - |" in text
    assert (
        "| the busiest shard's part of staff 0 to 4 | both | 100.0 %, 5 | 80.0 %, 1/4 | 60.0 %,"
        in text
    )
    # They are compared among each other alone.
    assert "| PERF-RT-2-1 | 9000 | old |" not in text.split("# Sharding alone")[0]


def test_no_cell_of_the_paper_is_empty(folder: Path) -> None:
    of_shards(folder, "PERF-RT-1-1", NEW, {0: {"2100": 10}, 2: {"2100": 20}})
    late = [row._replace(plan="PERF-RT-1", step="2100") for row in is_late(rows(2100, 1, 10))]
    write_csv(folder / "rows" / "1-new-PERF-RT-1.csv", late, Row._fields)
    report.write(folder)
    lines = (folder / "paper.md").read_text().splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert [line for line in tables if re.search(r"\| *\|", line)] == []
    theirs = "17.8 (12 to 248), 34.58/s | 21.5 (16 to 1022), 34.57/s"
    ours = "not run | not run | x 0.50 | not run | not run"
    assert f"| PERF-RT-1-1 | 2100 | {theirs} | {ours} |" in tables
    assert any(line.endswith("| not run | void |") for line in tables)
    assert sum(line.startswith(("| PERF-", "| SPLIT-")) for line in tables) > 118 / 2


@pytest.mark.long
def test_the_paper_is_made_from_the_kept_files(tmp_path: Path) -> None:
    with tarfile.open(ROOT / "docs" / "playbook-run" / "raw.tar.xz") as kept:
        kept.extractall(tmp_path, filter="data")
    report.write(tmp_path)
    assert (ROOT / "docs" / "paper.md").read_text() == (tmp_path / "paper.md").read_text()
