"""This process: what the service is called, and what memory it has."""

import ctypes
import os
from pathlib import Path
from typing import NamedTuple

CGROUPS = Path("/sys/fs/cgroup")
# Of version 2 and of version 1: the limit, the statistics, and their line of what cannot be freed.
FILES = (
    ("memory.max", "memory.stat", "anon"),
    ("memory/memory.limit_in_bytes", "memory/memory.stat", "total_rss"),
)
NO_LIMIT_BYTES = 1 << 50
_trim = ctypes.CDLL(None).malloc_trim


class Memory(NamedTuple):
    """Bytes that cannot be given back, and how many there may be (None: no limit)."""

    used_bytes: int
    limit_bytes: int | None


def service_name(spool_file: str) -> str:
    """Name the service after its spool, which no other service holds."""
    stem = Path(spool_file).stem
    return f"ingest-{stem}" if stem.isdigit() else stem


def give_back_memory() -> None:
    """Give back what was freed, in some milliseconds: glibc keeps what lies below what is used."""
    _trim(0)


def memory(cgroups: Path = CGROUPS) -> Memory:
    """Return the memory of the container, elsewhere that of this process."""
    for limit_file, statistics, line in FILES:
        limit = _limit(cgroups / limit_file)
        if limit is not None:
            words = (cgroups / statistics).read_text("ascii").split()
            return Memory(int(words[words.index(line) + 1]), limit)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return Memory(pages * os.sysconf("SC_PAGE_SIZE"), None)


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text != "max" and int(text) < NO_LIMIT_BYTES else None
