"""Starts the load generator: Locust in a process of its own, as gevent changes all of Python."""

import os
import subprocess
import sys

from loadtests.engine import options
from scripts.native.layout import ROOT

LOCUSTFILE = ROOT / "loadtests" / "engine" / "locustfile.py"


def command(target: str, plan: str, *, ui_port: int = 0, **given: object) -> list[str]:
    """Return the command line that runs a plan against a target; with Locust's page on a port."""
    users = ["--users", "1", "--spawn-rate", "1"]  # one Locust user is the whole load
    page = ("--web-host", "127.0.0.1", "--web-port", str(ui_port))
    how = page if ui_port else ("--headless", "--only-summary", "--skip-log", *users)
    locust = [sys.executable, "-m", "locust", "--locustfile", str(LOCUSTFILE), *how]
    return [*locust, "--host", target, "--plan", plan, *options.arguments(given)]


def generate(
    target: str, plan: str, *, quiet: bool = False, ui_port: int = 0, **given: object
) -> int:
    """Run a plan (or what `given` says instead, see options.py) to its end, without Locust's page.

    Returns 0 when all responses were right, else 1 or 2.
    """
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(
        command(target, plan, ui_port=ui_port, **given),
        # Proxies are not for this machine.
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "NO_PROXY": "*"},
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    ).returncode
