"""Runs the cases and prints a table; exits with 1 when a target is missed."""

import argparse
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from loadtests import benchmark
from loadtests.benchmark.cases import CASES, PEAK_MIB, Case
from loadtests.benchmark.loads import Target
from loadtests.benchmark.results import Comparison, Result, result
from loadtests.benchmark.services import prepare, service, stored
from loadtests.comparison.machine import commit
from loadtests.engine.client import Api
from loadtests.tables import Table
from mongo import topology
from scripts.processes import ROOT
from scripts.processes.cluster import DIRECTORY, Cluster
from scripts.processes.control_groups import LimitsUnavailableError

WARM_UP_SECONDS = 1.0

Parts = dict[str, list[Result]]  # one service's results of all turns, by the part of a case


class Benchmark:
    """Cases on one database: this checkout's service in turns with another's, or the old one."""

    def __init__(self, cluster: Cluster, seconds: float, rounds: int, against: Path | None) -> None:
        self._cluster = cluster
        self._seconds = seconds
        self._rounds = rounds
        self._against = against
        self._old: dict[str, Parts] = {}  # by case: what others are compared with

    def compare(self, case: Case) -> list[Comparison]:
        """Measure a case; from round to round the other one begins."""
        other: Parts = defaultdict(list)
        new: Parts = defaultdict(list)
        turns = [(self._against, other), (ROOT, new)]
        if self._against:
            turns *= 2
        elif case.old_case is not None:
            del turns[0]
            other = self._measured_old(case.old_case)
        for number in range(self._rounds):
            for checkout, results in turns[:: -1 if number % 2 else 1]:
                self._turn(case, checkout, results)
        self._old[case.name] = other
        return [Comparison(case, part, other.get(part, []), new[part]) for part in sorted(new)]

    def _measured_old(self, name: str) -> Parts:
        """Return the old service's results in another case; none without a name."""
        for case in CASES:
            if case.name == name and name not in self._old:
                self._old[name] = defaultdict(list)
                for _ in range(self._rounds):
                    self._turn(case, None, self._old[name])
        return self._old.get(name, {})

    def _turn(self, case: Case, checkout: Path | None, results: Parts) -> None:
        """Start a service (or two), warm it up, measure it, stop it."""
        uri, folder = self._cluster.uri(), self._cluster.folder
        with ExitStack() as started:
            services = [service(uri, folder, checkout) for _ in range(case.services)]
            for one in services:
                started.enter_context(one)
            groups = [one.group for one in services if one.group]
            apis = [Api(f"http://127.0.0.1:{one.port}") for one in services]
            target = Target(apis, self._seconds, partial(stored, uri))
            if case.before:
                case.before(target._replace(seconds=WARM_UP_SECONDS))
            for api in apis:
                api.rows.clear()
            before = [group.usage() for group in groups]
            case.load(target)
            after = [group.usage() for group in groups]
        rows = [row for api in apis for row in api.rows]
        for part in {row.name for row in rows}:
            some = [row for row in rows if row.name == part]
            results[part].append(result(case, some, before, after))


def main() -> None:
    """Run the cases named, or all, and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m loadtests.benchmark",
        description=benchmark.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="instead of the old one")
    parser.add_argument("cases", nargs="*", help="parts of their names; all without")
    options = parser.parse_args()
    against = options.against and options.against.resolve()
    cluster = Cluster(
        topology.load(topology.EMBEDDED), Path(tempfile.mkdtemp(prefix="waymark-benchmark-"))
    )
    try:
        with cluster.running(DIRECTORY):
            prepare(cluster.uri())
            measured = Benchmark(cluster, options.seconds, options.rounds, against)
            sys.exit(int(not _all(measured, against, options.cases)))
    except LimitsUnavailableError as error:
        sys.exit(str(error))


def _all(measured: Benchmark, against: Path | None, wanted: list[str]) -> bool:
    """Print a line for each case; tell whether all targets were reached."""
    other = f"other: {commit(against)}" if against else "old"
    times = ("times as fast", "times less CPU")  # median and range of neighbouring turns
    heads = ("case", other, f"new: {commit(ROOT)}", *times, "target")
    print(Table(heads, []).markdown(), end="", flush=True)
    reached, peaks = True, [0.0]
    for case in CASES:
        if not wanted or any(word in case.name for word in wanted):
            for one in measured.compare(case):
                peaks += [turn.peak_mib for turn in one.new]
                reached = reached and one.reached(against_checkout=bool(against))
                print(f"| {' | '.join(one.cells(against_checkout=bool(against)))} |", flush=True)
    small = max(peaks) <= PEAK_MIB
    verdict = f"<= {PEAK_MIB} MiB{'' if small else ' MISSED'}"
    print(f"| peak memory {max(peaks):.0f} MiB | | | | | {verdict} |")
    return reached and small


if __name__ == "__main__":
    main()
