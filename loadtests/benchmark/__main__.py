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
from loadtests.report.document import table
from mongo import topology
from scripts.processes import ROOT
from scripts.processes.cluster import DIRECTORY, Cluster
from scripts.processes.control_groups import LimitsUnavailableError

WARM_UP_SECONDS = 1.0

Parts = defaultdict[str, list[Result]]  # one service's results of all turns, by part of the case


class Benchmark:
    """Cases on one database: this checkout's service in turns with another's, or the old one."""

    def __init__(self, cluster: Cluster, options: argparse.Namespace) -> None:
        self._cluster = cluster
        self._seconds: float = options.seconds
        self._rounds: int = options.rounds
        self._against: Path | None = options.against and options.against.resolve()
        self._old: dict[str, Parts] = {"": Parts(list)}  # by case, for others

    def run(self, wanted: list[str]) -> bool:
        """Print a line for each case; tell whether all targets were reached."""
        other = f"other: {commit(self._against)}" if self._against else "old"
        times = ("times as fast", "times less CPU")  # median and range of neighbouring turns
        heads = ("case", other, f"new: {commit(ROOT)}", *times, "target")
        print(table(heads, []), flush=True)
        reached, peaks = True, [0.0]
        for case in CASES:
            if not wanted or any(word in case.name for word in wanted):
                for one in self._compare(case):
                    peaks += [turn.peak_mib for turn in one.new]
                    reached = reached and one.reached()
                    print(f"| {' | '.join(one.cells())} |", flush=True)
        missed = "" if max(peaks) <= PEAK_MIB else " MISSED"
        print(f"| peak memory {max(peaks):.0f} MiB | | | | | <= {PEAK_MIB} MiB{missed} |")
        return reached and not missed

    def _compare(self, case: Case) -> list[Comparison]:
        """Measure a case; from round to round the other one begins."""
        other, new = Parts(list), Parts(list)
        turns = [(self._against, other), (ROOT, new)]
        if self._against:  # A B B A: none is always the second one
            turns += turns[::-1]
        if not self._against and case.old_case is not None:
            other = self._measured_old(case.old_case)
            del turns[0]
        for number in range(self._rounds):
            for checkout, results in turns[:: -1 if number % 2 else 1]:
                self._turn(case, checkout, results)
        self._old[case.name] = other
        is_checkout = bool(self._against)
        return [Comparison(case, part, other[part], new[part], is_checkout) for part in sorted(new)]

    def _measured_old(self, name: str) -> Parts:
        """Return the old service's results in another case; none without a name."""
        if name not in self._old:
            case = next(one for one in CASES if one.name == name)
            self._old[name] = Parts(list)
            for _ in range(self._rounds):
                self._turn(case, None, self._old[name])
        return self._old[name]

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
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=benchmark.__doc__, formatter_class=raw)
    parser.add_argument("--rounds", type=int, default=3, help="of all turns of a case (3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement (3)")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="instead of the old one")
    parser.add_argument("cases", nargs="*", help="parts of their names; all without")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="waymark-benchmark-"))
    cluster = Cluster(topology.load(topology.EMBEDDED), folder)
    try:
        with cluster.running(DIRECTORY):
            prepare(cluster.uri())
            sys.exit(not Benchmark(cluster, options).run(options.cases))
    except LimitsUnavailableError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
