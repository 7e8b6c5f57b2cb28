"""The limits are enforced, not only written down."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.processes import limited_group
from scripts.processes.control_groups import (
    CONTROLLERS,
    SERVICE,
    UNLIMITED,
    ControlGroup,
    Limits,
    LimitsUnavailableError,
    Usage,
)
from scripts.processes.limited_group import LimitedGroup
from tests.needs import limited


def run(program: str, limits: Limits) -> Usage:
    """Run a program of Python to its end under limits; return what it used."""
    with LimitedGroup("test", limits) as group:
        subprocess.run(group.command([sys.executable, "-c", program]), check=False)
        return group.usage()


@limited
def test_the_cpu_share_is_enforced() -> None:
    # So small a share that beside twenty others it is still the share that holds it back.
    began = time.monotonic()
    used = run("import time\nwhile time.process_time() < 0.15: pass", Limits(0.05, None))
    assert used.cpu_seconds < 0.05 * (time.monotonic() - began) + 0.05
    assert used.throttled_seconds > 0


@limited
def test_the_memory_limit_is_enforced() -> None:
    used = run("bytearray(100 << 20)", SERVICE)
    assert used.killed == 1
    assert used.peak_bytes <= 64 * 2**20


@limited
def test_what_runs_in_a_group_inside_is_limited_and_counted_by_the_outer_one() -> None:
    with (
        LimitedGroup("outer", SERVICE) as outer,
        LimitedGroup("inner", UNLIMITED, inside=outer) as inner,
    ):
        hog = [sys.executable, "-c", "bytearray(100 << 20)"]
        subprocess.run(inner.command(hog), check=False)
        assert outer.pids() == []
        assert outer.usage().killed == inner.usage().killed == 1
        assert outer.usage().cpu_seconds >= inner.usage().cpu_seconds > 0


@limited
def test_a_group_adopts_a_process_and_its_children_and_ends_them() -> None:
    script = ["sh", "-c", "sleep 60 & echo; wait"]
    with subprocess.Popen(script, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        with LimitedGroup("test") as group:
            group.adopt(process.pid)
            assert len(group.pids()) == 2
    assert process.returncode != 0


@limited
@pytest.mark.parametrize("limits", [SERVICE, UNLIMITED])
def test_the_limits_of_any_process_are_read(limits: Limits) -> None:
    with LimitedGroup("test", limits) as group:
        command = group.command(["sh", "-c", "echo; exec sleep 60"])
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            process.stdout.readline()
            read_group = ControlGroup.of(process.pid)
            assert read_group.limits() == limits
            assert read_group.pids() == [process.pid]
            assert 0 < read_group.usage().memory_bytes < 64 * 2**20
            process.kill()


def test_a_new_group_of_v2_is_limited_and_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files stand for the kernel's: this machine has only one of the two kinds."""
    monkeypatch.setattr(
        limited_group, "mount_points", lambda _: dict.fromkeys(CONTROLLERS, tmp_path)
    )
    (tmp_path / "cgroup.controllers").touch()
    folders = limited_group._made("waymark-test-0-0")
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory"
    (folders["cpu"] / "cgroup.controllers").touch()
    group = LimitedGroup.__new__(LimitedGroup)
    ControlGroup.__init__(group, folders)
    group.limit(SERVICE)
    assert (folders["cpu"] / "cpu.max").read_text() == "30000 100000"
    assert group.limits() == SERVICE
    (folders["cpu"] / "cpu.max").write_text("max 100000\n")
    (folders["cpu"] / "memory.max").write_text("max\n")
    (folders["cpu"] / "cpu.stat").write_text("usage_usec 1500000\nthrottled_usec 500000\n")
    (folders["cpu"] / "memory.current").write_text("20\n")
    stat = "anon 7\nfile 9\ninactive_file 4\nactive_file 2\n"
    (folders["cpu"] / "memory.stat").write_text(stat)
    assert group.limits() == UNLIMITED
    assert group.usage()[:2] == (1.5, 0.5)
    assert group.usage().anonymous_bytes == 7
    assert group.held_bytes() == 20 - 4 - 2
    group.forget_peak()  # there is no file to write to


def test_without_permission_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_: Path) -> str:
        raise PermissionError("no")

    monkeypatch.setattr(limited_group, "mount_points", forbidden)
    with pytest.raises(LimitsUnavailableError, match="run as root"):
        LimitedGroup("test")
