"""./scripts/load: the source system's load plans, and how the old architecture compares."""

import argparse
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadtests import capacity, check, comparison, generator, report, sides, targets
from loadtests.plans import PLANS
from loadtests.stacks import New, NotStarted, Stack
from mongo.binaries import NoMongod
from scripts.processes.control_groups import LimitsUnavailableError

FAILURES = (LimitsUnavailableError, NotStarted, NoMongod, targets.ForeignTarget, OSError)
SPEEDS = {"retail": 20.0}
PASSED_ON = ("ramp", "pages", "hacs", "only", "rows", "shift")


def main() -> None:
    """Run a command; what goes wrong ends it with one line and status 2."""
    options = parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leaves nothing behind, as Ctrl-C
    try:
        sys.exit(options.command(options))
    except FAILURES as error:
        print(f"load: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit("load: interrupted")


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    whole = argparse.ArgumentParser(prog="./scripts/load", description=__doc__)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="one plan, against a stack of its own or a target"))
    comparison.add_options(commands.add_parser("compare", help="old against new: a report"))
    check.add_options(commands.add_parser("check", help="the figures beside a second tool's"))
    capacity.add_options(commands.add_parser("capacity", help="the highest rates it keeps up with"))
    _add_workload(commands.add_parser("workload", help="retail, sync, archive or fleet"))
    again = commands.add_parser("report", help="write the report again from its CSV files")
    again.add_argument("folder", type=Path)
    again.set_defaults(command=lambda options: report.write(options.folder))
    return whole


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_run)
    parser.add_argument("plan", choices=sorted(PLANS))
    add_target(parser)
    sides.add_options(parser)
    parser.add_argument("--ramp", type=float, help="seconds of each step, at the same rate (60)")
    parser.add_argument("--pages", type=int, help="open monitoring pages, instead of the plan's")
    parser.add_argument("--hacs", help="staff ids that the mock HACS polls, as 0,2")
    parser.add_argument("--only", help="measure only these steps, as 600,3000")
    parser.add_argument("--shift", type=int, help="added to every staff id, to run a plan again")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="CSV file for every request")
    parser.add_argument(
        "--until-it-breaks", action="store_true", help="go on, 20 %% more each time"
    )
    parser.add_argument(
        "--ui", type=int, nargs="?", const=8089, metavar="PORT", help="Locust's page (8089)"
    )


def _add_workload(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_workload)
    parser.add_argument("name", choices=["retail", "sync", "archive", "fleet"])
    add_target(parser)
    parser.add_argument("--seconds", type=float, default=60, help="of retail and fleet (60)")
    parser.add_argument("--speed", type=float, help="of the source's clocks (1; retail: 20)")
    parser.add_argument("--size", type=int, default=1000, help="devices of the fleet (1000)")
    parser.add_argument("--csv", type=Path, help="archive: file for how many waited over time")
    parser.add_argument("--tls", action="store_true", help="with a certificate made for it")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what gets the load."""
    parser.set_defaults(old=False, unoptimised=False, durable=False, tls=False)
    parser.add_argument("--target", help="a running stack's address; without it one is started")
    parser.add_argument("--i-own-this-host", action="store_true", help="it may be another machine")
    parser.add_argument("--services", type=int, default=2, help="how many services (2)")
    parser.add_argument("--no-limits", action="store_true", help="start it without limits")


@contextmanager
def target(options: argparse.Namespace) -> Iterator[tuple[str, Stack | None]]:
    """Yield what gets the load: what the options name, else a stack that lives as long as this."""
    if options.target:
        yield targets.check(options.target, i_own_this_host=options.i_own_this_host), None
        return
    side = sides.chosen(options)
    how = {"services": options.services, "limited": not options.no_limits}
    if options.tls:
        how["tls"] = True
    with sides.SIDES[side](**how) as stack:
        limits = "without limits" if options.no_limits else "0.3 CPU and 64 MiB each"
        print(f"{side}, services: {options.services}, {limits}", flush=True)
        yield stack.url, stack


def _run(options: argparse.Namespace) -> int:
    given = {name: getattr(options, name) for name in PASSED_ON}
    arguments = [text for n, value in given.items() if value for text in (f"--{n}", str(value))]
    if options.pages == 0:
        arguments += ["--pages", "0"]
    for flag in ("until_it_breaks", "i_own_this_host"):
        arguments += [f"--{flag.replace('_', '-')}"] if getattr(options, flag) else []
    with target(options) as (url, _):
        if not options.ui:
            return generator.generate(url, options.plan, arguments)
        print(f"Locust's page: http://127.0.0.1:{options.ui}, the target: {url}", flush=True)
        print("Each start is one run of the plan; Shift makes a next one on other staff.")
        locust = generator.command(url, options.plan, arguments, port=options.ui)
        return subprocess.run(locust, env=generator.environment(), check=False).returncode


def _workload(options: argparse.Namespace) -> int:
    options.speed = options.speed or SPEEDS.get(options.name, 1.0)
    given = ["--workload", options.name]
    for name in ("seconds", "speed", "size"):
        given += [f"--{name}", str(getattr(options, name))]
    if options.csv:
        given += ["--csv-waiting", str(options.csv)]
    with target(options) as (url, stack):
        if isinstance(stack, New):
            services = [f"http://127.0.0.1:{port}" for port in stack.layout.ingest_ports]
            given += ["--mongod", str(stack.pid("mongod")), "--pending", ",".join(services)]
        if options.name != "fleet":
            return generator.generate(url, "PERF-TP-1", given)
        if stack:  # what the first requests take is not the devices'
            few = ["--workload", "fleet", "--size", "200", "--seconds", "1", "--speed", "200"]
            generator.generate(url, "PERF-TP-1", few, quiet=True)
        before = _services_memory(stack)
        status = generator.generate(url, "PERF-TP-1", given)
        if before:
            after = _services_memory(stack)
            each = (after - before) / 1024 / options.size
            print(
                f"  memory of the services: {before / 2**20:.1f} MiB, then {after / 2**20:.1f}: "
                f"{each:+.2f} KiB a device"
            )
    return status


def _services_memory(stack: Stack | None) -> int:
    used = stack.usage() if stack else {}
    return sum(use.anonymous_bytes for name, use in used.items() if name.startswith("ingest-"))


if __name__ == "__main__":
    main()
