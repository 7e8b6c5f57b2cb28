"""Starts the load generator: Locust in a process of its own, as gevent changes all of Python.

Its options are declared once, here: for ./scripts/load, for Locust, for Locust's page.
"""

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from scripts.processes import ROOT

LOCUSTFILE = ROOT / "loadtests" / "engine" / "locustfile.py"

Options = dict[str, tuple[object, str]]  # name -> default and help

PLAN: Options = {
    "ramp": (60.0, "seconds of each step, at the same rate (60)"),
    "slower": (1.0, "divides the plan's rate (1)"),
    "as_jmeter": (False, "whole ms between two requests, to which JMeter rounds its delay"),
    "pages": (-1, "open monitoring pages (-1: as the plan says)"),
    "hacs": ("", "staff ids that the mock HACS polls, as 0,2"),
    "only": ("", "measure only these steps, as 600,3000"),
    "shift": (0, "added to every staff id, to run a plan again"),
    "rows": ("", "CSV file for every request"),
    "until_it_breaks": (False, "go on, 20 %% more each time"),
}
WORKLOAD: Options = {
    "seconds": (60.0, "of retail, bursts and fleet (60)"),
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
        kind: dict[str, Any] = {"type": type(default), "default": default}
        kind = {"action": "store_true"} if default is False else kind
        parser.add_argument(_flag(name), help=text, **kind | how)


def chosen(options: Namespace, *groups: Options) -> dict[str, object]:
    """Return the options of some groups by name, as they were given."""
    return {name: getattr(options, name) for group in groups for name in group}


def arguments(values: Mapping[str, object]) -> list[str]:
    """Return options as a command line."""
    options = ((_flag(name), value) for name, value in values.items() if value is not False)
    return [flag if value is True else f"{flag}={value}" for flag, value in options]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def generate(
    target: str, plan: str, options: Mapping[str, object], *, quiet: bool = False, ui_port: int = 0
) -> int:
    """Run a plan (or what the options say instead, see above) against a target.

    Returns at its end: 0 when all responses were right, else 1 or 2. With a port for Locust's page
    it waits for that, and returns when it is interrupted.
    """
    users = ["--users", "1", "--spawn-rate", "1"]  # one Locust user is the whole load
    page = ["--web-host", "127.0.0.1", "--web-port", str(ui_port)]
    how = page if ui_port else ["--headless", "--only-summary", "--skip-log", *users]
    locust = [sys.executable, "-m", "locust", "--locustfile", str(LOCUSTFILE), *how]
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(
        [*locust, "--host", target, "--plan", plan, *arguments(options)],
        # Proxies are not for this machine.
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "NO_PROXY": "*"},
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    ).returncode
