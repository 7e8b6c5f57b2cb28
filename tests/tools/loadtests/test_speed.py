"""What the table of speed concludes from turns that are known, and a few real ones."""

import datetime
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from loadtests.architectures import New
from loadtests.figures import HTTP, summary
from loadtests.figures import Row as Request
from loadtests.held_back import Shares
from loadtests.histories import _detections
from loadtests.main import parser
from loadtests.speed import command, loads, seeds
from loadtests.speed.cases import NEW, OLD, RAW, Case, Section, Start, sections
from loadtests.speed.sides import EVERYTHING, SERVICES, SOURCES, Side, side
from loadtests.speed.turns import Figure, Turn, row, turn
from loadtests.stack import Stack
from tests.needs import limited
from tests.tools.loadtests.faulty_server import FaultyServer

RATE = Figure("a second", lambda side: side.of().rate, at_least=4, base=OLD, is_rate=True)
P50 = Figure("p50, ms", lambda side: side.of().p50, at_most=0.9, base=OLD)
COST = Figure("CPU µs each", Turn.cpu_us, at_most=2500)
MORE = Figure(
    "services, %",
    lambda side: 100 * side.cores(SERVICES),
    at_most=2,
    base=OLD,
    is_difference=True,
)


def known(
    count: int = 100,
    ms: float = 5,
    wrong: int = 0,
    cpu: float = 0.1,
    full: float = 0.5,
    killed: int = 0,
    exceptions: Sequence[str] = (),
) -> Turn:
    """Return a turn of one second: so many requests, and what they took."""
    requests = [
        Request("", "", "", n / count, n / count, ms, 200, 0, HTTP * (n < wrong))
        for n in range(count)
    ]
    used = {SERVICES: cpu, EVERYTHING: 2 * cpu}
    shares = Shares(full, 0.5)
    return Turn({"": summary(requests)}, used, 1.0, SERVICES, shares, killed, {}, exceptions)


@pytest.mark.parametrize(
    ("figure", "old", "new", "reached", "ratio"),
    [
        (RATE, known(100), known(500), True, 5),
        (RATE, known(100), known(300), False, 3),
        (RATE, known(100), known(500, wrong=1), False, 5),
        (RATE, known(100), known(500, killed=1), False, 5),
        (RATE, known(100), known(500, exceptions=["the log tells of it"]), False, 5),
        # Nor is a ratio to what did not stand: it would flatter.
        (RATE, known(100, wrong=1), known(500), False, 5),
        (RATE, known(100, killed=1), known(500), False, 5),
        # The machine was full: 1 ms of the services' CPU for each request against 0.2.
        (RATE, known(100, full=1), known(300, cpu=0.06, full=1), True, 5),
        (RATE, known(100, full=1), known(900, cpu=0.9, full=1), False, 1),
        (P50, known(ms=10), known(ms=8), True, 0.8),
        (P50, known(ms=10), known(ms=10), False, 1),
        (COST, known(), known(cpu=0.1), True, 2000),
        (COST, known(), known(cpu=0.2), False, 4000),
        (MORE, known(cpu=0.10), known(cpu=0.11), True, 1),
        (MORE, known(cpu=0.10), known(cpu=0.13), False, 3),
    ],
)
def test_a_goal_is_reached_or_missed(
    figure: Figure, old: Turn, new: Turn, ratio: float, *, reached: bool
) -> None:
    line = row("case", figure, {OLD: [old] * 3, NEW: [new] * 3})
    assert line
    assert line.reached == reached
    assert line.result.median == pytest.approx(ratio, rel=0.02)
    assert ("MISSED" in line.cells([OLD, NEW])[-1]) != reached


def test_what_befell_another_side_stands_beside_its_figure() -> None:
    line = row("case", COST, {OLD: [known(killed=2, wrong=1)], NEW: [known()]})
    assert line
    assert line.reached
    assert line.cells([OLD, NEW])[-1] == "reached, old: 1 wrong answers, old: 2 killed"


def test_ratios_are_of_neighbouring_turns() -> None:
    turns = {OLD: [known(100), known(50)], NEW: [known(500), known(100)]}
    line = row("case", RATE, turns)
    assert line
    assert line.result == pytest.approx((3.5, 2, 5), rel=0.03)


def test_a_side_that_is_not_there_leaves_its_lines_out() -> None:
    assert row("case", RATE, {NEW: [known()]}) is None
    assert row("case", COST, {NEW: [known()]})


def test_each_case_has_sides_of_its_section_and_figures_of_its_sides() -> None:
    for section in sections(1_000_000):
        names = [case.name for case in section.cases]
        assert len(set(names)) == len(names)
        for case in section.cases:
            assert set(case.sides) <= set(section.sides)
            assert set(case.loads) <= set(case.sides)
            assert {figure.subject for figure in case.figures} <= set(case.sides)
            assert {figure.base for figure in case.figures if figure.base} <= set(case.sides)


@pytest.mark.parametrize(("fault", "is_right"), [("", True), ("loses", False), ("drops", False)])
def test_a_history_that_lacks_what_was_acknowledged_is_wrong(fault: str, *, is_right: bool) -> None:
    with FaultyServer(fault) as server:
        stack = SimpleNamespace(
            url=server.url, ingest_ports=[], usage=dict, works_later=False, exceptions=list
        )
        side = Side(cast(Stack, stack), SOURCES)
        measured = turn(side, loads.live_histories, 1.5)
        side.close()
    # Fewer where answers are late: who writes waits for each.
    assert 0 < measured.of("write").requests <= round(1.5 * loads.WRITES_PER_SECOND)
    assert measured.of().requests
    assert (measured.wrong() == 0) == is_right


def test_who_writes_waits_for_each_answer_and_is_not_late_by_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late_seconds = []

    def insert(_side: Side, *, due: float, **_: object) -> None:
        late_seconds.append(time.monotonic() - due)
        time.sleep(1)

    monkeypatch.setattr(loads, "_insert", insert)
    began = time.monotonic()
    loads._write(cast(Side, None), 3, lambda: 7)
    assert time.monotonic() - began < 10  # all that are due, one after the other, take 15 s
    assert 2 <= len(late_seconds) <= 4
    assert max(late_seconds) < 0.8  # by the clock alone, the second would be late by 0.8


@limited
@pytest.mark.long
def test_sides_take_turns_through_the_gateway_and_in_a_box(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = {case.name: case for section in sections(0) for case in section.cases}
    batches = table["batches of 500, 4 senders; insert_many beside mongod"]
    pages = table["200 open pages beside 3.5 inserts a second"]._replace(sides=(NEW,))
    history = table["a history of 3,000, written to, 0.5 CPU"]

    def brief(title: str, sides: Mapping[str, Start], *cases: Case) -> Section:
        return Section(title, sides, tuple(case._replace(warm_up=False) for case in cases))

    one_stack: Mapping[str, Start] = {NEW: lambda: side(New()), RAW: NEW}
    chosen = [
        brief("Through the gateway", one_stack, batches, pages),
        brief("One box", sections(0)[1].sides, history),
    ]
    monkeypatch.setattr(command, "sections", lambda _: chosen)
    options = ["speed", "--rounds", "1", "--seconds", "0.5", "--output", str(tmp_path)]
    assert command.speed(parser().parse_args(options)) in (0, 1)  # 1: a goal is missed
    assert "wrong answers" not in capsys.readouterr().out
    turns = {
        case: sides for _, case, sides in json.loads((tmp_path / "speed.json").read_text())["turns"]
    }
    assert {case: set(sides) for case, sides in turns.items()} == {
        case.name: set(case.sides) for section in chosen for case in section.cases
    }
    for sides in turns.values():
        for rows in sides.values():
            assert len(rows) == 1
            assert all(row["requests"] for row in rows)
    of_batches = turns[batches.name]
    assert all(row["cpu_seconds"][SERVICES] for row in of_batches[NEW])
    assert all(row["cpu_seconds"]["mongod"] for row in of_batches[RAW])


def test_seeds_are_what_the_loads_ask_for() -> None:
    assert seeds.OF_THE_TABLE[seeds.SHORT_STAFF] == seeds.SHORT
    assert set(range(seeds.LONG_STAFF)) <= set(seeds.OF_THE_TABLE)
    assert sum(seeds.others(1_000_000).values()) == 1_000_000


def test_what_fills_a_database_was_heard_in_turn() -> None:
    at = datetime.datetime.now(datetime.UTC)
    for in_turn, times in ((True, [100, 96, 92, 88, 84]), (False, [100, 96, 92, 100, 96])):
        rows = _detections({1: 3, 2: 2}, 100, at, in_turn=in_turn)
        assert [row["timestamp"] for row in rows] == times
