"""Schemathesis with all of its checks finds nothing on the live stack."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.processes import ROOT
from tests.security.routes import NOT_AT_THE_GATEWAY
from tests.security.site import Site

pytestmark = pytest.mark.long

HERE = Path(__file__).parent


def check(url: str, folder: Path, *options: str) -> None:
    """Run it in a folder where it may leave what it remembers."""
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": "tests.security.schemathesis_hooks",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "services" / "ingest")]),
    }
    program = Path(sys.executable).with_name("schemathesis")
    command = [str(program), "--config-file", str(HERE / "schemathesis.toml")]
    # One worker: Python 3.11 cannot parse in two threads as deeply as Hypothesis asks it to.
    always = ["--workers", "1", "--checks", "all", "--no-color", "--seed", "1"]
    always += ["--continue-on-failure"]
    for path in NOT_AT_THE_GATEWAY:  # asked of a service itself
        always += ["--exclude-path", path]
    done = subprocess.run(
        [*command, "run", f"{url}/api/v1/openapi.json", *always, *options],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    failures = done.stdout.partition("FAILURES")[2] or done.stdout
    assert done.returncode == 0, failures[:20_000] + done.stderr


def test_no_finding_through_the_gateway(site: Site, tmp_path: Path) -> None:
    check(site.url, tmp_path, "--phases", "coverage")
