"""Runs tests on a module with another text, in a child that has all the slow imports already."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

import flask  # noqa: F401  # what the modules and their tests import is imported once, here
import hypothesis
import msgspec  # noqa: F401
import psutil
import pymongo  # noqa: F401
import pytest

from scripts.processes import ROOT
from tests.tools.mutation.targets import Target

PASSED, FAILED, NO_COLLECTION = 0, 1, 2  # pytest's own numbers
BROKEN = 70
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--noconftest")
# The imports that are made before pytest begins include a plugin's.
WARNINGS = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
SILENT_SECONDS = 10.0  # asleep, that is, not kept waiting by a busy machine


class Trial(NamedTuple):
    """How tests ended: with pytest's number, or the negative number of a signal."""

    status: int
    cpu_seconds: float

    @property
    def noticed(self) -> bool:
        """Tell whether a test failed; RuntimeError: the trial itself did."""
        if self.status > NO_COLLECTION:
            raise RuntimeError(f"pytest ended with {self.status}")
        return self.status != PASSED


def trial(target: Target, source: str, cpu_seconds: float = 60.0, *, shown: bool = False) -> Trial:
    """Run the tests of a target in a child; whatever computes for longer is ended."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(_run(target, source, cpu_seconds, shown=shown))
        except BaseException:
            traceback.print_exc()
            os._exit(BROKEN)
    running, used, since = psutil.Process(child), 0.0, time.monotonic()
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return Trial(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
        now_used = sum(running.cpu_times()[:2])
        if now_used > used or running.status() != psutil.STATUS_SLEEPING:
            used, since = now_used, time.monotonic()
        elif time.monotonic() - since > SILENT_SECONDS:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)


def _run(target: Target, source: str, cpu_seconds: float, *, shown: bool) -> int:
    os.setsid()
    limit = int(cpu_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    if not shown:
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    package = target.module.split(".")[0]
    sys.modules[package] = ModuleType(package)  # without what it does when it is imported
    sys.modules[package].__path__ = [str(ROOT / target.folder / package)]
    sys.path.insert(0, str(ROOT / target.folder))
    sys.meta_path.insert(0, _Finder(target.module, source))
    try:
        importlib.import_module(target.module)
    except Exception:  # as of a changed annotation: pytest need not begin
        return FAILED
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    hypothesis.settings.register_profile(  # the same examples each time, and no search for others
        "mutation",
        derandomize=True,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    )
    hypothesis.settings.load_profile("mutation")
    status = pytest.main([*OPTIONS, *WARNINGS, *_paths(target.tests)])
    return int(status)


def _paths(tests: Sequence[str]) -> list[str]:
    return [str(ROOT / test) for test in tests]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds one module, with a text of ours."""

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == self._name else None

    def get_source(self, _: str) -> str:
        return self._source

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
