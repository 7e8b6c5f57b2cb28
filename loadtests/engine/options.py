"""The load generator's options, declared once: for ./scripts/load, for Locust, for its page."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

Options = Mapping[str, tuple[object, str]]  # name -> default and help

PLAN: Options = {
    "ramp": (60.0, "seconds of each step, at the same rate (60)"),
    "pages": (-1, "open monitoring pages (-1: as the plan says)"),
    "hacs": ("", "staff ids that the mock HACS polls, as 0,2"),
    "only": ("", "measure only these steps, as 600,3000"),
    "shift": (0, "added to every staff id, to run a plan again"),
    "rows": ("", "CSV file for every request"),
    "until_it_breaks": (False, "go on, 20 %% more each time"),
}
WORKLOAD: Options = {
    "seconds": (60.0, "of retail and fleet (60)"),
    "speed": (0.0, "of the source's clocks (1; retail: 20)"),
    "size": (1000, "devices of the fleet (1000)"),
}
TARGET: Options = {"i_own_this_host": (False, "it may be another machine")}
# What only ./scripts/load knows: Locust's page does not ask for it.
PRIVATE: Options = {
    "p99": (0.0, "search the rate that keeps it, ms"),
    "attempts": ("", "CSV file for every attempt of a search"),
    "mongod": (0, "process to freeze"),
    "gateway": (0, "process to reload between attempts"),
    "csv_waiting": ("", "CSV file for how many waited over time"),
    "pending": ("", "addresses that tell how many detections wait, by commas"),
}


def declare(parser: ArgumentParser, options: Options, **how: bool) -> None:
    """Add options to a parser; `how` goes to it, as `include_in_web_ui` for Locust's."""
    for name, (default, text) in options.items():
        if default is False:
            parser.add_argument(_flag(name), action="store_true", help=text, **how)  # type: ignore[arg-type]
        else:
            kind = type(default)
            parser.add_argument(_flag(name), type=kind, default=default, help=text, **how)  # type: ignore[arg-type]


def chosen(options: Namespace, *groups: Options) -> dict[str, object]:
    """Return the options of some groups by name, as they were given."""
    return {name: getattr(options, name) for group in groups for name in group}


def arguments(values: Mapping[str, object]) -> list[str]:
    """Return options as a command line."""
    line: list[str] = []
    for name, value in values.items():
        line += (
            [_flag(name)] if value is True else [] if value is False else [_flag(name), str(value)]
        )
    return line


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
