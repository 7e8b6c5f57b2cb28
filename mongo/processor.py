"""What MongoDB needs of the processor."""

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
# What all builds of 5.0 and newer need, and what says in the processor's flags that it is there.
NEEDS = {"x86_64": ("AVX", {"avx"}), "aarch64": ("ARMv8.2", {"atomics", "dcpop"})}


def lacks() -> str | None:
    """Return what MongoDB 5.0 and newer need and this processor has not."""
    name, flags = NEEDS.get(platform.machine(), ("", set[str]()))
    for line in CPUINFO.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return None if flags <= set(value.split()) else name
    return None  # it does not tell
