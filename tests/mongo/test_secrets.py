"""Secrets: made once, whole, for their owner only, whoever is killed or comes at the same time."""

import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from mongo import secrets
from mongo.secrets import (
    ADMIN_PASSWORD,
    APP_PASSWORD,
    KEYFILE,
    PAGE_TOKEN,
    SESSION_KEY,
    Secrets,
)

NAMES = {KEYFILE, ADMIN_PASSWORD, APP_PASSWORD, PAGE_TOKEN, SESSION_KEY}
# Runs the command and dies before its Nth step on the disk, counted from the folder's making.
DIES = """
import os, runpy, signal, sys
steps, folder = int(sys.argv.pop(1)), sys.argv[1]

def count(event, arguments):
    global steps
    if event in ("open", "os.mkdir", "os.remove", "os.rename", "os.chmod", "fcntl.flock"):
        if event in ("os.chmod", "fcntl.flock") or folder in str(arguments[0]):
            steps -= 1
            if steps == 0:
                os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
runpy.run_module("mongo.secrets", run_name="__main__")
"""


def modes(folder: Path) -> dict[str, int]:
    """Return the rights of every file, hidden ones as well."""
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def dies(root: Path, step: int, *folders: object) -> bool:
    """Run the command; tell whether it was killed before that step, or had no such step."""
    command = [sys.executable, "-c", DIES, str(step), *map(str, folders)]
    status = subprocess.run(command, cwd=root, check=False, capture_output=True).returncode
    assert status in (0, -signal.SIGKILL)
    return status != 0


def test_they_are_made_once_and_never_shown(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    made_now = secrets.ensure(folder)
    assert sorted(made_now) == sorted(NAMES)
    made = Secrets.read(folder)
    assert secrets.ensure(folder) == []
    assert Secrets.read(folder) == made
    assert len(set(made)) == 3
    assert modes(folder) == dict.fromkeys(NAMES, 0o400)
    assert modes(tmp_path) == {"secrets": 0o700}
    assert made.app_password not in repr(made)
    done = subprocess.run(
        [sys.executable, "-m", "mongo.secrets", str(folder)], capture_output=True, check=True
    )
    assert not any(secret.encode() in done.stdout + done.stderr for secret in made)


@pytest.mark.long
def test_killed_before_any_step_the_next_run_completes(root: Path, tmp_path: Path) -> None:
    step = 1
    while True:
        folder, shared = tmp_path / f"{step}", tmp_path / f"{step}-services"
        shared.mkdir()
        killed = dies(root, step, folder, f"{shared}={APP_PASSWORD},{SESSION_KEY}")
        kept = {name: (folder / name).read_text() for name in NAMES if (folder / name).exists()}
        assert all(len(text) >= 32 for text in kept.values())  # whole or not there
        assert not folder.exists() or not any(mode & 0o077 for mode in modes(folder).values())
        assert not dies(root, 0, folder, f"{shared}={APP_PASSWORD},{SESSION_KEY}")
        assert modes(folder) == dict.fromkeys(NAMES, 0o400)
        assert modes(shared) == {APP_PASSWORD: 0o440, SESSION_KEY: 0o440}
        made = {name: (folder / name).read_text() for name in NAMES}
        assert {name: made[name] for name in kept} == kept
        assert (shared / APP_PASSWORD).read_text() == made[APP_PASSWORD]
        if not killed:
            break
        step += 1
    assert step > 20  # each of the seven files alone has five


@pytest.mark.parametrize("words", [["--help"], []])
def test_asked_for_help_it_makes_no_folder_of_that_name(
    root: Path, tmp_path: Path, words: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mongo.secrets", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "mongo.secrets FOLDER" in done.stderr) == (1, True)
    assert not [*tmp_path.iterdir()]


def test_what_a_killed_run_of_the_same_pid_left_is_in_nobodys_way(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o700)
    for left in (f".{KEYFILE}.{os.getpid()}", f".{KEYFILE}.new"):
        (folder / left).write_text("half a sec")
        (folder / left).chmod(0o400)
    assert set(secrets.ensure(folder)) == NAMES
    assert set(modes(folder)) == NAMES


@pytest.mark.parametrize("attempt", range(10))
def test_who_come_at_once_agree(tmp_path: Path, attempt: int) -> None:
    folder, count = tmp_path / "secrets", 8
    together = Barrier(count)

    def come() -> tuple[list[str], Secrets]:
        together.wait()
        return secrets.ensure(folder), Secrets.read(folder)

    with ThreadPoolExecutor(count) as pool:
        answers = [future.result() for future in [pool.submit(come) for _ in range(count)]]
    assert sorted(name for made, _ in answers for name in made) == sorted(NAMES)
    assert len({read for _, read in answers}) == 1
    assert set(modes(folder)) == NAMES


def test_they_are_on_the_disk_before_they_have_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[str, str]] = []
    fsync, rename = os.fsync, os.rename

    def synced(at: int) -> None:
        fsync(at)
        steps.append(("sync", Path(f"/proc/self/fd/{at}").readlink().name))

    def renamed(source: Path, target: Path) -> None:
        steps.append(("rename", Path(target).name))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    secrets.write(tmp_path / "one", "secret")
    assert steps == [("sync", ".one.new"), ("rename", "one"), ("sync", tmp_path.name)]


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o755, 0o777])
def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "my secrets"
    folder.mkdir()
    folder.chmod(mode)
    command = [sys.executable, "-m", "mongo.secrets", str(folder)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert list(folder.iterdir()) == []
    advice = refused.stderr.strip().rpartition("secrets: ")[2]
    assert advice == f"chmod 700 '{folder}'"
    subprocess.run(["sh", "-c", advice], check=True)
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_files_that_others_may_read_are_closed_and_empty_ones_made(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    secrets.ensure(folder)
    made = Secrets.read(folder)
    for name in NAMES:
        (folder / name).chmod(0o644)
    (folder / ADMIN_PASSWORD).write_text("")  # by a power cut, in an earlier version
    assert secrets.ensure(folder) == [ADMIN_PASSWORD]
    assert modes(folder) == dict.fromkeys(NAMES, 0o400)
    now = Secrets.read(folder)
    assert (now.keyfile, now.app_password) == (made.keyfile, made.app_password)
    assert len(now.admin_password) >= 32
