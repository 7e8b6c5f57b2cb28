"""`./scripts/logs --docker`, with a `docker` that answers as Docker Compose does."""

import gzip
import os
import subprocess
from pathlib import Path

import pytest

from scripts.processes import ROOT

STORED, QUEUED = "0" * 32, "f" * 32
LINE = (
    '{"time":"2026-11-28T18:20:%s+00:00","path":"/newbeacondetect","status":"%s",'
    '"request_id":"%s"}\n'
)
SERVICES = f"""\
ingest-1-1    | 2026-11-28 18:19:59,900 WARNING ingest.drain: nothing waits in the spool any more
ingest-1-1    | 2026-11-28 18:20:01,100 WARNING ingest.availability: the spool does: no answer
ingest-1-1    | 2026-11-28 18:20:02,000 ERROR ingest.web: request {STORED}: the database is away
monitoring-1  | 2026-11-28 18:20:02,000 ERROR monitoring: something else
ingest-1-1    | 2026-11-28 18:20:09,000 WARNING ingest.drain: nothing waits in the spool any more
"""
# What `exec` runs, it runs here, on the folder that stands for the container's.
DOCKER = """\
#!/usr/bin/env bash
case "$2" in
exec) shift 4 && exec "${@:1:$#-1}" "$FOLDER" ;;
logs) cat "$FOLDER/services" ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    (tmp_path / "services").write_text(SERVICES)
    (tmp_path / "requests.log").write_text(LINE % ("01", 202, QUEUED))
    old = (LINE % ("00", 200, STORED)).encode()
    (tmp_path / "requests.log.0000000001.gz").write_bytes(gzip.compress(old))
    return tmp_path


def logs(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [ROOT / "scripts" / "logs", *arguments],
        env=os.environ | {"PATH": path, "FOLDER": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_finds_the_lines_of_all_containers(folder: Path) -> None:
    done = logs(folder, "--docker", STORED)
    assert (done.returncode, done.stderr) == (0, "")
    services = SERVICES.splitlines()
    assert done.stdout.splitlines() == [f"gateway | {LINE % ('00', 200, STORED)}"[:-1], services[2]]


def test_of_what_was_queued_it_tells_what_came_of_the_spools(folder: Path) -> None:
    done = logs(folder, QUEUED, "--docker")
    assert (done.returncode, done.stderr) == (0, "")
    services = SERVICES.splitlines()
    assert done.stdout.splitlines() == [
        f"gateway | {LINE % ('01', 202, QUEUED)}"[:-1],
        services[1],
        services[4],
    ]


def test_without_a_line_of_the_gateway_it_says_so(folder: Path) -> None:
    done = logs(folder, "--docker", "1" * 32)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "the gateway has no line of it (any more)\n"
