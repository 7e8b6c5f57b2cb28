"""What comes before everything else of the Docker stack."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mongo import prepare

OPEN = {"WAYMARK_ACCESS": "open", "WAYMARK_ADMIN_TOKEN_SHA256": ""}
GUARDED = {"WAYMARK_ACCESS": "required", "WAYMARK_ADMIN_TOKEN_SHA256": "digest"}
HERE = {"WAYMARK_PUBLISH": "127.0.0.1", "WAYMARK_TRUSTED_PROXIES": ""}
T2_MICRO = "MemTotal:         983000 kB\nMemFree:          1000 kB\nSwapTotal:      {swap} kB\n"


@pytest.mark.parametrize(
    ("changed", "others"),
    [
        ({}, ""),
        ({"WAYMARK_PUBLISH": "127.1.2.3"}, ""),
        ({"WAYMARK_PUBLISH": "localhost"}, ""),
        ({"WAYMARK_PUBLISH": "[::1]"}, ""),
        ({"WAYMARK_PUBLISH": "0.0.0.0"}, "0.0.0.0"),
        ({"WAYMARK_PUBLISH": "[::]"}, "[::]"),
        ({"WAYMARK_TRUSTED_PROXIES": "10.0.0.1"}, "10.0.0.1"),
        ({"WAYMARK_PUBLISH": "10.0.0.2", "WAYMARK_TRUSTED_PROXIES": "a b"}, "10.0.0.2 a b"),
    ],
)
def test_others_reach_it_with_tokens_alone(changed: dict[str, str], others: str) -> None:
    refused = prepare.exposed(HERE | OPEN | changed)
    assert refused.startswith(f"other machines would reach it ({others})" if others else "")
    assert bool(refused) == bool(others)
    half = {"WAYMARK_ACCESS": "required", "WAYMARK_ADMIN_TOKEN_SHA256": ""}
    assert prepare.exposed(HERE | half | changed) == refused
    assert prepare.exposed(HERE | GUARDED | changed) == ""


def test_the_swap_that_is_advised_is_enough() -> None:
    has = prepare.memory_mib(T2_MICRO.format(swap=0))
    assert has == 959
    [added] = re.findall(r"fallocate -l (\d+)M ", prepare.advice(has, 1050))
    then = prepare.memory_mib(T2_MICRO.format(swap=int(added) * 1024))
    assert 1050 <= then < 1050 + prepare.SWAP_MIB


def run(root: Path, folder: Path, **changed: str) -> subprocess.CompletedProcess[str]:
    shared = folder.parent / "shared"
    shared.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "mongo.prepare", str(folder), f"{shared}=app_password"],
        env=os.environ | HERE | OPEN | changed,
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


def test_what_must_not_start_is_told_how_to(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    has = prepare.memory_mib(Path("/proc/meminfo").read_text())
    for changed, words in [
        ({"WAYMARK_PUBLISH": "0.0.0.0", "WAYMARK_MEMORY_NEEDED": "0"}, "run ./scripts/configure"),
        ({"WAYMARK_MEMORY_NEEDED": str(has + 1)}, f"{has} MiB of memory and swap"),
    ]:
        done = run(root, folder, **changed)
        assert done.returncode == 1
        assert words in done.stderr
        assert not folder.exists()
    advised = run(root, folder, WAYMARK_MEMORY_NEEDED=str(has - 1))
    assert advised.returncode == 0
    assert "mkswap" in advised.stderr
