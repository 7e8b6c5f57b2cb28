"""./scripts/load capacity: the highest arrival rate that one and two services keep up with."""

import argparse
from pathlib import Path

from loadtests.comparison import DEFAULT_OUTPUT
from loadtests.figures import read_rows, summary, write_csv
from loadtests.generator import generate
from loadtests.plans import PLANS, RAMP_SECONDS
from loadtests.stacks import New, Old

PREFIX = "CAP-"
HEADER = ("side", "services", "what", "rate", "detections_or_documents", "p99_ms")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=capacity)
    parser.add_argument("--p99", type=float, default=500.0, help="limit in ms (500)")
    parser.add_argument("--ramp", type=float, default=5.0, help="seconds of each try (5)")
    parser.add_argument("--services", type=int, nargs="+", default=[1, 2], help="how many (1 2)")
    parser.add_argument("--only", default="", help="such as INSERT,EXTRACT-3000")
    parser.add_argument("--old", action="store_true", help="of the old architecture (no batches)")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="folder (load-report)")


def capacity(options: argparse.Namespace) -> int:
    """Search and print; each figure stands also in capacity.csv."""
    options.output.mkdir(parents=True, exist_ok=True)
    wanted = [PREFIX + name for name in options.only.split(",") if name]
    names = wanted or [name for name in PLANS if name.startswith(PREFIX)]
    found = [
        (kind.name, services, PLANS[name].text, *_search(options, name, kind, services))
        for kind in ([Old] if options.old else [New])
        for services in options.services
        for name in names
        if not (options.old and "BATCH" in name)
    ]
    write_csv(options.output / "capacity.csv", found, HEADER)
    print(f"\nwith p99 <= {options.p99:.0f} ms and no error:")
    for side, services, what, rate, each, p99 in found:
        one = "1 service " if services == 1 else f"{services} services"
        print(
            f"  {side}, {one}: {rate:8.1f} {what} a second ({each:,.0f} in all), p99 {p99:.0f} ms"
        )
    return 0


def _search(
    options: argparse.Namespace, name: str, kind: type[New | Old], services: int
) -> tuple[float, float, float]:
    """Return arrivals/s, detections or documents/s, and the p99 there."""
    print(f"{kind.name}, {services} services, {PLANS[name].text}", flush=True)
    rows = options.output / f"capacity-{kind.name}-{services}-{name}.csv"
    with kind(services=services) as stack:
        generate(
            stack.url, name, ["--ramp", str(options.ramp), "--p99", str(options.p99)], rows=rows
        )
    step = PLANS[name].steps[0]
    tries: dict[str, list[float]] = {}
    every = [row for row in read_rows(rows) if row.name == step.kind]
    for threads in {row.step for row in every}:
        figures = summary([row for row in every if row.step == threads])
        tries[threads] = [figures.p99, figures.errors + figures.verification_errors]
    kept = [int(n) for n, (p99, wrong) in tries.items() if p99 <= options.p99 and not wrong]
    if not kept:
        return 0.0, 0.0, 0.0
    rate = max(kept) / RAMP_SECONDS
    each = step.batch if step.kind == "batch" else sum(count for _, count in step.fill) or 1
    return rate, rate * each, tries[str(max(kept))][0]
