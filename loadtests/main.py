"""./scripts/load: the source system's load plans, and how the old architecture compares."""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadtests import architectures, capacity, check, targets
from loadtests.architectures import ARCHITECTURES, NEW, OLD, Stack
from loadtests.comparison import compare
from loadtests.engine import generator
from loadtests.engine.generator import generate
from loadtests.headroom import command as headroom
from loadtests.plans import PLANS
from loadtests.report import report
from mongo.binaries import NoMongod
from scripts.processes.control_groups import LimitsUnavailableError
from scripts.processes.process import NotHealthyError

FAILURES = (LimitsUnavailableError, NotHealthyError, NoMongod, targets.ForeignTarget, OSError)
WARM_UP = {"workload": "fleet", "size": 200, "seconds": 1, "speed": 200}


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
    compare.add_options(commands.add_parser("compare", help="old against new: a report"))
    check.add_options(commands.add_parser("check", help="the figures beside a second tool's"))
    capacity.add_options(commands.add_parser("capacity", help="the highest rates it keeps up with"))
    headroom.add_options(
        commands.add_parser("headroom", help="whether anything brings a part down")
    )
    _add_workload(commands.add_parser("workload", help="retail, sync, archive or fleet"))
    again = commands.add_parser("report", help="write the report again from its CSV files")
    again.add_argument("folder", type=Path)
    again.set_defaults(command=lambda options: report.write(options.folder))
    return whole


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_run, tls=False)
    parser.add_argument("plan", choices=sorted(PLANS))
    _add_target(parser)
    architectures.add_options(parser)
    generator.declare(parser, generator.PLAN)
    page = "Locust's page (8089)"
    parser.add_argument(
        "--ui", type=int, nargs="?", const=8089, default=0, metavar="PORT", help=page
    )


def _add_workload(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_workload, form=NEW, old=False)
    parser.add_argument("name", choices=["retail", "sync", "archive", "fleet"])
    _add_target(parser)
    generator.declare(parser, generator.WORKLOAD)
    parser.add_argument("--csv", default="", help="archive: file for how many waited over time")
    parser.add_argument("--tls", action="store_true", help="with a certificate made for it")


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", help="a running stack's address; without it one is started")
    generator.declare(parser, generator.TARGET)
    parser.add_argument("--services", type=int, default=2, help="how many services (2)")
    parser.add_argument("--no-limits", action="store_true", help="start it without limits")


@contextmanager
def _target(options: argparse.Namespace) -> Iterator[tuple[str, Stack | None]]:
    """Yield what gets the load: what the options name, else a stack that lives as long as this."""
    if options.target:
        yield targets.check(options.target, i_own_this_host=options.i_own_this_host), None
        return
    name = options.form or (OLD if options.old else NEW)
    how = {"services": options.services, "limited": not options.no_limits}
    with ARCHITECTURES[name](**how | ({"tls": True} if options.tls else {})) as stack:
        limits = "without limits" if options.no_limits else "0.3 CPU and 64 MiB each"
        print(f"{name}, services: {options.services}, {limits}", flush=True)
        yield stack.url, stack


def _run(options: argparse.Namespace) -> int:
    given = generator.chosen(options, generator.PLAN, generator.TARGET)
    with _target(options) as (url, _):
        if options.ui:
            print(f"Locust's page: http://127.0.0.1:{options.ui}, the target: {url}", flush=True)
            print("Each start is one run of the plan; Shift makes a next one on other staff.")
        return generate(url, options.plan, given, ui_port=options.ui)


def _workload(options: argparse.Namespace) -> int:
    given = generator.chosen(options, generator.WORKLOAD, generator.TARGET)
    given |= {"workload": options.name, "csv_waiting": options.csv}
    with _target(options) as (url, stack):
        if stack:
            services = [f"http://127.0.0.1:{port}" for port in stack.ingest_ports]
            given |= {"mongod": stack.pid("mongod"), "pending": ",".join(services)}
        if stack and options.name == "fleet":  # what the first requests take is not the devices'
            generate(url, "PERF-TP-1", WARM_UP, quiet=True)
        before = _services_memory(stack)
        status = generate(url, "PERF-TP-1", given)
        if before and options.name == "fleet":
            after = _services_memory(stack)
            each = (after - before) / 1024 / options.size
            memory = f"{before / 2**20:.1f} MiB, then {after / 2**20:.1f}"
            print(f"  memory of the services: {memory}: {each:+.2f} KiB a device")
    return status


def _services_memory(stack: Stack | None) -> int:
    used = stack.usage() if stack else {}
    return sum(used[name].anonymous_bytes for name in used if name.startswith("ingest-"))


if __name__ == "__main__":
    main()
