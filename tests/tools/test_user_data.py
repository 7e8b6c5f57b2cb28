"""What deploy/ec2/user-data writes; tests/tools/machines has what it installs."""

import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.processes import ROOT

USER_DATA = ROOT / "deploy" / "ec2" / "user-data"
SETTINGS = {
    "REPOSITORY": "https://git.example.org/waymark",
    "NAMES": "a.example.org b.example.org",
    "EMAIL": "me@example.org",
    "BACKUP_TO": "s3://bucket/prefix",
    "BACKUP_REGION": "eu-central-1",
    "BACKUP_KEY": "age1first age1second",
}


def run(script: str, *, settings: dict[str, str] = SETTINGS) -> subprocess.CompletedProcess[str]:
    """Run functions of it, with settings as somebody filled them in."""
    lines = [f"{name}='{value}'" for name, value in settings.items()]
    return subprocess.run(
        ["bash", "-c", "\n".join([f". {USER_DATA}", *lines, script])],
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with what it needs of a clone."""
    folder = tmp_path / "waymark"
    (folder / "scripts").mkdir(parents=True)
    for name in ("configure", "lib.sh"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    return folder


@pytest.mark.parametrize("name", ["REPOSITORY", "NAMES", "BACKUP_TO", "BACKUP_REGION"])
def test_a_setting_that_is_missing_is_named(name: str) -> None:
    done = run("check_settings", settings=SETTINGS | {name: ""})
    assert (done.returncode, done.stderr) == (1, f"user-data: {name} is not set\n")
    assert run("check_settings").returncode == 0


def test_every_setting_is_one_of_its_own() -> None:
    head = USER_DATA.read_text().split("# The settings.")[1].split("\nFOLDER=")[0]
    declared = {line.split("=")[0] for line in head.splitlines() if "=" in line}
    assert declared == SETTINGS.keys() | {"REVISION"}


@pytest.mark.parametrize("memory_mib", [983, 1956])
def test_run_twice_it_writes_the_same_and_prints_no_secret(checkout: Path, memory_mib: int) -> None:
    token = checkout.parent / "token"
    memory = f"memory_mib() {{ echo {memory_mib}; }}"
    script = f"{memory}\nFOLDER={checkout} TOKEN={token}\nsettings"
    first = run(script)
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    written, secret = (checkout / ".env").read_text(), token.read_text()
    assert "  wm_" in secret
    assert token.stat().st_mode & 0o777 == 0o600
    values = dict(line.split("=", 1) for line in written.splitlines())
    assert values["GATEWAY_TLS_NAMES"] == SETTINGS["NAMES"]
    assert values["WAYMARK_ACCESS"] == "required"
    assert values["COMPOSE_PROFILES"] == "acme,backup"
    assert values["WAYMARK_BACKUP_KEY"] == SETTINGS["BACKUP_KEY"]
    assert ("COMPOSE_FILE" in values) == (memory_mib > 1900)
    assert len(values) == len(written.splitlines())
    assert run(script).returncode == 0
    assert (token.read_text(), sorted((checkout / ".env").read_text())) == (secret, sorted(written))


def test_another_system_is_refused() -> None:
    done = run(". () { ID=arch VERSION_ID=1; }\ninstall_docker")
    assert done.returncode == 1
    assert "not for arch 1" in done.stderr
