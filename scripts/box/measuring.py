"""What the containers, the engine and the rest of the machine take over some seconds."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from scripts.box import processes
from scripts.box.docker import Container
from scripts.processes.control_groups import ControlGroup, Usage

MIB = 2**20
SAMPLE_SECONDS = 1.0


class Part(NamedTuple):
    """One container, or the engine: CPU seconds a minute, and MiB; None where it cannot be read."""

    cpu: float
    anonymous: float
    most_anonymous: float  # while it was measured
    text: float | None  # its share of the pages of programs and other files that are mapped
    limit: float | None = None
    now: float | None = None
    peak: float | None = None  # since the start, with page cache
    killed: int = 0


class Machine(NamedTuple):
    """The whole machine: CPU seconds a minute, and MiB."""

    cpu: float
    total: float
    available: float
    swap: float
    swapped: float


class Measured(NamedTuple):
    """What was found in so many seconds."""

    seconds: float
    containers: Mapping[str, Part]
    engine: Part
    machine: Machine

    @property
    def cpu(self) -> float:
        """CPU seconds a minute of the containers and the engine."""
        return self.engine.cpu + sum(part.cpu for part in self.containers.values())


class _Moment(NamedTuple):
    """The counters of one moment."""

    usage: dict[str, Usage]
    alive: dict[str, float]  # CPU of each container's processes, and of those that they waited for
    engine: float  # CPU of the engine's processes, and of those that they waited for
    machine: float


def measure(watched: Sequence[Container], daemon: int | None, seconds: float) -> Measured:
    """Watch the containers and their engine for so long."""
    groups = {container.name: ControlGroup.of(container.pid) for container in watched}
    engine = processes.engine(
        processes.processes(), [container.pid for container in watched], daemon
    )
    before, began = _moment(groups, engine), time.monotonic()
    most = {name: used.anonymous_bytes for name, used in before.usage.items()}
    while (left := began + seconds - time.monotonic()) > 0:
        time.sleep(min(SAMPLE_SECONDS, left))
        for name, group in groups.items():
            most[name] = max(most[name], group.usage().anonymous_bytes)
    after, took = _moment(groups, engine), time.monotonic() - began
    a_minute = 60 / took
    containers = {
        name: _container(groups[name], spent * a_minute, most[name])
        for name, spent in _spent(before, after).items()
    }
    worked, sizes = after.machine - before.machine, processes.machine()[1]
    machine = Machine(
        worked * a_minute,
        sizes["MemTotal"],
        sizes["MemAvailable"],
        sizes["SwapTotal"],
        sizes["SwapTotal"] - sizes["SwapFree"],
    )
    return Measured(
        took, containers, _engine(engine, engine_cpu(before, after) * a_minute), machine
    )


def engine_cpu(before: _Moment, after: _Moment) -> float:
    """Return what the engine took, with the programs that it started and that have ended.

    A health check is such a program: the time that it took inside its container is counted there
    (it is what the container's processes do not account for), and taken off here.
    """
    inside = 0.0
    for name, spent in _spent(before, after).items():
        inside += max(0.0, spent - (after.alive[name] - before.alive[name]))
    return max(0.0, after.engine - before.engine - inside)


def _spent(before: _Moment, after: _Moment) -> dict[str, float]:
    return {
        name: used.cpu_seconds - before.usage[name].cpu_seconds
        for name, used in after.usage.items()
    }


def _moment(groups: Mapping[str, ControlGroup], engine: set[int]) -> _Moment:
    alive, usage = {}, {}
    for name, group in groups.items():  # one after the other: both figures are of one moment
        alive[name] = _total(group.pids())
        usage[name] = group.usage()
    return _Moment(usage, alive, _total(engine), processes.machine()[0])


def _total(pids: Iterable[int]) -> float:
    return sum(
        process.seconds + process.ended_seconds for process in processes.by_pid(pids).values()
    )


def _container(group: ControlGroup, cpu: float, most: int) -> Part:
    used, limit = group.usage(), group.limits().memory_bytes
    return Part(
        cpu=cpu,
        anonymous=used.anonymous_bytes / MIB,
        most_anonymous=most / MIB,
        text=_text(processes.memory(pid) for pid in group.pids()),
        limit=None if limit is None else limit / MIB,
        now=used.memory_bytes / MIB,
        peak=used.peak_bytes / MIB if used.peak_bytes else None,  # v2 has it since Linux 5.19
        killed=used.killed,
    )


def _engine(pids: set[int], cpu: float) -> Part:
    memories = [processes.memory(pid) for pid in pids]
    anonymous = sum(memory.anonymous for memory in memories)
    return Part(cpu, anonymous, anonymous, _text(memories))


def _text(memories: Iterable[processes.Memory]) -> float | None:
    """Return the sum, None when something is not known."""
    known = [memory.text for memory in memories]
    return None if None in known else sum(text for text in known if text is not None)
