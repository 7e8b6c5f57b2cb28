"""What the parts hold while they get load, and whether one of their processes ended."""

import math
import statistics
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple, Self

from scripts.processes.control_groups import Limits
from scripts.processes.limited_group import LimitedGroup

MIB = 2**20
SAMPLE_SECONDS = 0.05  # a megabyte that Python builds under a CPU limit takes longer
AT_LEAST = 6  # samples, to tell growth


class Part(NamedTuple):
    """One part during one case, in MiB; what it holds is what cannot be given back."""

    limit: float
    rest: float  # before the load
    peak: float
    growth: float  # from the first third of the time after warm-up to the last
    kernel_peak: float  # with cached pages of files, which fill up to the limit
    killed: int  # processes, for want of memory
    ended: int  # processes of a service that are gone, whoever ended them


class Watch:
    """Samples the groups of parts in a thread, for as long as the context lasts."""

    def __init__(self, groups: Mapping[str, LimitedGroup], limits: Mapping[str, Limits]) -> None:
        self._groups = groups
        self._limits = limits
        self._samples: dict[str, list[tuple[float, int]]] = {name: [] for name in groups}
        self._warm = math.inf
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Self:
        """Begin."""
        self._killed = {name: group.usage().killed for name, group in self._groups.items()}
        self._pids = {name: set(group.pids()) for name, group in self._groups.items()}
        for group in self._groups.values():
            group.forget_peak()
        self._take()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ended.set()
        self._thread.join()

    def warm(self) -> None:
        """Note that the warm-up is over: from now on nothing is to grow."""
        self._warm = time.monotonic()

    def parts(self) -> dict[str, Part]:
        """Return what was seen of each part."""
        return {name: self._part(name) for name in self._groups}

    def _part(self, name: str) -> Part:
        usage, gone = self._groups[name].usage(), self._pids[name] - set(self._groups[name].pids())
        held = [held / MIB for _, held in self._samples[name]]
        warm = [held / MIB for at, held in self._samples[name] if at >= self._warm]
        return Part(
            limit=(self._limits[name].memory_bytes or 0) / MIB,
            rest=held[0],
            peak=max(held),
            growth=growth(warm),
            kernel_peak=usage.peak_bytes / MIB,
            killed=usage.killed - self._killed[name],
            # nginx's helpers end when they have done their work.
            ended=0 if name == "gateway" else len(gone),
        )

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self._take()

    def _take(self) -> None:
        now = time.monotonic()
        for name, group in self._groups.items():
            self._samples[name].append((now, group.held_bytes()))


def growth(held: list[float]) -> float:
    """Return by how much the last third of samples is above the first; 0 of too few."""
    if len(held) < AT_LEAST:
        return 0.0
    third = len(held) // 3
    return statistics.median(held[-third:]) - statistics.median(held[:third])
