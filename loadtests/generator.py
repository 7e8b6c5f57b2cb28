"""Starts the load generator: Locust in a process of its own, as gevent changes all of Python."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.native.layout import ROOT

LOCUSTFILE = ROOT / "loadtests" / "locustfile.py"


def command(target: str, plan: str, arguments: Sequence[str], *, port: int = 0) -> list[str]:
    """Return the command line that runs a plan against a target; with Locust's page on a port."""
    users = ["--users", "1", "--spawn-rate", "1"]  # one Locust user is the whole load
    page = ("--web-host", "127.0.0.1", "--web-port", str(port))
    how = page if port else ("--headless", "--only-summary", "--skip-log", *users)
    locust = [sys.executable, "-m", "locust", "--locustfile", str(LOCUSTFILE), *how]
    return [*locust, "--host", target, "--plan", plan, *arguments]


def environment() -> dict[str, str]:
    """Return what the generator sees; proxies are not for this machine."""
    return os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "NO_PROXY": "*"}


def generate(
    target: str,
    plan: str,
    arguments: Sequence[str],
    *,
    rows: Path | None = None,
    quiet: bool = False,
) -> int:
    """Run a plan headless to its end; return 0 when all answers were right, 1 or 2 otherwise."""
    wanted = [*arguments, *(["--rows", str(rows)] if rows else [])]
    done = subprocess.run(
        command(target, plan, wanted),
        env=environment(),
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if quiet else None,
        stderr=subprocess.DEVNULL if quiet else None,
    )
    return done.returncode
