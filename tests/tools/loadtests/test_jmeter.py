"""The plans for JMeter, what is read of its files, and (named) JMeter itself on old and new."""

import gzip
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from loadtests import gateway_log, main
from loadtests.engine import endpoints, pages
from loadtests.figures import HTTP, VERIFICATION
from loadtests.jmeter import command, jmx
from loadtests.plans import PLANS
from loadtests.targets import ADDED
from loadtests.verdict import VOID
from tests.tools.loadtests.faulty_server import FaultyServer

JTL = """timeStamp,elapsed,label,responseCode,responseMessage,success,failureMessage,bytes
2000,7,insert,200,OK,true,,300
1000,5,insert,503,Service Unavailable,false,Test failed: text,200
3500,9,extract,200,OK,false,Value expected to be '600',900
3600,1,page,Non HTTP response code: java.net.ConnectException,Non HTTP,false,,0
"""
LINE = (
    '{"time":"2026-11-28T12:00:0%s+00:00","client":"127.0.0.1","method":"GET","path":"%s",'
    '"status":"%s","bytes":"26","seconds":"0.00%s","request_id":"0"}\n'
)


def load(*arguments: object) -> int:
    """Run a command of ./scripts/load in this process; return its status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["load", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_each_step_is_written_with_what_its_answers_have_to_be(tmp_path: Path) -> None:
    assert load("jmx", tmp_path) == 0
    steps = [(PLANS[name], step) for name in jmx.NAMES for step in PLANS[name].steps]
    assert len(list(tmp_path.iterdir())) == len(steps)
    for plan, step in steps:
        tree = ElementTree.parse(tmp_path / f"{plan.name}-{step.name}.jmx")
        said = [element.text for element in tree.iter("stringProp")]
        paths = [text for text in said if text and text.startswith("/")]
        first = step.staff[0]
        is_read = step.kind == "extract"
        path = endpoints.extract(first) if is_read else endpoints.insert_now(first)
        assert paths == [path, *map(endpoints.extract, step.hacs), *pages.NEW]
        assert str(step.threads) in said
        assert (ADDED.decode() in said) is not is_read
        assert len(list(tree.iter("JSONPathAssertion"))) == is_read


@pytest.mark.parametrize(
    ("plan", "step", "rows"),
    [
        ("PERF-TP-2", "86", 2310),
        ("PERF-TP-2", "860", 2310),
        ("PERF-RT-2", "1800", 1800),
        ("PERF-RT-2-1", "600", 600),
        ("PERF-RT-2-1", "3000", 600),
        ("PERF-RT-2-1", "3600", 1200),
    ],
)
def test_an_extract_has_to_have_all_rows(tmp_path: Path, plan: str, step: str, rows: int) -> None:
    load("jmx", tmp_path)
    text = (tmp_path / f"{plan}-{step}.jmx").read_text()
    assert re.findall(r'"EXPECTED_VALUE">(\d+)<', text) == [str(rows)]


def test_a_token_is_asked_for_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYMARK_TOKEN", "secret")
    load("jmx", tmp_path)
    text = (tmp_path / "PERF-TP-1-210.jmx").read_text()
    assert "Bearer ${__P(token)}" in text
    assert "secret" not in text


def test_its_results_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.jtl").write_text(JTL)
    rows = command.rows(tmp_path / "x.jtl")
    assert [(row.name, row.sent, row.ms, row.status, row.error) for row in rows] == [
        ("insert", 0.0, 5, 503, HTTP),
        ("insert", 1.0, 7, 200, ""),
        ("extract", 2.5, 9, 200, VERIFICATION),
        ("page", 2.6, 1, 0, HTTP),
    ]


def test_the_log_is_read_whole_and_what_was_cut_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [LINE % (at, "/newbeacondetect", 200, at) for at in range(1, 4)]
    with gzip.open(tmp_path / "requests.log.1.gz", "wt") as old:
        old.write(lines[0])
    (tmp_path / "requests.log.2").write_text(lines[1] + LINE % (2, "/extractbeacon", 503, 9))
    (tmp_path / "requests.log").write_text(lines[2] + lines[0][:70])
    rows = gateway_log.rows(tmp_path, since=0)
    assert sorted((row.name, row.ms, row.error) for row in rows) == [
        ("/extractbeacon", 9, HTTP),
        ("/newbeacondetect", 1, ""),
        ("/newbeacondetect", 2, ""),
        ("/newbeacondetect", 3, ""),
    ]
    assert load("log", tmp_path) == 0
    assert "/newbeacondetect: 3 requests" in capsys.readouterr().out
    assert load("log", tmp_path, "--minutes", 1) == 2  # nothing is of today
    assert "has no line of a request" in capsys.readouterr().err


@pytest.mark.named
@pytest.mark.parametrize("side", ["--no-limits", "--old"])
@pytest.mark.parametrize("plan", ["PERF-TP-1", "PERF-TP-2", "PERF-RT-1", "PERF-RT-2"])
def test_jmeter_is_answered_right_and_stored_is_what_was_acknowledged(
    tmp_path: Path, plan: str, side: str, capfd: pytest.CaptureFixture[str]
) -> None:
    sides = dict.fromkeys([side, "--no-limits"])
    status = load("jmeter", plan, *sides, "--ramp", 1, "--output", tmp_path)
    output = capfd.readouterr().out
    figures = [line for line in output.splitlines() if "verification" in line]
    assert all("errors 0, verification 0" in line for line in figures), output
    steps = len(PLANS[plan].steps)
    assert len(figures) == (steps if side == "--old" else 2 * steps)  # the old one keeps no log
    assert ("exactly the" in output) is PLANS[plan].writes
    assert status == 0 or VOID in output


@pytest.mark.named
@pytest.mark.parametrize(
    ("fault", "plan", "said"),
    [
        ("drops", "PERF-TP-2", "answered right"),
        ("fails", "PERF-TP-1", "answered right"),
        ("loses", "PERF-TP-1", "documents instead of 77 to 77"),
    ],
)
def test_jmeter_notices_a_fault(
    tmp_path: Path, fault: str, plan: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with FaultyServer(fault) as server:
        options = ["--target", server.url, "--ramp", 2, "--output", tmp_path]
        assert load("jmeter", plan, *options) == 1
    assert said in capfd.readouterr().out
