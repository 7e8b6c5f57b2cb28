"""The runbook's own words, run: the first day, rotating every secret, and leaving."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.stack.conftest import Stack
from tests.test_docs import section

pytestmark = pytest.mark.long

# They act on a stack, which here has another folder than `data`.
OF_A_STACK = "up|down|status|token|account|backup|person|storage"


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of a short name: a data folder's path has a bound."""
    return tmp_path_factory.mktemp("r")


def block(heading: str, containing: str) -> str:
    """Return the commands under a heading, of the block which has a word."""
    blocks = re.findall(r"```sh\n(.*?)```", section("docs/runbook.md", heading), re.DOTALL)
    [commands] = [text for text in blocks if containing in text]
    return str(commands)


def follow(stack: Stack, commands: str, folder: Path, **more: str) -> str:
    """Type commands of the runbook, on this stack; return what they say."""
    for written, here in {
        rf"\./scripts/({OF_A_STACK})\b": rf"{stack.root}/scripts/\1 --data {stack.data}",
        r"scripts/up --data": f"scripts/up --port {stack.port} --data",
        # A name needs TLS, and ports that root alone may open; other tests have these.
        r"\./scripts/configure \S+": f"{stack.root}/scripts/configure --plain --publish 127.0.0.1",
        r"/mnt/backups": f"{folder}/shelf",
        r"127\.0\.0\.1:8080": f"127.0.0.1:{stack.port}",
        r"(?<= )data/": f"{stack.data}/",
    }.items():
        commands = re.sub(written, here, commands)
    done = subprocess.run(
        ["bash", "-euo", "pipefail"],
        input=commands,
        cwd=folder,
        env=stack.environment | more,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def status(stack: Stack, path: str, secret: str = "", **parameters: object) -> int:
    """Ask with a token; return the status."""
    stack.session.headers["Authorization"] = f"Bearer {secret}"
    return stack.get(path, **parameters).status_code


def test_a_newcomer_follows_it_from_the_first_day_to_the_last(root: Path, tmp_path: Path) -> None:
    stack = Stack(root, tmp_path / "data")
    file = tmp_path / "env"
    file.touch()
    stack.environment["COMPOSE_ENV_FILES"] = str(file)
    try:
        said = follow(stack, block("First day", "./scripts/account"), tmp_path)
        assert "is good" in said
        admin, phones, hacs = re.findall(r"\bwm_[\w-]{20,}", said)
        detection = {"user_address": 7, "beacon_address": "C2A628384B08", "rssi": -20}
        path = "/newbeacondetect"
        assert status(stack, path, "", **detection) == 401
        assert status(stack, path, phones, **detection) == 200
        assert [status(stack, "/api/v1/now", secret) for secret in (hacs, phones)] == [200, 403]

        before = secrets_of(stack)
        follow(stack, block("Rotating every secret", "./scripts/down"), tmp_path)
        assert not before & secrets_of(stack)
        said = follow(stack, block("Daily look", "./scripts/status"), tmp_path)
        assert '"finished"' in said
        stack.session.headers["Authorization"] = f"Bearer {hacs}"
        assert len(stack.history(7)) == 1

        follow(stack, block("Leaving", "mkdir export"), tmp_path, TOKEN=admin)
        exported = tmp_path / "export"
        assert {path.name for path in exported.iterdir()} == {
            *("audit.csv", "beacons.csv", "database", "people.csv", "person-7.zip"),
        }
        assert all(path.stat().st_size for path in exported.iterdir())
    finally:
        stack.down()


def secrets_of(stack: Stack) -> set[str]:
    """Return what the stack's secrets are."""
    files = [*(stack.data / "secrets").iterdir()]
    assert len(files) == 5
    return {file.read_text() for file in files}
