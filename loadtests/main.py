"""./scripts/load: the source system's load plans, and how the old architecture compares."""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from loadtests import architectures, capacity, gateway_log, refusals, targets
from loadtests.architectures import ARCHITECTURES, NEW, New
from loadtests.comparison import collapse, compare
from loadtests.comparison.compare import DEFAULT_OUTPUT
from loadtests.engine import generator, pages
from loadtests.engine.client import WrongResponse
from loadtests.engine.generator import generate
from loadtests.headroom import command as headroom
from loadtests.jmeter import command as jmeter
from loadtests.jmeter import jmx
from loadtests.plans import CAPACITY, PLANS, RAMP_SECONDS
from loadtests.report import report
from loadtests.speed import command as speed
from loadtests.stack import Stack
from loadtests.workloads import PUSH_SECONDS, WORKLOADS, device_memory
from mongo.binaries import NoMongod
from scripts.processes import ports
from scripts.processes.control_groups import LimitsUnavailableError
from scripts.processes.process import NotHealthyError

FAILURES = (LimitsUnavailableError, NotHealthyError, NoMongod, OSError)
REFUSALS = (targets.ForeignTarget, targets.DeadTarget, refusals.Refused, WrongResponse)
WARM_UP_DEVICES = 20


def main() -> None:
    """Run a command; what goes wrong ends it with one line and status 2."""
    options = parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leaves nothing behind, as Ctrl-C
    try:
        refusals.check(options)
        sys.exit(options.command(options))
    except FAILURES + REFUSALS as error:
        print(f"load: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit("load: interrupted")


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    whole = argparse.ArgumentParser(prog="./scripts/load", description=__doc__)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="one plan, against a stack of its own or a target"))
    _add_stand(commands.add_parser("stand", help="a side alone, for other tools, until Ctrl-C"))
    compare.add_options(commands.add_parser("compare", help="old against new: a report"))
    collapse.add_options(
        commands.add_parser("collapse", help="both in a box in which the old one bends as theirs")
    )
    capacity.add_options(commands.add_parser("capacity", help="the highest rates it keeps up with"))
    headroom.add_options(
        commands.add_parser("headroom", help="whether anything brings a part down")
    )
    speed.add_options(commands.add_parser("speed", help="the table of speed, its sides in turns"))
    _add_workload(commands.add_parser("workload", help=", ".join(WORKLOADS)))
    _add_jmeter(commands.add_parser("jmeter", help="one plan, sent by Apache JMeter"))
    _add_jmx(commands.add_parser("jmx", help="write the plans for Apache JMeter"))
    gateway_log.add_options(commands.add_parser("log", help="what the gateway's log says"))
    again = commands.add_parser("report", help="write the report again from its CSV files")
    again.add_argument("folder", type=Path)
    again.set_defaults(command=_report)
    return whole


def _report(options: argparse.Namespace) -> int:
    if not (options.folder / "run.json").is_file():
        raise refusals.Refused(f"{options.folder} has no files of a comparison")
    status = report.write(options.folder)
    print(report.files(options.folder))
    return status


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_run, tls=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(_plans())
    parser.add_argument("plan", type=refusals.plan_name, metavar="PLAN", help="see below")
    _add_target(parser)
    architectures.add_options(parser)
    generator.declare(parser, generator.PLAN)
    page = "Locust's page (8089)"
    parser.add_argument("--ui", type=int, nargs="?", const=8089, metavar="PORT", help=page)


def _add_stand(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_stand, tls=False, target=None)
    _add_stack(parser)
    parser.add_argument("--port", type=int, default=8080, help="the gateway's port (8080)")
    architectures.add_options(parser)


def _stand(options: argparse.Namespace) -> int:
    """Keep a side until Ctrl-C or SIGTERM; its data go with it."""
    if not ports.is_free(options.port):
        raise refusals.Refused(f"port {options.port} is taken: give another --port")
    with _target(options) as (url, _):
        print(f"{url}/monitoring is its page. It stays, with its data, until Ctrl-C.", flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0


def _plans() -> Iterator[str]:
    """Yield the lists of plans, those of the source apart from ours."""
    runnable = [plan for plan in PLANS.values() if not plan.name.startswith(CAPACITY)]
    for head, of_source in (("plans of the source:", True), ("plans of our own:", False)):
        yield head
        for plan in (candidate for candidate in runnable if candidate.is_the_sources == of_source):
            yield f"  {plan.name:<16}{plan.text}"


def _add_jmeter(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_jmeter, tls=False, until_it_breaks=False, hacs="")
    parser.add_argument("plan", choices=jmx.NAMES, metavar="PLAN", help=", ".join(jmx.NAMES))
    _add_target(parser)
    architectures.add_options(parser)
    parser.add_argument("--ramp", type=int, default=60, help=generator.PLAN["ramp"][1])
    parser.add_argument("--only", default="", help=generator.PLAN["only"][1])
    files = "folder of JMeter's files (load-report/jmeter)"
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT / "jmeter", help=files)


def _add_jmx(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_jmx)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--old", action="store_true", help="with what the old page reads")


def _add_workload(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_workload, form=NEW, old=False, sharded=None)
    parser.add_argument("name", choices=list(WORKLOADS))
    _add_target(parser)
    generator.declare(parser, generator.WORKLOAD)
    parser.add_argument("--csv", default="", help="archive: file for how many waited over time")
    parser.add_argument("--tls", action="store_true", help="with a certificate made for it")


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", help="a running stack's address; without it one is started")
    generator.declare(parser, generator.TARGET)
    _add_stack(parser)


def _add_stack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--services", type=int, help="how many services (2)")
    parser.add_argument("--no-limits", action="store_true", help="start it without limits")


@contextmanager
def _target(options: argparse.Namespace) -> Iterator[tuple[str, Stack | None]]:
    """Yield what gets the load: what the options name, else a stack that lives as long as this."""
    if options.target:
        url = targets.check(options.target, i_own_this_host=options.i_own_this_host)
        targets.reach(url)
        yield url, None
        return
    name = architectures.chosen(options)
    how: dict[str, Any] = {"limited": not options.no_limits}
    for option in ("services", "tls", "port"):  # what was given
        how |= {option: value} if (value := getattr(options, option, None)) else {}
    with ARCHITECTURES[name](**how) as stack:
        limits = "without limits" if options.no_limits else "0.3 CPU and 64 MiB each"
        print(f"{name}, services: {len(stack.ingest_ports)}, {limits}", flush=True)
        yield stack.url, stack


def _run(options: argparse.Namespace) -> int:
    chosen = generator.chosen(options, generator.PLAN, generator.TARGET)
    refusals.check_plan(PLANS[options.plan], options)
    refusals.check_side(PLANS[options.plan], options)
    with _target(options) as (url, stack):
        if options.ui:
            print(f"Locust's page: http://127.0.0.1:{options.ui}, the target: {url}", flush=True)
            print("Each start is one run of the plan; Shift makes a next one on other staff.")
        return _judged(generate(url, options.plan, chosen, ui_port=options.ui or 0), stack)


def _jmeter(options: argparse.Namespace) -> int:
    refusals.check_plan(PLANS[options.plan], options)
    refusals.check_side(PLANS[options.plan], options)
    with _target(options) as (url, stack):
        log = stack.folder / "log" if isinstance(stack, New) else None
        return _judged(jmeter.run(url, PLANS[options.plan], options, log), stack)


def _jmx(options: argparse.Namespace) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    page = pages.OLD if options.old else pages.NEW
    for name in jmx.NAMES:
        for step in PLANS[name].steps:
            print(jmx.write(PLANS[name], step, round(RAMP_SECONDS), options.folder, page))
    return 0


def _workload(options: argparse.Namespace) -> int:
    chosen = generator.chosen(options, generator.WORKLOAD, generator.TARGET)
    chosen |= {"workload": options.name, "csv_waiting": options.csv}
    refusals.check_workload(options.name, options)
    with _target(options) as (url, stack):
        if stack:
            services = [f"http://127.0.0.1:{port}" for port in stack.ingest_ports]
            chosen |= {"mongod": stack.pid("mongod"), "pending": ",".join(services)}
        before = 0
        if stack and not options.no_limits and options.name == "fleet":
            print("  the same load of a few devices first: it warms the services up", flush=True)
            few = {"size": WARM_UP_DEVICES, "speed": _speed(options) / WARM_UP_DEVICES}
            generate(url, "PERF-TP-1", chosen | few, quiet=True)
            before = _services_memory(stack)
        status = generate(url, "PERF-TP-1", chosen)
        if before:
            devices = min(options.size, round(_speed(options) * options.seconds / PUSH_SECONDS))
            print(f"  {device_memory(before, _services_memory(stack), devices)}")
        return _judged(status, stack)


def _judged(status: int, stack: Stack | None) -> int:
    """Return the status of a run, which is 1 at least where a log tells of an exception."""
    told = stack.exceptions() if stack else []
    for problem in told:
        print(f"  FAIL: {problem}")
    return status or int(bool(told))


def _speed(options: argparse.Namespace) -> float:
    """Return how many pushes a fleet makes in 200 s."""
    return float(options.size * (options.speed or 1.0))


def _services_memory(stack: Stack | None) -> int:
    used = stack.usage() if stack else {}
    return sum(used[name].anonymous_bytes for name in used if name.startswith("ingest-"))


if __name__ == "__main__":
    main()
