"""The search for the highest rate: what an attempt proves, and one real search."""

from pathlib import Path

import pytest

from loadtests import capacity, main
from loadtests.engine.attempts import (
    GENERATOR,
    KEPT,
    MACHINE,
    STACK,
    Attempt,
    capacity_of,
    decide,
    judge,
    search,
)
from loadtests.figures import Summary, read_csv, write_csv
from tests.needs import limited

LIMIT = 500.0


def summary(p99: float, errors: int = 0, late: float = 0.0, rate: float = 0.95) -> Summary:
    return Summary(100, rate, 1, p99, 5, 5, p99, errors, 0, late)


def attempt(verdict: str, p99: float = 400, threads: int = 60) -> Attempt:
    return Attempt(threads, threads / 60, threads / 60, 5, p99, 0, 0, 0, 0.1, verdict)


@pytest.mark.parametrize(
    ("figures", "cpu", "verdict"),
    [
        (summary(499), 0.2, KEPT),
        (summary(499), 0.95, KEPT),  # a busy generator makes answers later, never earlier
        (summary(501), 0.2, STACK),
        (summary(20, rate=0.85), 0.2, STACK),  # of one a second
        (summary(20, errors=1), 0.2, STACK),
        (summary(501), 0.95, GENERATOR),
        (summary(20, late=101), 0.95, GENERATOR),
        (summary(20, late=101), 0.3, MACHINE),
    ],
)
def test_what_an_attempt_proves(figures: Summary, cpu: float, verdict: str) -> None:
    assert judge(60, figures, LIMIT, cpu).verdict == verdict


@pytest.mark.parametrize(
    ("verdicts", "kept", "needed"),
    [
        ([attempt(KEPT, 250)], True, 1),
        ([attempt(KEPT), attempt(KEPT)], True, 2),
        ([attempt(STACK), attempt(STACK)], False, 2),
        ([attempt(STACK), attempt(KEPT), attempt(KEPT)], True, 3),
        ([attempt(KEPT), attempt(STACK), attempt(STACK)], False, 3),
    ],
)
def test_noise_does_not_decide(verdicts: list[Attempt], *, kept: bool, needed: int) -> None:
    left = list(verdicts)
    assert decide(lambda: left.pop(0), LIMIT) == kept
    assert len(verdicts) - len(left) == needed


@pytest.mark.parametrize("limit", [0, 1, 99, 100, 150, 5000])
def test_the_search_finds_the_limit(limit: int) -> None:
    attempts: list[int] = []

    def is_kept(threads: int) -> bool:
        attempts.append(threads)
        return threads <= limit

    assert limit / 1.1 - 1 <= search(100, is_kept) <= limit
    assert len(attempts) < 16


def test_the_end_of_a_search() -> None:
    every = [attempt(KEPT, 10, 60), attempt(STACK, 900, 240), attempt(STACK, 900, 240)]
    every += [attempt(GENERATOR, 700, 120), attempt(STACK, 700, 120), attempt(GENERATOR, 700, 120)]
    assert capacity_of(every, LIMIT) == (1, 10, GENERATOR)
    assert capacity_of(every[1:], LIMIT).rate == 0
    assert capacity_of([], LIMIT) == (0, 0, "")


def test_attempts_survive_their_file(tmp_path: Path) -> None:
    every = [attempt(KEPT), attempt(STACK, 501.5)]
    write_csv(tmp_path / "attempts.csv", every, Attempt._fields)
    assert read_csv(tmp_path / "attempts.csv", Attempt) == every


@pytest.mark.long
@limited
@pytest.mark.parametrize("what", ["BATCH-50", "EXTRACT-600"])
def test_a_search_of_one_service(
    what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["capacity", "--only", what, "--services", "1", "--ramp", "0.3"]
    options = main.parser().parse_args([*arguments, "--output", str(tmp_path)])
    assert options.command(options) == 0
    assert "| p99 <= 500 ms | new, 1 service |" in capfd.readouterr().out
    attempts = read_csv(tmp_path / f"capacity-new-1-CAP-{what}.csv", Attempt)
    end = capacity_of(attempts, options.p99)
    assert 0 < end.rate < max(attempt.rate for attempt in attempts)
    assert end.limit
    assert f"{end.rate:,.0f}/s" in (tmp_path / "capacity.md").read_text()
    assert (tmp_path / "capacity.csv").read_text().startswith(",".join(capacity.Result._fields))
