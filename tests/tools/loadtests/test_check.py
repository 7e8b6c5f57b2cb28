"""The figures beside those of a second tool."""

import subprocess

import pytest

from loadtests.check import Turn, agrees
from loadtests.figures import Summary
from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.needs import limited


def turn(ours: float, theirs: float) -> Turn:
    one, other = (Summary(100, ms, 1, ms, ms, ms, ms, 0, 0, 0) for ms in (ours, theirs))
    return Turn(one, other)


@pytest.mark.parametrize(
    ("turns", "right"),
    [
        ([turn(11, 10)], True),
        ([turn(12, 10)], False),
        ([turn(8, 10)], False),
        ([turn(30, 29), turn(10, 10), turn(90, 10)], True),  # one hiccup decides nothing
        ([turn(30, 20), turn(10, 10), turn(90, 10)], False),
    ],
)
def test_the_median_of_neighbours_decides(turns: list[Turn], *, right: bool) -> None:
    assert agrees(turns, "p50") == right
    assert agrees(turns, "rate") == right


def test_less_than_a_clock_tick_is_no_difference_of_times() -> None:
    assert agrees([turn(2, 1)], "p50")
    assert not agrees([turn(2, 1)], "rate")


@pytest.mark.long
@limited
def test_both_tools_measure_the_same_rate() -> None:
    command = [f"{ROOT}/scripts/load", "check", "--ramp", "1", "--turns", "1"]

    def alike() -> bool:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        rates = [line.split() for line in done.stdout.splitlines() if " rate " in line]
        assert [line[:2] for line in rates] == [["PERF-RT-1", "3780"], ["PERF-TP-2", "860"]]
        return all(0.85 < float(line[5]) < 1.15 for line in rates)

    # Within one second either may be held up on a busy machine; what measures wrongly always does.
    eventually(alike, 60)
