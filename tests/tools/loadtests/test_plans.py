"""Each plan runs for seconds against one real stack, and what a server does wrong is noticed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests.architectures import New
from loadtests.engine.generator import generate
from loadtests.figures import HTTP, VERIFICATION, Row, read_csv
from loadtests.plans import PLANS
from loadtests.stack import Stack
from loadtests.verdict import VOID
from tests.tools.loadtests.faulty_server import FaultyServer
from tests.tools.loadtests.measured import measured

pytestmark = pytest.mark.long

SECONDS = dict.fromkeys(("PERF-RT-2-1", "PERF-RT-2-1b"), 0.1)  # their many steps take their time
SHIFTS = {name: 1000 * number for number, name in enumerate(sorted(PLANS))}
SOURCES = [name for name in sorted(PLANS) if PLANS[name].is_the_sources]


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with New(limited=False) as stack:  # a slow machine must not fail these
        yield stack


def run(url: str, plan: str, rows: Path, **options: object) -> tuple[int, list[Row]]:
    all_options = {"ramp": 1, "shift": SHIFTS[plan], "rows": rows} | options
    status = generate(url, plan, all_options)
    return status, read_csv(rows, Row)


def run_measured(
    url: str, plan: str, rows: Path, capfd: pytest.CaptureFixture[str], **options: object
) -> tuple[int, list[Row]]:
    def once(shift: int) -> int:
        status, requests = run(url, plan, rows, shift=SHIFTS[plan] + shift, **options)
        assert [row for row in requests if row.error] == []
        return status

    return measured(once, capfd)[0], read_csv(rows, Row)


@pytest.mark.parametrize("name", [*SOURCES, "CAP-BATCH-50"])
def test_a_plan_runs_and_all_is_right(
    stack: Stack, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ramp = SECONDS.get(name, 0.4)
    status, rows = run_measured(stack.url, name, tmp_path / "rows.csv", capfd, ramp=ramp)
    assert status == 0
    steps = {row.step for row in rows} - {"stored"}
    assert steps == {step.name for step in PLANS[name].steps}
    first = PLANS[name].steps[0]
    companions = {"hacs"} if first.hacs else set()
    companions |= {"page"} if first.pages else set()
    companions |= {"stored"} if PLANS[name].writes else set()
    assert {row.name for row in rows} == {first.kind, *companions}


def test_it_goes_on_until_it_breaks(tmp_path: Path) -> None:
    with FaultyServer("fails") as server:
        status, rows = run(
            server.url, "PERF-TP-1", tmp_path / "rows.csv", until_it_breaks=True, ramp=0.2
        )
    assert status == 1
    assert rows[-1].error == HTTP


def test_a_server_without_a_fault_passes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with FaultyServer() as server:
        for plan in ("PERF-TP-1", "PERF-RT-2"):
            assert run_measured(server.url, plan, tmp_path / "rows.csv", capfd)[0] == 0


@pytest.mark.parametrize(
    ("fault", "plan", "kind"),
    [
        ("drops", "PERF-TP-2", VERIFICATION),
        ("reorders", "PERF-TP-2", VERIFICATION),
        ("moves", "PERF-TP-2", VERIFICATION),
        ("loses", "PERF-TP-1", VERIFICATION),
        ("fails", "PERF-TP-1", HTTP),
    ],
)
def test_a_fault_is_noticed(tmp_path: Path, fault: str, plan: str, kind: str) -> None:
    with FaultyServer(fault) as server:
        status, rows = run(server.url, plan, tmp_path / "rows.csv", pages=0)
    assert {row.error for row in rows} == {"", kind}
    assert status == 1


def test_a_stack_with_documents_of_the_plan_is_refused(
    stack: Stack, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = {"ramp": 0.1, "shift": 99000}
    first = generate(stack.url, "PERF-RT-1", options)
    assert first == 0 or f"  {VOID}: " in capfd.readouterr().out
    assert generate(stack.url, "PERF-RT-1", options) == 2
    assert "documents there already" in capfd.readouterr().err
