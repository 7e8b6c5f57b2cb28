"""What would measure nothing, or not what it says, is refused before anything is started."""

import math
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence, Sized
from pathlib import Path

from loadtests.architectures import COMBINED, SEPARATED
from loadtests.plans import CAPACITY, PLANS, Plan
from loadtests.workloads import PUSH_SECONDS

ABOVE_0 = (
    *("ramp", "slower", "seconds", "p99", "minutes"),
    *("cores", "service_cores", "database_cores"),
)
AT_LEAST = {"shift": 0, "speed": 0, "pages": -1, "size": 1, "services": 1}
AT_LEAST |= {"repetitions": 1, "rounds": 1, "stored": 10_000}
MOST_PORT = 65535
OF_A_STACK = {
    "old": False,
    "form": None,
    "sharded": None,
    "services": None,
    "no_limits": False,
    "tls": False,
}
# Which workload an option is of, and what it is when it was not given.
OF_WORKLOADS = {
    "seconds": (("retail", "bursts", "fleet"), 60.0),
    "size": (("fleet",), 1000),
    "csv": (("archive",), ""),
}
ARCHIVE_MOST_SPEED = 10.0  # beyond it the database is frozen for less than a service waits for it


class Refused(ValueError):
    """An option, and why nothing would be measured with it."""


def check(options: Namespace) -> None:
    """Raise Refused unless the options of a command measure what they say."""
    values = vars(options)
    problems = [*_numbers(values), *_files(values)]
    if values.get("target"):
        problems += [
            f"--target is a stack that runs already: {_flag(name)} is of one that is started"
            for name, default in OF_A_STACK.items()
            if values.get(name, default) not in (default, "new")
        ]
    ui = values.get("ui")
    if ui is not None and not 0 < ui <= MOST_PORT:
        problems.append(f"--ui {ui}: give a port, 1 to {MOST_PORT}")
    if problems:
        raise Refused(problems[0])


def check_plan(plan: Plan, options: Namespace) -> None:
    """Raise Refused unless the options measure a step of the plan."""
    names = [step.name for step in plan.steps]
    wanted = [name.strip() for name in options.only.split(",")] if options.only else []
    if wanted and (options.until_it_breaks or plan.is_sweep):
        raise Refused("--only: what goes on until it breaks begins with all steps of the plan")
    for name in wanted:
        if name not in names:
            raise Refused(f"--only {name}: {plan.name} has no such step, but {', '.join(names)}")
    for staff in options.hacs.split(",") if options.hacs else []:
        if not staff.strip().isdecimal():
            raise Refused(f"--hacs {staff}: give numbers of staff, as 0,2")


def is_named(name: str, words: Sequence[str]) -> bool:
    """Tell whether a name has one of the words; without words every name is meant."""
    return not words or any(word in name for word in words)


def check_cases(chosen: Sized, words: Sequence[str]) -> None:
    """Raise Refused when the words name no case."""
    if not chosen:
        raise Refused(f"no case has {' or '.join(words)} in its name")


def check_side(plan: Plan, options: Namespace) -> None:
    """Raise Refused unless a plan of the separation names one of its two sides."""
    if plan.is_split and options.form not in (COMBINED, SEPARATED):
        raise Refused(f"{plan.name} compares two sides: give --combined or --separated")


def check_workload(name: str, options: Namespace) -> None:
    """Raise Refused unless the options measure what the workload says."""
    values = vars(options)
    for option, (workloads, default) in OF_WORKLOADS.items():
        if name not in workloads and values.get(option, default) != default:
            raise Refused(f"{_flag(option)} is of {' and '.join(workloads)}, not of {name}")
    speed = options.speed or 1.0
    if name == "archive" and values.get("target"):
        raise Refused("archive freezes the database of a stack of its own: leave out --target")
    if name == "archive" and speed > ARCHIVE_MOST_SPEED:
        raise Refused(f"--speed {speed:g}: the database would not be frozen long enough to be away")
    if name == "fleet" and options.size * options.seconds * speed < PUSH_SECONDS:
        raise Refused("no device would push once: give more --seconds, --size or --speed")


def plan_name(text: str) -> str:
    """Return the name of a plan that `run` takes; ArgumentTypeError names those that there are."""
    if text in PLANS and not text.startswith(CAPACITY):
        return text
    if text in PLANS:
        search = text.removeprefix(CAPACITY)
        raise ArgumentTypeError(f"{text} is a search: ./scripts/load capacity --only {search}")
    raise ArgumentTypeError(f"there is no plan {text}; ./scripts/load run --help lists them")


def searches(only: str) -> list[str]:
    """Return the plans of the searches that are wanted, as INSERT,EXTRACT-3000; all of nothing."""
    names = [name for name in PLANS if name.startswith(CAPACITY)]
    wanted = [CAPACITY + name.strip() for name in only.split(",")] if only else names
    for name in wanted:
        if name not in names:
            known = ", ".join(name.removeprefix(CAPACITY) for name in names)
            raise Refused(f"--only {name.removeprefix(CAPACITY)}: no such search, but {known}")
    return wanted


def _numbers(values: dict[str, object]) -> Iterator[str]:
    for name, value in values.items():
        for number in value if isinstance(value, list) else [value]:
            if not isinstance(number, int | float):
                continue
            if name in ABOVE_0 and not 0 < number < math.inf:
                yield f"{_flag(name)} {number:g}: give a number above 0"
            if name in AT_LEAST and not AT_LEAST[name] <= number < math.inf:
                yield f"{_flag(name)} {number:g}: give {AT_LEAST[name]} or more"


def _files(values: dict[str, object]) -> Iterator[str]:
    """Name the files whose folder is not there: after the run their figures would be lost."""
    for name in ("rows", "csv"):
        file = values.get(name)
        if isinstance(file, str) and file and not Path(file).absolute().parent.is_dir():
            yield f"{_flag(name)} {file}: there is no folder {Path(file).absolute().parent}"


def _flag(name: str) -> str:
    return "a form of the old one" if name == "form" else f"--{name.replace('_', '-')}"
