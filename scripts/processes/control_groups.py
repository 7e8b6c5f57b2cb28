"""The kernel's control groups (cgroup v1 or v2): limit what processes use, and read it."""

import contextlib
import os
import re
import signal
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from scripts.processes.waiting import eventually

CONTROLLERS = ("cpu", "cpuacct", "memory")
PERIOD_US = 100_000  # the kernel's own default, and Docker's
STOP_SECONDS, KILL_SECONDS, REMOVE_SECONDS = 10.0, 5.0, 5.0
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
        mounted = _mounted(Path("/proc/self/mounts").read_text())
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

    def _usage_v1(self) -> Usage:
        return Usage(
            cpu_seconds=self._number("cpuacct", "cpuacct.usage") / 1e9,
            throttled_seconds=self._number("cpu", "cpu.stat", "throttled_time") / 1e9,
            memory_bytes=self._number("memory", "memory.usage_in_bytes"),
            anonymous_bytes=self._number("memory", "memory.stat", "total_rss"),
            peak_bytes=self._number("memory", "memory.max_usage_in_bytes"),
            killed=self._number("memory", "memory.oom_control", "oom_kill"),
        )

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
        found = re.search(pattern, self._read(controller, file), re.MULTILINE)
        return int(found[1]) if found else 0

    def _read(self, controller: str, file: str) -> str:
        try:
            return (self._folders[controller] / file).read_text()
        except FileNotFoundError:
            return ""


class LimitedGroup(ControlGroup):
    """A new group with limits; leaving the context ends its processes and removes it."""

    def __init__(self, name: str, limits: Limits = SERVICE) -> None:
        super().__init__(_make(f"waymark-{name}-{os.getpid()}-{uuid.uuid4().hex[:6]}"))
        try:
            self.limit(limits)
        except OSError as error:
            self.close()
            raise _unavailable(error) from error

    def __enter__(self) -> Self:
        """Return the group."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs in it, and remove it."""
        self.close()

    def command(self, command: Iterable[str]) -> list[str]:
        """Return a command that does the same inside the group, from its first byte of memory."""
        enter = " && ".join(f"echo $$ > '{folder}/cgroup.procs'" for folder in self._places())
        return ["sh", "-c", f'{enter} && exec "$@"', "sh", *command]

    def adopt(self, pid: int) -> None:
        """Move a process and its children in. What they have allocated counts where it was."""
        for one in _with_children(pid):
            for folder in self._places():
                with contextlib.suppress(ProcessLookupError):
                    (folder / "cgroup.procs").write_text(str(one))

    def limit(self, limits: Limits) -> None:
        """Set the limits that are given, now; one that is None stays as it is."""
        if limits.cpu is not None:
            quota = str(int(limits.cpu * PERIOD_US))
            if self._v2:
                self._write("cpu", "cpu.max", f"{quota} {PERIOD_US}")
            else:
                self._write("cpu", "cpu.cfs_period_us", str(PERIOD_US))
                self._write("cpu", "cpu.cfs_quota_us", quota)
        if limits.memory_bytes is not None:
            file = "memory.max" if self._v2 else "memory.limit_in_bytes"
            self._write("memory", file, str(limits.memory_bytes))

    def close(self) -> None:
        """Ask what runs in the group to end, kill what does not, remove the group."""
        self._end(signal.SIGTERM, STOP_SECONDS)
        self._end(signal.SIGKILL, KILL_SECONDS)
        eventually(lambda: all(_removed(folder) for folder in self._places()), REMOVE_SECONDS)

    def _end(self, number: int, seconds: float) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        with contextlib.suppress(TimeoutError):
            eventually(lambda: not self.pids(), seconds)

    def _places(self) -> list[Path]:
        return list(dict.fromkeys(self._folders.values()))

    def _write(self, controller: str, file: str, text: str) -> None:
        (self._folders[controller] / file).write_text(text)


def available() -> bool:
    """Tell whether this machine lets us set limits."""
    try:
        with LimitedGroup("probe", UNLIMITED):
            return True
    except LimitsUnavailableError:
        return False


def _make(name: str) -> dict[str, Path]:
    """Make the folder of a new group under each controller."""
    try:
        parents = _mounted(Path("/proc/self/mounts").read_text())
        if (parents["memory"] / "cgroup.controllers").exists():  # v2
            (parents["memory"] / "cgroup.subtree_control").write_text("+cpu +memory")
        _remove_stale(set(parents.values()))
        folders = {controller: parent / name for controller, parent in parents.items()}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
    except OSError as error:
        raise _unavailable(error) from error
    return folders


def _mounted(mounts: str) -> dict[str, Path]:
    """Return where each controller is mounted; with v2 that is one place for all."""
    found: dict[str, Path] = {}
    unified: Path | None = None
    for line in mounts.splitlines():
        _, at, kind, options = line.split()[:4]
        if kind == "cgroup":
            found |= {one: Path(at) for one in CONTROLLERS if one in options.split(",")}
        elif kind == "cgroup2":
            unified = Path(at)
    if len(found) == len(CONTROLLERS):
        return found
    if unified is None:
        raise FileNotFoundError("no control groups are mounted")
    return dict.fromkeys(CONTROLLERS, unified)


def _remove_stale(parents: Iterable[Path]) -> None:
    """Remove empty groups of runs that were killed; the name holds who made it."""
    for parent in parents:
        for folder in parent.glob("waymark-*-*-*"):
            pid = folder.name.split("-")[-2]
            if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
                _removed(folder)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # a process is still ending
        return False
    return True


def _unavailable(error: OSError) -> LimitsUnavailableError:
    return LimitsUnavailableError(
        f"no CPU and memory limits here ({error}): run as root, where the kernel's control groups "
        "can be written (in a container: docker run --privileged --cgroupns=host)"
    )


def _with_children(pid: int) -> list[int]:
    """Return a process and all its children, those that it forks meanwhile too."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in task.read_text().split()]
    return found
