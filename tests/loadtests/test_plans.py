"""Each plan runs for seconds against one real stack, and lies of a server are noticed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests.figures import HTTP, VERIFICATION, Row, read_rows
from loadtests.generator import generate
from loadtests.plans import PLANS
from loadtests.stacks import New, Stack
from tests.loadtests.liar import Liar

SECONDS = {"PERF-RT-2-1": 0.1}  # its 15 steps take their time
SHIFTS = {name: 1000 * number for number, name in enumerate(sorted(PLANS))}
SOURCES = [name for name in sorted(PLANS) if name.startswith("PERF")]


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with New(limited=False) as stack:  # a slow machine must not fail these
        yield stack


def run(url: str, plan: str, rows: Path, *more: str, ramp: float = 1) -> tuple[int, list[Row]]:
    shift = str(SHIFTS[plan])
    status = generate(url, plan, ["--ramp", str(ramp), "--shift", shift, *more], rows=rows)
    return status, read_rows(rows)


@pytest.mark.parametrize("name", [*SOURCES, "CAP-BATCH-50"])
def test_a_plan_runs_and_all_is_right(stack: Stack, tmp_path: Path, name: str) -> None:
    status, rows = run(stack.url, name, tmp_path / "rows.csv", ramp=SECONDS.get(name, 0.4))
    assert [row for row in rows if row.error] == []
    assert status == 0
    steps = {row.step for row in rows} - {"stored"}
    assert steps == {step.name for step in PLANS[name].steps}
    if PLANS[name].writes:
        beside = {"hacs", "page"} if PLANS[name].steps[0].hacs else set()
        assert {row.name for row in rows} == {PLANS[name].steps[0].kind, "stored", *beside}


def test_it_goes_on_until_it_breaks(tmp_path: Path) -> None:
    liar = Liar("fails")
    try:
        status, rows = run(
            liar.url, "PERF-TP-1", tmp_path / "rows.csv", "--until-it-breaks", ramp=0.2
        )
    finally:
        liar.close()
    assert status == 1
    assert rows[-1].error == HTTP


def test_an_honest_server_passes(tmp_path: Path) -> None:
    honest = Liar()
    try:
        for plan in ("PERF-TP-1", "PERF-RT-2"):
            status, rows = run(honest.url, plan, tmp_path / "rows.csv")
            assert [row for row in rows if row.error] == []
            assert status == 0
    finally:
        honest.close()


@pytest.mark.parametrize(
    ("lie", "plan", "kind"),
    [
        ("drops", "PERF-TP-2", VERIFICATION),
        ("reorders", "PERF-TP-2", VERIFICATION),
        ("moves", "PERF-TP-2", VERIFICATION),
        ("loses", "PERF-TP-1", VERIFICATION),
        ("fails", "PERF-TP-1", HTTP),
    ],
)
def test_a_lying_server_is_noticed(tmp_path: Path, lie: str, plan: str, kind: str) -> None:
    liar = Liar(lie)
    try:
        status, rows = run(liar.url, plan, tmp_path / "rows.csv", "--pages", "0")
    finally:
        liar.close()
    assert {row.error for row in rows} == {"", kind}
    assert status == 1


def test_a_stack_with_documents_of_the_plan_is_refused(
    stack: Stack, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--ramp", "0.1", "--shift", "99000"]
    assert generate(stack.url, "PERF-RT-1", arguments) == 0
    assert generate(stack.url, "PERF-RT-1", arguments) == 2
    assert "documents there already" in capfd.readouterr().err
