"""The kernel's control groups (cgroup v1 or v2): what it enforces on processes and counts."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

CONTROLLERS = ("cpu", "cpuacct", "memory")
NO_LIMIT_V1 = 2**62  # without a limit, v1 shows the highest number of whole pages


class LimitsUnavailableError(Exception):
    """This machine does not let us set limits; the text says what to do."""


class Limits(NamedTuple):
    """What a group may use, None for no limit; the defaults are those of one ingest service."""

    cpu: float | None = 0.3  # cores
    memory_bytes: int | None = 64 * 2**20


SERVICE = Limits()
UNLIMITED = Limits(None, None)  # only measured


class Usage(NamedTuple):
    """What a group has used since it was made, and uses now."""

    cpu_seconds: float
    throttled_seconds: float  # how long the CPU limit stopped it
    memory_bytes: int  # now, with page cache
    anonymous_bytes: int  # now; the part of it that cannot be given back
    peak_bytes: int  # with page cache, which fills up to the limit
    killed: int  # processes ended for want of memory


class ControlGroup:
    """One group and the processes in it, by the folder of each controller."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders
        self._v2 = (folders["memory"] / "cgroup.controllers").exists()

    @classmethod
    def of(cls, pid: int) -> "ControlGroup":
        """Return the group that a process is in, as that of a container."""
        mounted = mount_points(Path("/proc/self/mounts").read_text())
        folders: dict[str, Path] = {}
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, named, path = line.split(":", 2)
            for controller in named.split(",") if named else CONTROLLERS:  # v2 names none
                if controller in CONTROLLERS and (named or controller not in folders):
                    folders[controller] = mounted[controller] / path.lstrip("/")
        return cls(folders)

    def pids(self) -> list[int]:
        """Return the processes in the group."""
        return [int(pid) for pid in self._read("memory", "cgroup.procs").split()]

    def limits(self) -> Limits:
        """Return what the kernel enforces."""
        if self._v2:
            quota, period = self._read("cpu", "cpu.max").split()
            memory = self._read("memory", "memory.max").strip()
            return Limits(
                cpu=None if quota == "max" else int(quota) / int(period),
                memory_bytes=None if memory == "max" else int(memory),
            )
        cpu_us = int(self._read("cpu", "cpu.cfs_quota_us"))
        bytes_ = int(self._read("memory", "memory.limit_in_bytes"))
        return Limits(
            cpu=cpu_us / int(self._read("cpu", "cpu.cfs_period_us")) if cpu_us > 0 else None,
            memory_bytes=bytes_ if bytes_ < NO_LIMIT_V1 else None,
        )

    def usage(self) -> Usage:
        """Read the kernel's counters."""
        return self._usage_v2() if self._v2 else self._usage_v1()

    def held_bytes(self) -> int:
        """Return what cannot be given back now: all but the cached pages of files."""
        used = self._number("memory", "memory.current" if self._v2 else "memory.usage_in_bytes")
        total = "" if self._v2 else "total_"
        files = [f"{total}active_file", f"{total}inactive_file"]
        return used - sum(self._number("memory", "memory.stat", name) for name in files)

    def _usage_v1(self) -> Usage:
        return Usage(
            cpu_seconds=self._number("cpuacct", "cpuacct.usage") / 1e9,
            throttled_seconds=self._number("cpu", "cpu.stat", "throttled_time") / 1e9,
            memory_bytes=self._number("memory", "memory.usage_in_bytes"),
            anonymous_bytes=self._number("memory", "memory.stat", "total_rss"),
            peak_bytes=self._number("memory", "memory.max_usage_in_bytes"),
            killed=self._killed_v1(),
        )

    def _killed_v1(self) -> int:
        """Return also those of the groups inside, as v2 does: v1 counts each only where it ran."""
        folder = self._folders["memory"]
        files = [file.relative_to(folder) for file in folder.rglob("memory.oom_control")]
        return sum(self._number("memory", str(file), "oom_kill") for file in files)

    def _usage_v2(self) -> Usage:
        return Usage(
            cpu_seconds=self._number("cpu", "cpu.stat", "usage_usec") / 1e6,
            throttled_seconds=self._number("cpu", "cpu.stat", "throttled_usec") / 1e6,
            memory_bytes=self._number("memory", "memory.current"),
            anonymous_bytes=self._number("memory", "memory.stat", "anon"),
            peak_bytes=self._number("memory", "memory.peak"),
            killed=self._number("memory", "memory.events", "oom_kill"),
        )

    def _number(self, controller: str, file: str, key: str | None = None) -> int:
        """Return a file's number, or that of the line that begins with `key`; 0 if it has none."""
        pattern = r"(\d+)" if key is None else rf"^{key} (\d+)"
        match = re.search(pattern, self._read(controller, file), re.MULTILINE)
        return int(match[1]) if match else 0

    def _read(self, controller: str, file: str) -> str:
        try:
            return (self._folders[controller] / file).read_text()
        except FileNotFoundError:
            return ""


def mount_points(mounts: str) -> dict[str, Path]:
    """Return where each controller is mounted; with v2 that is one place for all."""
    places: dict[str, Path] = {}
    unified: Path | None = None
    for line in mounts.splitlines():
        _, at, kind, options = line.split()[:4]
        if kind == "cgroup":
            places |= {
                controller: Path(at)
                for controller in CONTROLLERS
                if controller in options.split(",")
            }
        elif kind == "cgroup2":
            unified = Path(at)
    if len(places) == len(CONTROLLERS):
        return places
    if unified is None:
        raise FileNotFoundError("no control groups are mounted")
    return dict.fromkeys(CONTROLLERS, unified)
