"""Run processes inside an enforced CPU share and memory limit, and read what they used.

    python -m loadtests.limits --cpu 0.3 --memory-mib 64 -- COMMAND...

Kernel control groups (cgroup v1 or v2) do the enforcing, which needs root.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

CONTROLLERS = ("cpu", "cpuacct", "memory")
PERIOD_US = 100_000  # the kernel's own default, and Docker's
REMOVE_SECONDS = 5.0


class LimitsUnavailable(Exception):
    """This machine does not let us set limits; the text says what to do."""


class Limits(NamedTuple):
    """What a group may use; the defaults are those of one service of the source system."""

    cpu: float | None = 0.3  # cores
    memory_bytes: int | None = 64 * 2**20


SERVICE = Limits()
UNLIMITED = Limits(None, None)  # only measured


class Usage(NamedTuple):
    """What a group has used since it was made, and uses now."""

    cpu_seconds: float
    throttled_seconds: float  # how long the CPU limit stopped it
    memory_bytes: int  # now, with page cache
    anonymous_bytes: int  # the part of it that cannot be given back
    peak_bytes: int
    killed: int  # processes ended for want of memory


class Group:
    """One control group and the processes in it; leaving the context ends and removes them."""

    def __init__(self, name: str, limits: Limits = SERVICE) -> None:
        self._folders = _make(f"waymark-{name}-{os.getpid()}-{uuid.uuid4().hex[:6]}")
        self._v2 = (self._folders["memory"] / "cgroup.controllers").exists()
        try:
            self.limit(limits)
        except OSError as error:
            self.close()
            raise _unavailable(error) from error

    def __enter__(self) -> "Group":
        """Return the group."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End what still runs in it, and remove it."""
        self.close()

    def command(self, command: Iterable[str]) -> list[str]:
        """Return a command that does the same inside the group, from its first byte of memory."""
        enter = " && ".join(f"echo $$ > '{folder}/cgroup.procs'" for folder in self._places())
        return ["sh", "-c", f'{enter} && exec "$@"', "sh", *command]

    def adopt(self, pid: int) -> None:
        """Move a process and its children in. What they have allocated counts where it was."""
        for one in _tree(pid):
            for folder in self._places():
                with contextlib.suppress(ProcessLookupError):
                    (folder / "cgroup.procs").write_text(str(one))

    def pids(self) -> list[int]:
        """Return the processes in the group."""
        return [int(pid) for pid in self._read("memory", "cgroup.procs").split()]

    def limit(self, limits: Limits) -> None:
        """Set what is given of the limits, now; what is None stays as it is."""
        if limits.cpu is not None:
            quota = str(int(limits.cpu * PERIOD_US))
            if self._v2:
                (self._folders["cpu"] / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            else:
                (self._folders["cpu"] / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (self._folders["cpu"] / "cpu.cfs_quota_us").write_text(quota)
        if limits.memory_bytes is not None:
            file = "memory.max" if self._v2 else "memory.limit_in_bytes"
            (self._folders["memory"] / file).write_text(str(limits.memory_bytes))

    def usage(self) -> Usage:
        """Read the kernel's counters."""
        return self._usage_v2() if self._v2 else self._usage_v1()

    def close(self, patience_seconds: float = 10.0) -> None:
        """Ask what runs in the group to end, kill what does not, remove the group."""
        self._end(signal.SIGTERM, patience_seconds)
        self._end(signal.SIGKILL, REMOVE_SECONDS)
        for folder in self._places():
            _until(lambda folder=folder: _removed(folder), REMOVE_SECONDS)  # type: ignore[misc]

    def _end(self, number: int, seconds: float) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        with contextlib.suppress(TimeoutError):
            _until(lambda: not self.pids(), seconds)

    def _places(self) -> list[Path]:
        return list(dict.fromkeys(self._folders.values()))

    def _read(self, controller: str, file: str) -> str:
        try:
            return (self._folders[controller] / file).read_text()
        except FileNotFoundError:
            return ""

    def _number(self, controller: str, file: str, key: str | None = None) -> int:
        """Return a file's number, or that of the line that begins with `key`; 0 if it has none."""
        pattern = r"(\d+)" if key is None else rf"^{key} (\d+)"
        found = re.search(pattern, self._read(controller, file), re.MULTILINE)
        return int(found[1]) if found else 0

    def _usage_v1(self) -> Usage:
        return Usage(
            cpu_seconds=self._number("cpuacct", "cpuacct.usage") / 1e9,
            throttled_seconds=self._number("cpu", "cpu.stat", "throttled_time") / 1e9,
            memory_bytes=self._number("memory", "memory.usage_in_bytes"),
            anonymous_bytes=self._number("memory", "memory.stat", "rss"),
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


def _make(name: str) -> dict[str, Path]:
    """Make the folder of a new group under each controller."""
    try:
        parents = _parents(Path("/proc/self/mounts").read_text())
        _remove_stale(set(parents.values()))
        folders = {controller: parent / name for controller, parent in parents.items()}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
    except OSError as error:
        raise _unavailable(error) from error
    return folders


def _remove_stale(parents: Iterable[Path]) -> None:
    """Remove empty groups of runs that were killed; the name holds who made it."""
    for parent in parents:
        for folder in parent.glob("waymark-*-*-*"):
            pid = folder.name.split("-")[-2]
            if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
                _removed(folder)


def _parents(mounts: str) -> dict[str, Path]:
    """Return where groups are made, by controller; cgroup v2 has one place for all."""
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
    (unified / "cgroup.subtree_control").write_text("+cpu +memory")
    return dict.fromkeys(CONTROLLERS, unified)


def _unavailable(error: OSError) -> LimitsUnavailable:
    return LimitsUnavailable(
        f"no CPU and memory limits here ({error}): run as root, where the kernel's control groups "
        "can be written (in a container: docker run --privileged --cgroupns=host)"
    )


def _tree(pid: int) -> list[int]:
    """Return a process and all its children, those that it forks meanwhile too."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in task.read_text().split()]
    return found


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # a process is still ending
        return False
    return True


def _until(holds: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s")
        time.sleep(0.02)


def run(command: list[str], limits: Limits, environment: Mapping[str, str] = os.environ) -> Usage:
    """Run a command to its end (or Ctrl-C) under limits; return what it used."""
    with Group("run", limits) as group:
        child = subprocess.Popen(group.command(command), env=dict(environment))
        with contextlib.suppress(KeyboardInterrupt):
            child.wait()
        usage = group.usage()
        group.close()
        child.wait()
    return usage


def main() -> None:
    """Run the command line's command and say at its end what it used."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.limits", description=__doc__)
    parser.add_argument("--cpu", type=float, default=0.3, help="cores (0.3)")
    parser.add_argument("--memory-mib", type=float, default=64, help="MiB (64)")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        limits = Limits(options.cpu, int(options.memory_mib * 2**20))
        print(run(options.command, limits), file=sys.stderr)
    except LimitsUnavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
