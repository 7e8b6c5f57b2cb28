"""How much memory this service uses, and its limit; in a container, of the whole container."""

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
# For control groups of version 2 and of version 1: the file with the limit, the file with the
# statistics, and the line there that counts the memory that cannot be freed.
FILES = (
    ("memory.max", "memory.stat", "anon"),
    ("memory/memory.limit_in_bytes", "memory/memory.stat", "total_rss"),
)
NO_LIMIT_BYTES = 1 << 50


def memory_usage(cgroups: Path = CGROUPS) -> dict[str, int | None]:
    """Return `used_bytes`, which cannot be freed, and `limit_bytes`, None without a limit."""
    for limit_file, statistics, line in FILES:
        limit = _limit(cgroups / limit_file)
        if limit is not None:
            words = (cgroups / statistics).read_text("ascii").split()
            return {"used_bytes": int(words[words.index(line) + 1]), "limit_bytes": limit}
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return {"used_bytes": pages * os.sysconf("SC_PAGE_SIZE"), "limit_bytes": None}


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text != "max" and int(text) < NO_LIMIT_BYTES else None
