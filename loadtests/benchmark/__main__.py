"""The ingest service alone, inside 0.3 CPU and 64 MiB, in turns with another one.

    .venv/bin/python -m loadtests.benchmark [--against CHECKOUT] [--rounds 3] [--seconds 3] [CASE]

The other is the old architecture's (loadtests/baseline), or that of another checkout of this
repository. Both work on the same real mongod, which runs outside the limits like the load itself.
Every response is verified: a history that is written to while it is read must hold all that was
acknowledged before the question and nothing that nobody sent.
Prints a table; exits with 1 when a target is missed.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from loadtests import refusals
from loadtests.benchmark.cases import CASES, PEAK_MIB, Case
from loadtests.benchmark.loads import Target
from loadtests.benchmark.results import Comparison, Result, result
from loadtests.benchmark.services import prepare, service, stored
from loadtests.comparison.compare import commit
from loadtests.engine.client import Api
from loadtests.held_back import Meter
from loadtests.report.document import line, table
from mongo import topology
from scripts.processes import ROOT
from scripts.processes.cluster import DIRECTORY, Cluster
from scripts.processes.control_groups import LimitsUnavailableError

WARM_UP_SECONDS = 1.0

Parts = dict[str, list[Result]]  # of one service, by part of the case


def main() -> None:
    """Run the cases named, or all, and print a table."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rounds", type=int, default=3, help="of all turns of a case (3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement (3)")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="instead of the old one")
    parser.add_argument("cases", nargs="*", help="parts of their names; all without")
    options = parser.parse_args()
    chosen = [case for case in CASES if refusals.is_named(case.name, options.cases)]
    try:
        refusals.check(options)
        refusals.check_cases(chosen, options.cases)
        with tempfile.TemporaryDirectory(prefix="waymark-benchmark-") as folder:
            cluster = Cluster(topology.load(topology.EMBEDDED), Path(folder))
            with cluster.running(DIRECTORY):
                prepare(cluster.uri())
                sys.exit(not run(cluster, chosen, options))
    except refusals.Refused as error:
        parser.error(str(error))
    except LimitsUnavailableError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("benchmark: interrupted")


def run(cluster: Cluster, cases: Sequence[Case], options: argparse.Namespace) -> bool:
    """Print a line for each case; tell whether all targets were reached."""
    against: Path | None = options.against and options.against.resolve()
    other = f"other: {commit(against)}" if against else "old"
    times = ("times as fast", "times less CPU")  # median and range of neighbouring turns
    print(table(["case", other, f"new: {commit(ROOT)}", *times, "target"], []), flush=True)
    reached, peak = True, 0.0
    for case in cases:
        for comparison in compare(cluster, case, against, options):
            peak = max(peak, *(turn.peak_mib for turn in comparison.new))
            reached = reached and comparison.reached()
            print(line(comparison.cells()), flush=True)
    missed = "" if peak <= PEAK_MIB else " MISSED"
    print(f"| peak memory {peak:.0f} MiB | | | | | <= {PEAK_MIB} MiB{missed} |")
    return reached and not missed


def compare(
    cluster: Cluster, case: Case, against: Path | None, options: argparse.Namespace
) -> list[Comparison]:
    """Measure this checkout's service in turns with another's, or with the old one.

    From round to round the other one begins. Two checkouts take the turns A B B A, so that none is
    always the second one.
    """
    turns = [False, True, True, False] if against else [True] if case.paced else [False, True]
    other, new = Parts(), Parts()
    for number in range(options.rounds):
        for is_new in turns[:: -1 if number % 2 else 1]:
            results = new if is_new else other
            for part, part_result in turn(
                cluster, case, ROOT if is_new else against, options.seconds
            ):
                results.setdefault(part, []).append(part_result)
    is_checkout = bool(against)
    return [
        Comparison(case, part, other.get(part, []), new[part], is_checkout) for part in sorted(new)
    ]


def turn(
    cluster: Cluster, case: Case, checkout: Path | None, seconds: float
) -> Iterator[tuple[str, Result]]:
    """Start a service (or two), warm it up, measure it, stop it; yield what each part took."""
    if case.old_load and not checkout:
        case = case._replace(load=case.old_load, before=case.old_load, per_request=1)
    uri, folder = cluster.uri(), cluster.folder
    with ExitStack() as started:
        services = [
            started.enter_context(service(uri, folder, checkout)) for _ in range(case.services)
        ]
        target = Target([Api(url) for url, _ in services], seconds, partial(stored, uri))
        if case.before:
            case.before(target._replace(seconds=WARM_UP_SECONDS))
        for api in target.apis:
            api.rows.clear()
        groups = [process.group for _, process in services if process.group]
        before, meter = [group.usage() for group in groups], Meter()
        with meter.running():
            case.load(target)
        after = [group.usage() for group in groups]
    rows = [row for api in target.apis for row in api.rows]
    for part in {row.name for row in rows}:
        yield part, result(case, [row for row in rows if row.name == part], before, after, meter)


if __name__ == "__main__":
    main()
