"""What the benchmark concludes from results that are known, and one real turn of two services."""

import subprocess
import sys

import pytest

from loadtests.benchmark.cases import Case
from loadtests.benchmark.results import Comparison, Result, result
from loadtests.figures import HTTP, Row
from loadtests.held_back import Meter
from scripts.processes import ROOT
from scripts.processes.control_groups import Usage
from tests.needs import limited

FAST = Case("fast", lambda _: None, least=8)
PACED = Case("paced", lambda _: None, paced=True, p99_limit_ms=500)


def turn(
    per_second: float, cpu_ms: float, p99_ms: float = 10, errors: int = 0, full: int = 0
) -> Result:
    return Result(per_second, cpu_ms, 5, p99_ms, errors, 40, 0, full)


@pytest.mark.parametrize(
    ("case", "other", "new", "is_checkout", "reached"),
    [
        (FAST, turn(100, 1), turn(900, 0.2), False, True),  # by its rate
        (FAST, turn(100, 1), turn(300, 0.1, full=1), False, True),  # by its CPU
        (FAST, turn(100, 1), turn(300, 0.1), False, False),  # nothing but itself held it back
        (FAST, turn(100, 1), turn(900, 0.2, full=1), False, False),  # not on the better of two
        (FAST, turn(100, 1), turn(700, 0.2), False, False),
        (FAST, turn(100, 1), turn(900, 0.1, errors=1), False, False),
        (FAST, turn(100, 1), turn(96, 1.04), True, True),  # of another checkout: as fast is enough
        (FAST, turn(100, 1), turn(94, 1.06), True, False),
        (PACED, turn(14, 1), turn(14, 1.1), True, False),  # its rate says nothing
        (PACED, turn(14, 1), turn(14, 1, p99_ms=501), True, False),
    ],
)
def test_a_target_is_reached_or_missed(
    case: Case, other: Result, new: Result, *, is_checkout: bool, reached: bool
) -> None:
    comparison = Comparison(case, "", [other] * 3, [new] * 3, is_checkout)
    assert comparison.reached() == reached
    assert comparison.cells()[-1].endswith("MISSED") != reached


def test_a_case_without_the_other_service_has_no_ratio() -> None:
    comparison = Comparison(PACED, "", [], [turn(14, 1)], is_checkout=False)
    assert comparison.reached()
    assert comparison.cells()[1] == comparison.cells()[3] == comparison.cells()[4] == ""


def test_ratios_are_of_neighbouring_turns() -> None:
    other, new = [turn(100, 1), turn(50, 2)], [turn(200, 1), turn(200, 1)]
    comparison = Comparison(FAST, "", other, new, is_checkout=False)
    assert comparison.rates() == (3, 2, 4)
    assert comparison.cpu() == (1.5, 1, 2)


def test_a_result_counts_what_was_done_right() -> None:
    rows = [Row("", "", "", n / 10, n / 10, 100, 200, 0, HTTP * (n == 9)) for n in range(10)]
    before, after = (Usage(cpu, 0, 0, 0, 50 << 20, 0) for cpu in (1, 1.9))
    case, meter = FAST._replace(per_request=50), Meter()
    meter.seconds, meter.machine_share = 1.0, 0.95
    expected = (450, 2, 100, 100, 1, 50, 0, 0)  # it used 0.9 of its 0.3 cores
    assert result(case, rows, [before], [after], meter) == pytest.approx(expected)
    meter.seconds = 10.0
    assert result(case, rows, [before], [after], meter).machine_was_full == 1


@limited
@pytest.mark.long
def test_a_checkout_takes_turns_with_itself() -> None:
    command = [sys.executable, "-m", "loadtests.benchmark", "--rounds", "1", "--seconds", "0.5"]
    command += ["--against", str(ROOT), "insert, 8", "mixed"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: slower than itself
    lines = [line.split(" | ") for line in done.stdout.splitlines()]
    assert [line[0].strip("| ") for line in lines[2:-1]] == [
        "insert, 8 connections",
        "mixed, 8 phones and 4 readers: phones",
        "mixed, 8 phones and 4 readers: readers",
    ]
    assert "errors" not in done.stdout
