"""A comparison of seconds: its report, and what an interruption leaves."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadtests.architectures import (
    COMBINED,
    DURABLE,
    INDENTED,
    INDEXED,
    OLD_GATEWAY,
    OLD_SERVICES,
    SEPARATED,
    UNOPTIMISED,
    sharded,
)
from loadtests.comparison import collapse, compare
from loadtests.comparison.playbook import OTHERS, Playbook
from loadtests.report import report
from scripts.processes import ROOT
from tests.needs import limited

BOOK = Playbook({"PERF-TP-1": "2100", "SWEEP-EXTRACT": ""}, 0.3, 1)
pytestmark = [pytest.mark.long, limited]


def test_the_architectures_take_turns() -> None:
    book = Playbook({"PERF-TP-1": "", "PERF-RT-2": ""}, 1, 2)
    names = [run.name for run in book.runs()]
    assert names == [
        *("1-old-PERF-TP-1", "1-new-PERF-TP-1", f"1-{DURABLE}-PERF-TP-1"),
        *("1-old-PERF-RT-2", "1-new-PERF-RT-2"),
        *(f"1-{INDEXED}-PERF-RT-2", f"1-{INDENTED}-PERF-RT-2"),
        *(f"2-{DURABLE}-PERF-TP-1", "2-new-PERF-TP-1", "2-old-PERF-TP-1"),
        *(f"2-{INDENTED}-PERF-RT-2", f"2-{INDEXED}-PERF-RT-2"),
        *("2-new-PERF-RT-2", "2-old-PERF-RT-2"),
    ]


def test_sides_with_shards_come_beside_one_mongod() -> None:
    book = Playbook({"PERF-TP-1": "", "PERF-RT-1-1b": ""}, 1, 1, (), (2, 4), 4.0)
    names = [run.architecture for run in book.runs()]
    assert names == ["old", "new", "old", "new", *(sharded("new", n) for n in (0, 2, 4))]
    assert [book.slowed(name) for name in names] == [1.0] * 4 + [4.0] * 3


def test_the_separation_is_compared_on_sides_of_its_own(tmp_path: Path) -> None:
    book = Playbook({"SPLIT-READS-10": "600"}, 0.3, 1)
    assert [run.architecture for run in book.runs()] == [COMBINED, SEPARATED]
    assert compare.run(book, tmp_path) == 0
    text = (tmp_path / "report.md").read_text()
    assert f"| SPLIT-READS-10 | 600 | {COMBINED} |" in text
    assert "| 51.6 (max 128) | 49.1 (max 117) |" in text  # what the source published of both
    assert f"| monitoring | {SEPARATED} |" in text
    assert f"| monitoring | {COMBINED} |" not in text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    compare.run(BOOK, folder)
    return folder


def test_a_comparison_gives_a_report(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    for name in ("old", "new", DURABLE):
        assert f"| 2100 | {name} |" in text
    for name in (UNOPTIMISED, OLD_GATEWAY, OLD_SERVICES):
        assert f"| extracts of 3000 documents | {name} |" in text
    assert "| mongod | new |" in text
    assert "NOT FINISHED" not in text
    page = (folder / "report.html").read_text()
    assert page.count("<svg") == text.count(".svg)")
    report.write(folder)  # again, from its files alone
    assert (folder / "report.html").read_text() == page


def test_an_interrupted_comparison_reports_and_goes_on(tmp_path: Path) -> None:
    arguments = ["compare", "--quick", "--ramp", "0.2", "--repetitions", "1"]
    command = [sys.executable, "-m", "loadtests.main", *arguments, "--output", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("[2/"):
                break
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()
    assert "--resume" in said
    assert process.returncode == 1
    assert sorted(file.name for file in tmp_path.glob("rows/*.csv")) == [
        "1-new-PERF-TP-1.csv",
        "1-old-PERF-TP-1.csv",
    ]
    assert "NOT FINISHED: 2 of 9 runs" in (tmp_path / "report.md").read_text()
    book = Playbook.chosen(quick=True, ramp=0.2, repetitions=1)
    facts = json.loads((tmp_path / "run.json").read_text())
    assert facts["playbook"] == json.loads(json.dumps(book))
    assert len(book.runs()) == 9
    assert set(book.others) < set(OTHERS)


def test_a_plan_that_breaks_off_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "generate", lambda *_, **__: 2)
    book = Playbook({"PERF-TP-1": "2100"}, 0.2, 1, ())
    assert compare.run(book, tmp_path) == 1
    text = (tmp_path / "report.md").read_text()
    assert "BROKE OFF: 1-old-PERF-TP-1, 1-new-PERF-TP-1" in text


@pytest.mark.parametrize("each", [0.005, 0.02, 0.09])  # cores for a request a second
def test_the_limit_is_found_at_which_the_old_one_bends(each: float) -> None:
    cores = collapse.search(lambda cores: min(860 / 60, cores / each))
    assert cores / each == pytest.approx(12.47, rel=0.05)
    with pytest.raises(collapse.NoLimit):
        collapse.search(lambda _: 14.3)  # it never does


def test_both_are_compared_inside_a_box(tmp_path: Path) -> None:
    book = Playbook({"PERF-RT-2": "600"}, 1.0, 1, (), box_cores=1.0)
    compare.run(book, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "All of a side had 1.00 CPU together" in text
    assert "CPU and memory" not in text
    plot = (tmp_path / "plots" / "perf-rt-2.svg").read_text()
    assert all(f">{name}</text>" in plot for name in ("old", "new", "source before"))
