"""What some tests need and not every distribution has: ./scripts/test installs what can be had."""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import NoReturn

import pytest

from mongo.binaries import NoMongod, find_binaries
from scripts.processes.limited_group import available

# One line for each thing that cannot be had here, "name=reason", from scripts/test.
LACKED = "WAYMARK_LACKS"
# Set where everything can be had (.ci/run): there a skip would hide a defect.
NO_SKIPS = "WAYMARK_NO_SKIPS"
MARK = "this machine lacks "
limited = pytest.mark.skipif(
    not available(), reason=f"{MARK}limits: control groups cannot be made here"
)
only_root = pytest.mark.skipif(os.geteuid() != 0, reason=f"{MARK}root: it is another user")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def need(*names: str) -> None:
    """Skip the test, and all that share its fixture, where none of these programs is."""
    if not any(map(shutil.which, names)):
        _lacks(names[0])


def need_browser() -> str:
    """Return the program of a browser, or skip it where none is that runs.

    Ubuntu's chromium-browser may be a stub that asks for a snap.
    """
    paths = filter(None, map(shutil.which, BROWSERS))
    return next(filter(_runs, paths), None) or _lacks(BROWSERS[0])


def need_routers() -> None:
    """Skip it where there is no mongod with a mongos."""
    try:
        find_binaries(sharded=True)
    except NoMongod:
        _lacks("mongos")


def _runs(program: str) -> bool:
    return not subprocess.run([program, "--version"], check=False, capture_output=True).returncode


def _lacks(name: str) -> NoReturn:
    reasons = dict(line.split("=", 1) for line in os.environ.get(LACKED, "").splitlines())
    text = f"{MARK}{name}: {reasons.get(name, './scripts/test installs it')}"
    if os.environ.get(NO_SKIPS):
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


def summary(skipped: Iterable[pytest.TestReport]) -> list[str]:
    """Return a line for each thing that was lacked, and how many tests it cost."""
    reasons = [str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple)]
    texts = Counter(reason.removeprefix("Skipped: ") for reason in reasons if MARK in reason)
    return [f"SKIPPED {count} tests: {text}" for text, count in sorted(texts.items())]
