"""The first ten minutes on a new machine: which container has too little memory, and what to write.

What counts is anonymous memory, and the program's own pages, without which a mongod reads its
program from the disk again and again (docs/memory.md). The page cache takes what is left of a
limit, so a peak at the limit is no sign.
"""

import math

from scripts.box.budget import table
from scripts.box.measuring import Measured, Part

FULL = 0.9  # of its limit: as the alert WaymarkMemoryShort has it
ROOM = 0.8  # of a new limit may be in use
STEP_MIB = 16
HEAD = ["part", "limit", "peak", "in use", "of limit", "source used", "source limit"]
# What `docker stats` told the source of its containers, and their limits, in MiB; by our names.
SOURCE = {
    "gateway": (5.0, 32),
    "ingest-1": (30.3, 64),
    "ingest-2": (25.6, 64),
    "monitoring": (19.3, 32),
    "mongos-1": (31.8, 64),
    "mongos-2": (25.5, 64),
    "configsvr": (112.2, 256),
    "shard1": (91.5, 256),
    "shard2": (88.5, 256),
}


def in_use(part: Part) -> float:
    """Return the MiB that a container needs; without its program's pages where they are unknown."""
    return part.most_anonymous + (part.text or 0.0)


def raised(part: Part) -> int | None:
    """Return the MiB that its limit should be, None where it is enough or there is none."""
    if part.limit is None or (not part.killed and in_use(part) < FULL * part.limit):
        return None
    # Of what was killed nobody knows how much it wanted.
    wanted = max(in_use(part), part.limit if part.killed else 0.0) / ROOM
    return math.ceil(wanted / STEP_MIB) * STEP_MIB


def report(measured: Measured) -> str:
    """Return the table, and what to write into docker-compose.override.yml, if anything."""
    parts = measured.containers
    lines = [table([HEAD, *(_row(name, part) for name, part in parts.items())]), ""]
    limits: dict[str, int] = {}
    for name, part in parts.items():
        if limit := raised(part):
            service = name.split(" ")[0]  # a second container of it has the same limit
            limits[service] = max(limit, limits.get(service, 0))
    if not limits:
        return "\n".join([*lines, "No limit has to be raised"])
    lines.append("To be raised, in docker-compose.override.yml; then docker compose up -d:")
    lines.append("services:")
    lines += [f"  {service}: {{mem_limit: {limit}m}}" for service, limit in limits.items()]
    more = sum(
        limits[service] - (part.limit or 0)
        for name, part in parts.items()
        if (service := name.split(" ")[0]) in limits
    )
    available = measured.machine.available
    lines.append(f"That is {more:.0f} MiB more; this machine has {available:.0f} available")
    return "\n".join(lines)


def _row(name: str, part: Part) -> list[str]:
    used, limit = SOURCE.get(name, ("", ""))
    share = f"{in_use(part) / part.limit:.0%}" if part.limit else ""
    sizes = (part.limit, part.peak, in_use(part))
    cells = ["" if size is None else f"{size:.0f}" for size in sizes]
    return [name, *cells, share, str(used), str(limit)]
