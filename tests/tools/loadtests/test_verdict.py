"""PASS or FAIL: the requirement on figures that are known, on the screen, in the report."""

import json
import re
from pathlib import Path

import pytest

from loadtests.engine.generator import generate
from loadtests.figures import HTTP, STORED, VERIFICATION, Row, Summary, write_csv
from loadtests.plans import PLANS
from loadtests.report import report
from loadtests.verdict import judge
from tests.tools.loadtests.faulty_server import FaultyServer
from tests.tools.loadtests.test_results import FACTS


def figures(mean: float, wrong: int = 0, late: float = 0) -> Summary:
    return Summary(1000, 35, 1, mean, mean, mean, mean, wrong // 2, wrong - wrong // 2, late)


@pytest.mark.parametrize(
    ("plan", "steps", "verdict"),
    [
        ("PERF-RT-1", [[figures(1000, 10)]], "PASS"),
        ("PERF-RT-1", [[figures(20)], [figures(1001)]], "FAIL: at 2 mean 1.0 s of 1 s"),
        ("PERF-RT-1", [[figures(20, 11)]], "FAIL: at 1 98.9% answered right"),
        ("PERF-RT-2", [[figures(6000)]], "PASS"),
        ("PERF-RT-2", [[figures(12811)]], "FAIL: at 1 mean 12.8 s of 6 s"),
        # One repetition of three decides nothing about the mean; all answers count.
        ("PERF-RT-1", [[figures(20), figures(20), figures(5000)]], "PASS"),
        ("PERF-RT-1", [[figures(20), figures(20), figures(20, 31)]], "FAIL: at 1 99.0% answered"),
        # What the generator did late says nothing, neither good nor bad.
        ("PERF-RT-1", [[figures(5000, 900, late=101), figures(20)]], "PASS"),
        (
            "PERF-RT-1",
            [[figures(20)], [figures(20, late=101)]],
            "VOID: the generator was late at 2",
        ),
        ("PERF-RT-1", [[figures(20, late=101)], [figures(2000)]], "FAIL: at 2 mean 2.0 s of 1 s"),
        ("PERF-RT-1", [], "VOID: the generator was late at every step"),
    ],
)
def test_the_requirement(plan: str, steps: list[list[Summary]], verdict: str) -> None:
    named = {str(number): summaries for number, summaries in enumerate(steps, start=1)}
    assert str(judge(PLANS[plan], named)).startswith(verdict)


def test_what_lost_a_detection_fails() -> None:
    assert judge(PLANS["PERF-RT-1"], {"1": [figures(1)]}, lost=True).word == "FAIL"


def test_a_log_that_tells_of_an_exception_fails() -> None:
    told = ["the log of ingest-1 tells of ValueError"]
    verdict = judge(PLANS["PERF-RT-1"], {"1": [figures(1)]}, exceptions=told)
    assert verdict == ("FAIL", told[0])


@pytest.mark.parametrize(
    ("fault", "verdict", "status"),
    [
        ("", "  PASS", 0),
        ("fails", "  FAIL: at 2100 ", 1),
        ("loses", "  FAIL: what is stored is not what was acknowledged", 1),
    ],
)
def test_the_screen_tells_it(
    fault: str, verdict: str, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    options = {"ramp": 0.5, "only": "2100", "pages": 0, "hacs": "7"}
    for _ in range(5):  # a machine that stalls makes a short run void, or slow
        with FaultyServer(fault) as server:
            code = generate(server.url, "PERF-TP-1", options)
        said = capfd.readouterr().out
        if "VOID" not in said and not re.search(r"mean .* s of", said):
            break
    assert code == status, said
    assert any(line.startswith(verdict) for line in said.splitlines()), said


def test_the_report_begins_with_it(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(FACTS))
    for kind in ("rows", "usage"):
        (tmp_path / kind).mkdir()

    def add(architecture: str, plan: str, ms: float, error: str = "", stored: str = "") -> None:
        kind = "insert" if PLANS[plan].writes else "extract"
        step = PLANS[plan].steps[-1].name
        rows = [Row(plan, step, kind, n, n, ms, 200, 26, error) for n in range(50)]
        rows.append(Row(plan, STORED, STORED, 51, 51, 5, 200, 26, stored))
        write_csv(tmp_path / "rows" / f"1-{architecture}-{plan}.csv", rows, Row._fields)

    add("old", "PERF-TP-2", 12_811)
    add("new", "PERF-TP-2", 5)
    add("old", "PERF-TP-1", 5, stored=VERIFICATION)
    add("new", "PERF-TP-1", 5, error=HTTP)
    report.write(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert text.split("\n## ")[1].startswith("The requirement\n")
    assert "| PERF-TP-2 | **FAIL: at 860 mean 12.8 s of 6 s!** | PASS: at 860 alone |" in text
    lost = "**FAIL: what is stored is not what was acknowledged!**"
    assert f"| PERF-TP-1 | {lost} | **FAIL: at 2100 0.0% answered right!** |" in text
    assert "New passes 1 of 2 plans, old passes 0 of 2 plans. Of 100 answers of new 0" in text


def test_a_plan_that_is_void_has_neither_passed_nor_failed(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(FACTS))
    for kind in ("rows", "usage"):
        (tmp_path / kind).mkdir()
    for plan, late in (("PERF-TP-2", 0), ("PERF-RT-2", 1)):
        step = PLANS[plan].steps[-1].name
        rows = [Row(plan, step, "extract", n, n + late, 5, 200, 26) for n in range(50)]
        write_csv(tmp_path / "rows" / f"1-new-{plan}.csv", rows, Row._fields)
    assert report.write(tmp_path) == 0
    assert "New passes 1 of 1 plans, 1 more is void," in (tmp_path / "report.md").read_text()
    told = {"1-new-PERF-RT-2": ["the log of ingest-1 tells of it"], "1-old-PERF-TP-2": ["x"]}
    (tmp_path / "run.json").write_text(json.dumps(FACTS | {"exceptions": told}))
    assert report.write(tmp_path) == 1
    assert "| **FAIL: the log of ingest-1 tells of it!** |" in (tmp_path / "report.md").read_text()


def test_steps_alone_are_not_the_plan() -> None:
    steps = {step.name: [figures(20)] for step in PLANS["PERF-RT-1"].steps}
    assert str(judge(PLANS["PERF-RT-1"], steps)) == "PASS"
    del steps["3780"]
    assert str(judge(PLANS["PERF-RT-1"], steps)) == "PASS: at 2100, 2520, 2940, 3360 alone"
