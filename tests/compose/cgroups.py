"""What the kernel enforces on a container and counts of it, on cgroup v1 and v2."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path("/sys/fs/cgroup")
MIB = 1024 * 1024


class Memory(NamedTuple):
    """The memory of a container, in bytes."""

    limit: int
    peak: int  # the kernel's high-water mark: with page cache, which fills up to the limit
    anonymous: int  # now; what cannot be given back
    killed: int  # processes, by the out-of-memory killer


def memory(pid: int) -> Memory:
    """Read the memory group of the container whose first process is `pid`."""
    group, version = _group(pid, "memory")
    if version == 1:
        return Memory(
            limit=int((group / "memory.limit_in_bytes").read_text()),
            peak=int((group / "memory.max_usage_in_bytes").read_text()),
            anonymous=_value(group / "memory.stat", "total_rss"),
            killed=_value(group / "memory.oom_control", "oom_kill"),
        )
    return Memory(
        limit=int((group / "memory.max").read_text()),
        peak=int((group / "memory.peak").read_text()),
        anonymous=_value(group / "memory.stat", "anon"),
        killed=_value(group / "memory.events", "oom_kill"),
    )


def cpus(pid: int) -> float:
    """Return how many CPUs the container of `pid` may use."""
    group, version = _group(pid, "cpu")
    if version == 1:
        quota = int((group / "cpu.cfs_quota_us").read_text())
        return quota / int((group / "cpu.cfs_period_us").read_text())
    quota_text, period = (group / "cpu.max").read_text().split()
    return int(quota_text) / int(period)


def _group(pid: int, controller: str) -> tuple[Path, int]:
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return ROOT / controllers / path.lstrip("/"), 1
        if not controllers and (ROOT / "cgroup.controllers").exists():
            return ROOT / path.lstrip("/"), 2
    raise AssertionError(f"process {pid} is in no group of {controller}")


def _value(file: Path, name: str) -> int:
    pairs = (line.split() for line in file.read_text().splitlines())
    return next(int(value) for key, value in pairs if key == name)
