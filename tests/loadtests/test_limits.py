"""The limits are enforced, not only written down."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadtests import limits
from loadtests.limits import Group, Limits, LimitsUnavailable

V1 = "\n".join(f"cgroup /sys/fs/cgroup/{one} cgroup rw,{one} 0 0" for one in limits.CONTROLLERS)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="limits need root")


@as_root
def test_the_cpu_share_is_enforced() -> None:
    spin = "import time; end = time.monotonic() + 2\nwhile time.monotonic() < end: pass"
    used = limits.run([sys.executable, "-c", spin], Limits(0.3, None))
    assert used.cpu_seconds < 0.3 * 2.5 + 0.2  # beside other load it may get less
    assert used.throttled_seconds > 0


@as_root
def test_the_memory_limit_is_enforced() -> None:
    used = limits.run([sys.executable, "-c", "bytearray(100 << 20)"], limits.SERVICE)
    assert used.killed == 1
    assert used.peak_bytes <= 64 * 2**20


@as_root
def test_a_group_adopts_a_process_and_its_children_and_ends_them() -> None:
    script = ["sh", "-c", "sleep 60 & echo; wait"]
    with subprocess.Popen(script, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        with Group("test") as group:
            group.adopt(process.pid)
            assert len(group.pids()) == 2
    assert process.returncode != 0


def test_both_kinds_of_control_groups_are_found(tmp_path: Path) -> None:
    assert limits._parents(V1)["memory"] == Path("/sys/fs/cgroup/memory")
    found = limits._parents(f"cgroup2 {tmp_path} cgroup2 rw 0 0")
    assert set(found.values()) == {tmp_path}
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_without_permission_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_: Path) -> str:
        raise PermissionError("no")

    monkeypatch.setattr(limits, "_parents", forbidden)
    with pytest.raises(LimitsUnavailable, match="run as root"):
        Group("test")
