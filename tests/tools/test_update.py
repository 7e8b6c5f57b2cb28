"""What ./scripts/update does before data become another version, with a docker that says so."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RISES = "the data, version 1, become version 2"
# It answers as Docker Compose would, and ends the update where services would be replaced.
DOCKER = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
    *" ps --quiet gateway") echo a1 ;;
    *" mongo.data "*) [ "$SAYS" != fails ] || exit 1; echo "$SAYS" ;;
    *" backup") [ "${SAYS#*full disk}" = "$SAYS" ] || exit 1 ;;
    *" config --services") exit 9 ;;
esac
"""


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    for name in ("update", "lib.sh"):
        shutil.copy(root / "scripts" / name, tmp_path / "scripts" / name)
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    return tmp_path


def update(checkout: Path, says: str, *options: str) -> tuple[str, list[str]]:
    """Return what it says, and what was asked of docker once it had looked at the version."""
    calls = checkout / "calls"
    calls.unlink(missing_ok=True)
    done = subprocess.run(
        [str(checkout / "scripts" / "update"), *options],
        env={
            "PATH": f"{checkout}:{os.environ['PATH']}",
            "CALLS": str(calls),
            "SAYS": says,
            "COMPOSE_ENV_FILES": os.devnull,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    asked = [" ".join(line.split()) for line in calls.read_text().splitlines()]
    begin = next((n + 1 for n, line in enumerate(asked) if " mongo.data " in line), 0)
    return done.stdout + done.stderr, asked[begin:]


def test_before_data_become_another_version_there_is_a_backup(checkout: Path) -> None:
    said, asked = update(checkout, RISES)
    assert f"{RISES}: first a backup" in said
    assert asked == ["compose run --rm --no-deps -T backup", "compose config --services"]


def test_without_that_backup_nothing_is_replaced(checkout: Path) -> None:
    said, asked = update(checkout, f"{RISES}, on a full disk")
    assert asked == ["compose run --rm --no-deps -T backup"]
    assert "there is no backup, and nothing was replaced" in said


def test_where_the_version_stays_there_is_none(checkout: Path) -> None:
    _, asked = update(checkout, "")
    assert asked == ["compose config --services"]


def test_where_it_cannot_be_told_the_update_says_how_to_go_on(checkout: Path) -> None:
    said, asked = update(checkout, "fails")
    assert asked == []
    assert "--no-backup goes on without a backup" in said
    _, asked = update(checkout, "fails", "--no-backup")
    assert "compose config --services" in asked
    assert not any("mongo.data" in call for call in asked)


def test_one_that_was_cut_goes_on_without_asking_again(checkout: Path) -> None:
    (checkout / "data").mkdir()
    (checkout / "data" / "update.waiting").write_text("b2 ready\n")
    _, asked = update(checkout, "fails")
    assert not any("mongo.data" in call for call in asked)
