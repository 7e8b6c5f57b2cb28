"""The workloads of the other systems, seconds of each."""

import csv
import subprocess
from pathlib import Path

import pytest

from scripts.processes import ROOT
from tests.tools.loadtests.faulty_server import FaultyServer

pytestmark = pytest.mark.long


def load(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [f"{ROOT}/scripts/load", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    "arguments",
    [
        ("sync",),
        ("bursts", "--seconds", "6"),
        ("retail", "--seconds", "6", "--speed", "60"),
        ("fleet", "--seconds", "2", "--speed", "4"),
        ("fleet", "--seconds", "2", "--speed", "4", "--tls"),
    ],
    ids=lambda arguments: arguments[0] + arguments[-1],
)
def test_a_workload_passes(arguments: tuple[str, ...]) -> None:
    done = load("workload", *arguments, "--no-limits")
    assert "PASS" in done.stdout, done.stdout + done.stderr
    assert ("% at most" in done.stdout) is (arguments[0] == "retail")
    assert done.returncode == 0


def test_the_archive_tells_how_many_waited(tmp_path: Path) -> None:
    file = tmp_path / "waiting.csv"
    done = load("workload", "archive", "--no-limits", "--speed", "10", "--csv", str(file))
    assert "PASS" in done.stdout, done.stdout + done.stderr
    with file.open(newline="") as lines:
        waiting = [int(row["waiting"]) for row in csv.DictReader(lines)]
    assert waiting[0] == waiting[-1] == 0
    assert max(waiting) > 100  # of the 600 that came while the database was frozen


def test_a_workload_fails_on_a_server_that_loses() -> None:
    with FaultyServer("loses") as server:
        done = load("workload", "fleet", "--target", server.url, "--seconds", "1", "--speed", "4")
    assert "FAIL" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("command", [("run", "PERF-TP-1"), ("workload", "sync")])
def test_a_foreign_target_is_refused(command: tuple[str, ...]) -> None:
    done = load(*command, "--target", "http://192.0.2.1:8080")
    assert done.returncode == 2
    assert "--i-own-this-host" in done.stderr
