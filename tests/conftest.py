"""Fixtures that more than one folder of tests uses."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from mongo import topology
from scripts.processes.cluster import Cluster
from tests import needs
from tests.upstream import Upstream

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# As scripts/test has it: one version for all tests, and no download.
os.environ.setdefault("MONGODB_TARBALL", "")
# Whatever this checkout was configured for.
os.environ["COMPOSE_ENV_FILES"] = os.devnull
# A machine that is shared stalls: how long an example takes, or its making, is nobody's fault.
settings.register_profile(
    "shared machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("shared machine")
# Several processes share the tests (scripts/test), file by file, but for these: files of one line
# stay together. Those lines start first, the longest before the others, then the folders with long
# files: one that started last would be waited for alone.
PLAN = (
    (  # their shards are emulated: two such stacks at once would slow everything else down
        "tests/mongo/test_sharded.py",
        "tests/stack/test_sharded.py",
        "tests/stack/test_backup.py",
    ),
    ("tests/stack/test_chaos.py",),
    (  # they measure time, and would disturb each other
        "tests/gateway/test_breaker.py",
        "tests/gateway/test_pollers.py",
        "tests/gateway/test_memory.py",
        "tests/gateway/test_limits.py",
        "tests/gateway/test_busy.py",
        "tests/gateway/test_rolling.py",
    ),
    ("tests/stack/test_verdict.py",),
    ("tests/stack/test_lifecycle.py",),
    (  # they share one stack that requires tokens
        "tests/security/test_slow_clients.py",
        "tests/security/test_table.py",
        "tests/security/test_sessions.py",
        "tests/security/test_access.py",
    ),
    (  # they share one stack and one browser
        "tests/security/test_page.py",
        "tests/security/test_api.py",
    ),
    (  # they share one stack and one browser
        "tests/page/test_blind.py",
        "tests/page/test_coverage.py",
        "tests/page/test_directory.py",
        "tests/page/test_everybody.py",
        "tests/page/test_live.py",
        "tests/page/test_policy.py",
        "tests/page/test_replay.py",
        "tests/page/test_scale.py",
        "tests/page/test_system.py",
        "tests/page/test_who_was_here.py",
    ),
)
LONG = ("tests/tools/", "tests/stack/", "tests/page/", "tests/gateway/", "tests/mongo/")
PLANNED = {file: number for number, files in enumerate(PLAN) for file in files}
# A failure's captured output may be endless (a log of what is retried); its end is enough.
CAPTURED_LINES = 40


class Plan(LoadFileScheduling):  # type: ignore[misc]  # without types
    """Gives each process one file after the other."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return PLAN[PLANNED[file]][0] if file in PLANNED else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Plan:
    config.option.loadscopereorder = False  # ours is the order
    return Plan(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _place(item.location[0]))


def _place(file: str) -> int:
    """Return when a file's turn is; short ones fill the end, where others wait for nobody."""
    folder = next(
        (place for place, folder in enumerate(LONG) if file.startswith(folder)), len(LONG)
    )
    return PLANNED.get(file, len(PLAN) + folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the reason of a failure from drowning."""
    report = yield
    report.sections = [
        (name, "\n".join(text.splitlines()[-CAPTURED_LINES:])) for name, text in report.sections
    ]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Say loudly what could not be tested here, and why; the names of what failed come last.

    A reason may be long: whoever sees but the end of a log still knows what to run again.
    """
    for line in needs.summary(terminalreporter.getreports("skipped")):
        terminalreporter.write_line(line, yellow=True, bold=True)
    yield
    failed = terminalreporter.getreports("failed") + terminalreporter.getreports("error")
    for name in sorted({report.nodeid for report in failed}):
        terminalreporter.write_line(f"TO MEND {name}", red=True)


@pytest.fixture(scope="session")
def mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a real mongod as a replica set of one; return the services' connection string."""
    folder = tmp_path_factory.mktemp("mongod")
    with Cluster(topology.load(topology.EMBEDDED), folder).running() as cluster:
        yield cluster.uri()


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Run the one browser of this process: Playwright cannot be begun twice."""
    from playwright.sync_api import expect, sync_playwright  # most processes need none

    from tests.page.browser import launched

    expect.set_options(timeout=30_000)  # ms; a busy machine draws slowly
    with sync_playwright() as playwright, launched(playwright) as browser:
        yield browser


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the folder of the checkout."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """Run one controllable server."""
    server = Upstream()
    yield server
    server.close()
