"""Measure what the Docker stack of this machine takes, and hold it to the budgets of the 1 GB box.

The table has MiB: the limit, what each part has now and had at its peak (both with page cache),
anonymous memory (which cannot be given back) now and at most meanwhile, its share of the pages of
programs that are mapped; and CPU seconds a minute. The engine is dockerd, containerd, their shims
and proxies with all that they started: the health checks too, but for what these took inside.

Budgets of CPU seconds a minute, containers and engine together: idle 2.5; people 5 (fourteen
phones, 3.5 detections/s, HACS and two pages); peak 13 (35/s). Of memory: 983 MiB for everything.
They were measured with stand-ins for a part of the cluster; a whole one may take 3.4 when idle
(docs/measurements.md, "The whole box").

--first-run, on a new machine: ten minutes, each container beside what the source's took, and which
limits of memory to raise. Let phones send meanwhile, or give --load and --drive.
"""

import argparse
import sys
from contextlib import nullcontext

from scripts.box import budget, docker, first_run
from scripts.box.load import Load
from scripts.box.measuring import measure

WARM_UP_SECONDS = 10.0
SECONDS, FIRST_RUN_SECONDS = 120.0, 600.0


def main() -> int:
    """Measure and print; return 0 within the budgets, 1 if not, 2 when there is no stack."""
    parser = argparse.ArgumentParser(
        prog="./scripts/budget",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status: 0 within the budgets, 1 over one or when the load was not answered, "
        "2 when there is nothing to measure.",
    )
    loads = tuple(budget.BUDGETS)
    long = "how long (120, a first run 600: in shorter times may be no health check, or too many)"
    parser.add_argument("--seconds", type=float, help=long)
    first = "each container beside its limit and the source's, and which limits to raise"
    parser.add_argument("--first-run", action="store_true", help=first)
    parser.add_argument("--load", choices=loads, help="the load that runs, which has a budget")
    parser.add_argument("--drive", metavar="URL", help="make that load, at this gateway")
    parser.add_argument("--project", default="waymark", help="the compose project (waymark)")
    options = parser.parse_args()
    if options.drive and not options.load:
        parser.error("--drive needs --load")
    load = Load(options.drive, options.load) if options.drive else None
    seconds = options.seconds or (FIRST_RUN_SECONDS if options.first_run else SECONDS)
    try:
        containers, daemon = docker.containers(options.project), docker.daemon()
        with load.running() if load else nullcontext():
            if load:
                measure(containers, daemon, WARM_UP_SECONDS)
            measured = measure(containers, daemon, seconds)
    except (docker.NoStackError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    wrong = budget.problems(measured, options.load) + (load.problems() if load else [])
    print(budget.report(measured, options.load, wrong))
    if options.first_run:
        print(f"\n{first_run.report(measured)}")
    if load:
        counts = (f"{name} {status}: {n}" for (name, status), n in sorted(load.statuses.items()))
        print(f"Answers: {', '.join(counts)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
