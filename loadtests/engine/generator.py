"""Starts the load generator: Locust in a process of its own, as gevent changes all of Python."""

import os
import subprocess
import sys
from collections.abc import Mapping

from loadtests.engine import options
from scripts.processes import ROOT

LOCUSTFILE = ROOT / "loadtests" / "engine" / "locustfile.py"


def generate(
    target: str,
    plan: str,
    given: Mapping[str, object],
    *,
    quiet: bool = False,
    ui_port: int = 0,
) -> int:
    """Run a plan (or what the options given say instead, see options.py) against a target.

    Returns at its end: 0 when all responses were right, else 1 or 2. With a port for Locust's page
    it waits for that, and returns when it is interrupted.
    """
    users = ["--users", "1", "--spawn-rate", "1"]  # one Locust user is the whole load
    page = ["--web-host", "127.0.0.1", "--web-port", str(ui_port)]
    how = page if ui_port else ["--headless", "--only-summary", "--skip-log", *users]
    locust = [sys.executable, "-m", "locust", "--locustfile", str(LOCUSTFILE), *how]
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(
        [*locust, "--host", target, "--plan", plan, *options.arguments(given)],
        # Proxies are not for this machine.
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "NO_PROXY": "*"},
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    ).returncode
