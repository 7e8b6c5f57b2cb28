"""Tell what to buy for so many people: ./scripts/capacity-plan --people N (docs/capacity.md)."""

import argparse
from collections.abc import Sequence

from loadtests.sizing.costs import COSTS, INSERTS
from loadtests.sizing.machines import PRICES_OF
from loadtests.sizing.plan import LARGEST, Demand, Limit, Part, Plan, credit_hours, plan, taken

SIZES = (14, 140, 1_000, 5_000, 20_000, 100_000, 1_000_000, 10_000_000)
INTERVAL, RETENTION = 4.0, 365.0  # the source's phones; a year


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the plan, or with --tables those of docs/capacity.md."""
    parser = argparse.ArgumentParser(prog="./scripts/capacity-plan", description=__doc__)
    parser.add_argument("--people", type=int, default=14, help="who walk with a phone (14)")
    parser.add_argument(
        "--interval", type=float, default=INTERVAL, help="seconds between two detections of one (4)"
    )
    parser.add_argument(
        "--readers", type=int, help="who pull a history each 10 s, as HACS does (as many as people)"
    )
    parser.add_argument(
        "--retention", type=float, default=RETENTION, help="days that detections are kept (365)"
    )
    parser.add_argument(
        "--tables", action="store_true", help="print the tables of docs/capacity.md"
    )
    options = parser.parse_args(arguments)
    if options.tables:
        print(costs_table(), sizes_table(), sep="\n\n")
        return
    readers = options.people if options.readers is None else options.readers
    for name, value, least, most in (
        ("--people", options.people, 1, LARGEST),
        ("--interval", options.interval, 0.1, 86_400),
        ("--readers", readers, 0, LARGEST),
        ("--retention", options.retention, 1, 36_500),
    ):
        if not least <= value <= most:  # a NaN is neither
            parser.error(f"{name}: {value} is not from {least} to {most}")
    print(told(plan(Demand(options.people, options.interval, readers, options.retention))))


def told(bought: Plan) -> str:
    """Return a plan for people."""
    demand = bought.demand
    lines = [
        f"{demand.people:,} people, a detection each {demand.interval:g} s: {demand.rate:,.1f}/s, "
        f"{demand.reads:,.1f} histories/s, kept for {demand.retention:g} days",
        f"gateways {bought.gateways:,}, ingest services {bought.services:,}, "
        f"shards {bought.shards:,}, members of each {bought.members}",
        "",
        *(_told_part(part) for part in bought.parts),
        *(_told_credits(part, demand) for part in bought.parts if part.machine.credits),
        "",
        f"${bought.money:,.0f} a month, without traffic; prices as remembered on {PRICES_OF}",
        f"breaks first: {_told_limit(bought.breaks_first)}",
        f"first of what machines widen: {_told_limit(bought.machines_break_first)}",
    ]
    lines += [
        f"no machine widens {_told_limit(limit)}"
        for limit in bought.limits
        if not limit.widened and limit.used > 1
    ]
    if bought.members == 1:
        lines.append("one box: nothing takes over while it is away, and phones keep what they have")
    return "\n".join(lines)


def _told_part(part: Part) -> str:
    return (
        f"{part.machines:,} x {part.machine.name} for {part.name}: each {part.used:.2f} of "
        f"{part.machine.cpus} vCPU, {part.disk_gb:,.0f} GB gp3, {part.iops:,.0f} IOPS"
    )


def _told_credits(part: Part, demand: Demand) -> str:
    tenfold = demand._replace(interval=demand.interval / 10)
    hours = credit_hours(part.machine, taken(tenfold).total)
    return f"with ten times the detections a full account of credits lasts {hours:.1f} h"


def _told_limit(limit: Limit) -> str:
    return f"{limit.name}: {limit.used:,.0%} of what it bears is used"


def costs_table() -> str:
    """Return the table of costs in Markdown."""
    lines = ["| CPU of a detection, at a rate | services | gateway | mongod |", "|---|---|---|---|"]
    lines += [
        f"| {cost.rate:,}/s | {cost.services:,} µs | {cost.gateway:,} µs | {cost.mongod:,} µs |"
        for cost in INSERTS
    ]
    lines += ["", "| what | figure | source |", "|---|---|---|"]
    for cost in COSTS:
        section = cost.source.partition("#")[2].replace("-", " ")
        source = f"[{section}]({cost.source})" if section else cost.source
        lines.append(f"| {cost.meaning} | {f'{cost.value:,g} {cost.unit}'.strip()} | {source} |")
    return "\n".join(lines)


def sizes_table() -> str:
    """Return what to buy from the smallest to the largest size, in Markdown."""
    head = (
        "people, each 4 s",
        "gateways, services, shards x members",
        "machines",
        "disk, IOPS of a member",
        "$ a month",
        "breaks first",
        "of what machines widen",
    )
    rows: list[Sequence[str]] = [head, ["---"] * len(head)]
    for people in SIZES:
        bought = plan(Demand(people, INTERVAL, people, RETENTION))
        member = max(bought.parts, key=lambda part: part.disk_gb)
        rows.append(
            [
                f"{people:,}",
                f"{bought.gateways:,}, {bought.services:,}, {bought.shards:,} x {bought.members}",
                ", ".join(f"{part.machines:,} {part.machine.name}" for part in bought.parts),
                f"{member.disk_gb:,.0f} GB, {member.iops:,.0f}",
                f"{bought.money:,.0f}",
                *(
                    f"{limit.name}, {limit.used:,.0%}"
                    for limit in (bought.breaks_first, bought.machines_break_first)
                ),
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
