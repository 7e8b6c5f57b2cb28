"""The budgets of the 1 GB box, and the table that holds what was measured against them."""

from collections.abc import Sequence
from typing import NamedTuple

from scripts.box.measuring import Machine, Measured, Part

BOX_MIB = 983  # what a t2.micro has left of its 1024
SYSTEM_MIB = 172  # what Debian holds on it, its kernel included
EARNED = 6.0  # CPU seconds a minute that a t2.micro may use for ever
# CPU seconds a minute of the containers and the engine, health checks included.
BUDGETS = {"idle": 2.5, "people": 5.0, "peak": 13.0}
HEAD = ["part", "limit", "now", "peak", "anonymous", "at most", "text", "CPU s/min"]


class Memory(NamedTuple):
    """MiB that the box has to hold at once."""

    limits: float
    anonymous: float  # of the containers, at most while it was measured
    text: float
    engine: float
    system: float

    @property
    def held(self) -> float:
        """What is there now: all but the page cache."""
        return self.anonymous + self.text + self.engine + self.system


def memory(measured: Measured) -> Memory:
    """Return what the box has to hold; only a small machine's own rest is that of the box."""
    parts = measured.containers.values()
    rest = measured.machine.total - measured.machine.available - measured.engine.anonymous
    rest -= sum(part.anonymous for part in parts)
    is_box = measured.machine.total < 2 * BOX_MIB
    return Memory(
        limits=sum(part.limit or 0 for part in parts),
        anonymous=sum(part.most_anonymous for part in parts),
        text=sum(part.text or 0 for part in parts),
        engine=measured.engine.anonymous + (measured.engine.text or 0),
        system=max(0.0, rest) if is_box else SYSTEM_MIB,
    )


def problems(measured: Measured, load: str | None) -> list[str]:
    """Return what is over its budget, or was killed."""
    held, wrong = memory(measured).held, []
    if load and measured.cpu > BUDGETS[load]:
        wrong.append(f"CPU: {measured.cpu:.2f} s a minute of {BUDGETS[load]:g} ({load})")
    if held > BOX_MIB:
        wrong.append(f"memory: {held:.0f} of {BOX_MIB} MiB")
    for name, part in measured.containers.items():
        if part.killed:
            wrong.append(f"{name}: {part.killed} processes killed for want of memory")
    return wrong


def report(measured: Measured, load: str | None, wrong: Sequence[str]) -> str:
    """Return the table, what it adds up to, and the verdict: what is wrong, if anything is."""
    rows = [_row(name, part) for name, part in measured.containers.items()]
    rows.append(_row("engine", measured.engine))
    sums = memory(measured)
    budget = f" of {BUDGETS[load]:g} ({load})" if load else ""
    cpu = (
        f"CPU: {measured.cpu:.2f} s a minute{budget}; a t2.micro earns {EARNED:g}; "
        f"the rest of this machine took {max(0.0, measured.machine.cpu - measured.cpu):.2f}"
    )
    held = (
        f"Memory: {sums.anonymous:.0f} anonymous and {sums.text:.0f} of program text in the "
        f"containers, {sums.engine:.0f} engine, {sums.system:.0f} system: {sums.held:.0f} of "
        f"{BOX_MIB} MiB; the limits add up to {sums.limits:.0f}"
    )
    return "\n".join(
        [table([HEAD, *rows]), "", cpu, held, *_notes(measured), _verdict(wrong, load)]
    )


def _verdict(wrong: Sequence[str], load: str | None) -> str:
    if wrong:
        return f"Not within the budgets: {'; '.join(wrong)}"
    return "Within the budgets" if load else "Within the budget of memory; --load tells of CPU"


def _notes(measured: Measured) -> list[str]:
    machine: Machine = measured.machine
    swap = f"{machine.swapped:.0f} of {machine.swap:.0f} MiB used" if machine.swap else "none"
    notes = [
        f"This machine: {machine.total:.0f} MiB, {machine.available:.0f} available; swap: {swap}"
    ]
    if machine.total >= 2 * BOX_MIB:
        notes.append(f"It is no 1 GB box: of its system {SYSTEM_MIB} MiB are counted")
    if any(part.text is None for part in (measured.engine, *measured.containers.values())):
        notes.append("Not read and not counted: program text of others' processes; run it as root")
    if any(part.peak is None for part in measured.containers.values()):
        notes.append("Not read: the containers' peaks, which this kernel does not keep")
    return notes


def _row(name: str, part: Part) -> list[str]:
    sizes = (part.limit, part.now, part.peak, part.anonymous, part.most_anonymous, part.text)
    return [name, *("" if size is None else f"{size:.0f}" for size in sizes), f"{part.cpu:.2f}"]


def table(rows: list[list[str]]) -> str:
    """Return rows as Markdown, the first of them being the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
    lines = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
