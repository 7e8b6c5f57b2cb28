"""What to buy: the plan against what was measured, the source's figures, and its document."""

import math
import re
from pathlib import Path

import pytest

from loadtests.sizing import costs, machines
from loadtests.sizing.__main__ import costs_table, main, sizes_table, told
from loadtests.sizing.plan import (
    Demand,
    cost_at,
    credit_hours,
    crowd_factor,
    disk_gb,
    gateway_need,
    insert_in_shards,
    iops,
    plan,
    rate_of_box,
    shard_need,
    taken,
)

ROOT = Path(__file__).resolve().parents[2]
YEAR = 365.0
SOURCE = Demand(14, 4, 14, YEAR)
# What the box of docs/measurements.md was given: nothing was sealed, two people were pulled.
PEOPLE = Demand(14, 4, 2, 2)
PEAK = Demand(14, 0.4, 2, 2)


def box_of_histories(cores: float) -> float:
    cost = costs.READ_SERVICES.value + costs.READ_GATEWAY.value + costs.READ_MONGOD.value
    return cores / (cost * 1e-6)


def with_people(people: int) -> float:
    """Return CPU µs of an insert at 32 connections where so many people are."""
    grouped = costs.GROUPED
    return grouped.services + grouped.gateway + grouped.mongod * crowd_factor(people)


# docs/capacity.md has the same rows.
CHECKS = {
    "the box with 3.5/s, CPU s a minute": (taken(PEOPLE).total * 60, 4.01),
    "the box with 35/s, CPU s a minute": (taken(PEAK).total * 60, 10.59),
    "inserts/s of a box of 1.0 CPU": (rate_of_box(1.0), 3469),
    "of 0.6 CPU": (rate_of_box(0.6), 1588),
    "of 0.5 CPU": (rate_of_box(0.5), 1468),
    "of 0.2 CPU": (rate_of_box(0.2), 477),
    "histories/s of a box of 1.0 CPU": (box_of_histories(1.0), 645),
    "of 0.6 CPU, histories": (box_of_histories(0.6), 429),
    "of 0.5 CPU, histories": (box_of_histories(0.5), 275),
    "an insert with 5,000 people, times one with 14": (with_people(5_000) / with_people(14), 1.22),
    "with 50,000 people": (with_people(50_000) / with_people(14), 1.49),
}


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_what_is_predicted_was_measured(name: str) -> None:
    predicted, measured = CHECKS[name]
    assert 0.7 <= predicted / measured <= 1.4


def test_the_document_has_the_tables_that_are_computed() -> None:
    document = (ROOT / "docs/capacity.md").read_text()
    assert costs_table() in document  # else: ./scripts/capacity-plan --tables
    assert sizes_table() in document
    for name, (predicted, measured) in CHECKS.items():
        row = f"| {name} | {predicted:,.4g} | {measured:,g} | {predicted / measured:.2f} |"
        assert row in document, row


def test_each_source_is_a_section_with_the_figure() -> None:
    measurements = (ROOT / "docs/measurements.md").read_text()
    speed = (ROOT / "docs/playbook-run/speed.md").read_text()
    for cost in (costs.READ_SERVICES, costs.READ_GATEWAY, costs.READ_MONGOD):
        assert re.search(rf"the same, written to .*\| {cost.value:g} \(", speed)
    for cost in (costs.SEALED, costs.SEAL_SERVICES, costs.SEAL_MONGOD):
        assert f"{cost.value:g}" in measurements
    for line in costs.INSERTS:
        for value in (line.services, line.gateway, line.mongod):
            assert re.search(rf"CPU µs each .*\| {value:,}( \(|  *\|)", speed), value


def test_the_sources_phones_and_readers_are_its_rates() -> None:
    assert SOURCE.rate == 3.5  # 210 a minute
    assert SOURCE.reads == pytest.approx(1.433, abs=0.04)  # with one page each 30 s


def test_the_sources_box_suffices_for_it() -> None:
    bought = plan(SOURCE)
    assert [part.machine.name for part in bought.parts] == ["t2.micro"]
    assert bought.breaks_first.used < 1


@pytest.mark.parametrize(
    ("people", "interval", "cpus"),
    [
        (1_000, 200, 1),  # the fleet's stability runs, and the vCPUs that the source gave them
        (3_000, 200, 2),
        (10_000, 200, 4),
        (40_000, 200, 8),
        (50, 50 / 336, 2),  # the shop's peak, on a laptop
    ],
)
def test_what_the_sources_other_systems_needed_is_enough(
    people: int, interval: float, cpus: int
) -> None:
    bought = plan(Demand(people, interval, 0, YEAR))
    assert bought.members == 1
    assert bought.parts[0].machine.cpus <= cpus


def test_ten_times_the_load_is_paid_of_credits_for_a_day() -> None:
    # The playbook's second step; its steps take a minute each.
    box = machines.BOXES[0]
    assert credit_hours(box, taken(SOURCE).total) == math.inf
    assert credit_hours(box, taken(SOURCE._replace(interval=0.4)).total) > 24
    assert credit_hours(box, 1.0) == pytest.approx(144 / 60 / 0.9)


def test_between_what_was_measured_the_cost_falls_with_the_rate() -> None:
    rates = (1, 35, 50, 63, 300, 596, 1500, 3021, 10_000)
    services = [cost_at(rate).services for rate in rates]
    assert services == sorted(services, reverse=True)
    assert cost_at(1) == costs.INSERTS[0]
    assert cost_at(63).mongod == pytest.approx(1381)
    assert cost_at(10_000).mongod == pytest.approx(costs.GROUPED.mongod)


def test_a_crowd_costs_more_and_goes_on_so() -> None:
    assert [crowd_factor(people) for people in (1, 14, 5_000, 50_000)] == [1, 1, 1.67, 2.13]
    assert crowd_factor(500_000) == pytest.approx(2.13 + 0.46)


def test_groups_thin_out_over_shards() -> None:
    assert insert_in_shards(1) == pytest.approx(costs.GROUPED.mongod)
    # Alone in its command, as over one connection.
    assert insert_in_shards(16) == pytest.approx(costs.INSERTS[2].mongod, rel=0.01)
    assert insert_in_shards(1000) == insert_in_shards(16)


def test_the_disk_has_rows_for_two_days_and_blocks_for_the_rest() -> None:
    kept = [disk_gb(Demand(14, 4, 0, days), 1) for days in (1, 2, 3, 367)]
    rows = 3.5 * 86_400 * 270 / 1e9 / 0.6
    blocks = 3.5 * 86_400 * 6.71 / 1e9 / 0.6
    assert kept[1] - kept[0] == pytest.approx(rows)
    assert kept[2] - kept[1] == pytest.approx(blocks)
    assert kept[3] - kept[1] == pytest.approx(365 * blocks)


def test_writes_are_bounded_by_people_and_by_the_journal() -> None:
    assert iops(Demand(60, 60, 0, 1), 1) == pytest.approx(1 + 2)
    assert iops(Demand(60, 0.01, 0, 1), 1) == pytest.approx(596 + 2)


@pytest.mark.parametrize("people", [14, 140, 1_000, 5_000, 20_000, 100_000, 1_000_000, 10_000_000])
def test_what_is_bought_suffices(people: int) -> None:
    demand = Demand(people, 4, people, YEAR)
    bought = plan(demand)
    for limit in bought.limits:
        assert not limit.widened or limit.used <= 1.001, limit
    if bought.shards > 1:  # and one less does not
        assert shard_need(demand, bought.shards - 1) > 0.6 * machines.SHARD_MEMBERS.cpus
    assert bought.money < plan(demand._replace(people=2 * people)).money or people < 1_000


def test_where_each_part_has_machines_one_may_be_lost() -> None:
    demand = Demand(20_000, 4, 20_000, YEAR)
    gateways = plan(demand).parts[0]
    left = (gateways.machines - 1) * gateways.machine.cpus * 0.6
    assert gateway_need(demand, tls=True) <= left


def test_a_plan_is_told_with_what_breaks_first(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--people", "3000", "--readers", "0"])
    said = capsys.readouterr().out
    assert "750.0/s, 0.0 histories/s" in said
    assert "breaks first: `/retrieveformonitoring`: 193%" in said
    assert "no machine widens `/retrieveformonitoring`" in said
    assert "a full account of credits" in told(plan(SOURCE))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--people", "0"], "--people: 0 is not from 1 to"),
        (["--people", "10000001"], "--people: 10000001 is not"),
        (["--people", "x"], "--people: invalid int value"),
        (["--interval", "nan"], "--interval: nan is not from 0.1 to"),
        (["--readers", "-1"], "--readers: -1 is not from 0 to"),
        (["--retention", "0"], "--retention: 0.0 is not from 1 to"),
    ],
)
def test_what_is_no_demand_is_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert problem in capsys.readouterr().err
