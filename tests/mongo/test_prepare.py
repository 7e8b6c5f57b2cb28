"""What comes before everything else of the Docker stack."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

from mongo import prepare

T2_MICRO = "MemTotal:         983000 kB\nMemFree:          1000 kB\nSwapTotal:      {swap} kB\n"


def test_the_swap_that_is_advised_is_enough() -> None:
    has = prepare.memory_mib(T2_MICRO.format(swap=0))
    assert has == 959
    [added] = re.findall(r"bs=1M count=(\d+) ", prepare.advice(has, 1050))
    then = prepare.memory_mib(T2_MICRO.format(swap=int(added) * 1024))
    assert 1050 <= then < 1050 + prepare.SWAP_MIB


def run(root: Path, folder: Path, **changed: str) -> subprocess.CompletedProcess[str]:
    shared = folder.parent / "shared"
    shared.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "mongo.prepare", str(folder), f"{shared}=app_password"],
        env=os.environ | {"MONGO_IMAGE": "mongo:7.0"} | changed,
        cwd=root,
        text=True,
        capture_output=True,
        check=False,
    )


def test_it_lays_secrets_and_settings_where_they_are_read(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    for said in ("made keyfile", "all secrets are there"):
        done = run(root, folder, WAYMARK_MEMORY_NEEDED="0")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(said)
        for name in prepare.SETTINGS:
            assert (folder / name).read_text() == (root / "mongo" / name).read_text()
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o444
        assert (tmp_path / "shared" / "app_password").exists()


def test_what_must_not_start_is_told_how_to_and_what_has_run_goes_on(
    root: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "secrets"
    has = prepare.memory_mib(Path("/proc/meminfo").read_text())
    refused = [
        (str(has + 1), f"{has} MiB of memory and swap"),
        ("a lot", "WAYMARK_MEMORY_NEEDED is no number of MiB"),
    ]
    for needed, words in refused:
        done = run(root, folder, WAYMARK_MEMORY_NEEDED=needed)
        assert done.returncode == 1
        assert words in done.stderr
        assert not folder.exists()
    advised = run(root, folder, WAYMARK_MEMORY_NEEDED=str(has - 1))
    assert advised.returncode == 0
    assert "mkswap" in advised.stderr
    for needed, words in refused:
        done = run(root, folder, WAYMARK_MEMORY_NEEDED=needed)
        assert done.returncode == 0
        assert words in done.stderr
        assert "It has run here, so it goes on" in done.stderr
