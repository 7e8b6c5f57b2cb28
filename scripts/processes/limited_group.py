"""Groups of our own, which limit the processes that are started in them; needs root."""

import contextlib
import os
import signal
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from scripts.processes.control_groups import (
    SERVICE,
    UNLIMITED,
    ControlGroup,
    Limits,
    LimitsUnavailableError,
    mount_points,
)
from scripts.processes.waiting import eventually

PERIOD_US = 100_000  # the kernel's own default, and Docker's
STOP_SECONDS, KILL_SECONDS, REMOVE_SECONDS = 10.0, 5.0, 5.0


class LimitedGroup(ControlGroup):
    """A new group with limits; leaving the context ends its processes and removes it.

    It may be `inside` another one, which then has no processes of its own: v2 forbids both.
    """

    def __init__(
        self, name: str, limits: Limits = SERVICE, inside: "LimitedGroup | None" = None
    ) -> None:
        parents = inside._folders if inside else None
        super().__init__(_made(f"waymark-{name}-{os.getpid()}-{uuid.uuid4().hex[:6]}", parents))
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

    @property
    def name(self) -> str:
        """The name of its folder under each controller."""
        return self._folders["memory"].name

    def command(self, command: Iterable[str]) -> list[str]:
        """Return a command that does the same inside the group, from its first byte of memory."""
        enter = " && ".join(f"echo $$ > '{folder}/cgroup.procs'" for folder in self._places())
        return ["sh", "-c", f'{enter} && exec "$@"', "sh", *command]

    def adopt(self, pid: int) -> None:
        """Move a process and its children in. What they have allocated counts where it was."""
        for member in _with_children(pid):
            for folder in self._places():
                with contextlib.suppress(ProcessLookupError):
                    (folder / "cgroup.procs").write_text(str(member))

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

    def forget_peak(self) -> None:
        """Begin the kernel's peak anew; v2 keeps it for the life of the group."""
        if not self._v2:
            self._write("memory", "memory.max_usage_in_bytes", "0")

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


def _made(name: str, parents: Mapping[str, Path] | None = None) -> dict[str, Path]:
    """Make the folder of a new group under each controller."""
    try:
        parents = parents or mount_points(Path("/proc/self/mounts").read_text())
        if (parents["memory"] / "cgroup.controllers").exists():  # v2
            (parents["memory"] / "cgroup.subtree_control").write_text("+cpu +memory")
        _remove_stale(set(parents.values()))
        folders = {controller: parent / name for controller, parent in parents.items()}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
    except OSError as error:
        raise _unavailable(error) from error
    return folders


def _remove_stale(parents: Iterable[Path]) -> None:
    """Remove empty groups of runs that were killed; the name holds their maker's pid."""
    for parent in parents:
        for folder in parent.glob("waymark-*-*-*"):
            pid = folder.name.split("-")[-2]
            if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
                for inner in sorted(folder.glob("**/"), reverse=True):  # what is inside goes first
                    _removed(inner)


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
    pids = [pid]
    for process in pids:
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pids += [int(child) for child in task.read_text().split()]
    return pids
