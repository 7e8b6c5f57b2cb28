"""What a distribution does not have is told, and hides nothing where all can be had."""

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Playwright

from tests import needs
from tests.page.browser import launched

LINE = "SKIPPED 2 tests: this machine lacks chromium: Ubuntu has no package chromium"
TESTS = """
import pytest
from tests.needs import need


@pytest.fixture(scope="session")
def browser() -> None:
    need("chromium", "google-chrome")


def test_one(browser: None) -> None: ...
def test_two(browser: None) -> None: ...
def test_three() -> None: need("sh")
"""


@pytest.mark.long
def test_what_is_lacked_is_told_loudly_and_where_all_can_be_had_it_is_an_error(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "--numprocesses=1", str(tmp_path)]
    command += ["--rootdir", str(tmp_path), "--confcutdir", str(tmp_path), "-p", "tests.conftest"]
    settings = {
        "PATH": str(tmp_path),
        "PYTHONPATH": f"{root}:{root}/services/ingest",
        needs.LACKED: "chromium=Ubuntu has no package chromium\n",
    }
    (tmp_path / "sh").symlink_to("/bin/sh")

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        environment = {name: os.environ[name] for name in ("HOME",) if name in os.environ}
        return subprocess.run(
            command,
            env=environment | settings | more,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
    assert (done.returncode, LINE in done.stdout.splitlines()) == (0, True), done.stdout
    assert "1 passed, 2 skipped" in done.stdout
    strict = run(**{needs.NO_SKIPS: "1"})
    assert strict.returncode == 1
    assert "2 errors" in strict.stdout
    assert LINE not in strict.stdout


def test_a_stub_that_only_asks_for_a_snap_is_no_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(needs.LACKED, "chromium=Ubuntu has no package chromium\n")
    monkeypatch.delenv(needs.NO_SKIPS, raising=False)

    def program(name: str, status: int) -> str:
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\nexit {status}\n")
        file.chmod(0o755)
        return str(file)

    program("chromium-browser", 1)
    lacked = pytest.raises(pytest.skip.Exception, match="lacks chromium: Ubuntu has no package")
    with lacked, launched(cast(Playwright, None)):
        pass
    chrome = program("google-chrome", 0)
    assert needs.need_browser() == chrome
