"""The memory of a process or its container, and its limit."""

import os
from pathlib import Path
from typing import NamedTuple

CGROUPS = Path("/sys/fs/cgroup")
# Of version 2 and of version 1: the folder, the limit, and the line of the statistics that counts
# what cannot be freed.
KINDS = (("", "memory.max", "anon"), ("memory", "memory.limit_in_bytes", "total_rss"))
NO_LIMIT_BYTES = 1 << 50


class Memory(NamedTuple):
    """Bytes that cannot be given back, and how many there may be (None: no limit)."""

    used_bytes: int
    limit_bytes: int | None


def memory(cgroups: Path = CGROUPS) -> Memory:
    """Return the memory of the control group that has a limit, elsewhere that of this process.

    In a container that is the container's; under systemd, or a test, our own below the others.
    """
    own_groups = _own_groups()
    for folder, limit_file, line in KINDS:
        for group in (cgroups / folder / own_groups.get(folder, ""), cgroups / folder):
            limit = _limit(group / limit_file)
            if limit is not None:
                words = (group / "memory.stat").read_text("ascii").split()
                return Memory(int(words[words.index(line) + 1]), limit)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return Memory(pages * os.sysconf("SC_PAGE_SIZE"), None)


def _own_groups() -> dict[str, str]:
    """Return which group this process is in, of each version."""
    lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    groups = (line.split(":", 2)[1:] for line in lines)
    return {kinds: path.lstrip("/") for kinds, path in groups if kinds in ("", "memory")}


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text != "max" and int(text) < NO_LIMIT_BYTES else None
