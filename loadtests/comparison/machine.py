"""What is measured on, and what its parts use meanwhile."""

import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from loadtests.architectures import Stack
from scripts.processes import ROOT

SAMPLE_SECONDS = 0.5


class Sample(NamedTuple):
    """What one part had used at one moment, in seconds since the run began; then as Usage."""

    seconds: float
    part: str
    cpu_seconds: float
    throttled_seconds: float
    memory_bytes: int
    anonymous_bytes: int
    peak_bytes: int
    killed: int


@contextmanager
def sampled(stack: Stack) -> Iterator[list[Sample]]:
    """Yield a list that grows by what each part uses, twice a second."""
    samples: list[Sample] = []
    ended = threading.Event()
    began = time.monotonic()

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            now = round(time.monotonic() - began, 2)
            samples.extend(Sample(now, part, *used) for part, used in stack.usage().items())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()


def machine() -> dict[str, Any]:
    """Return what was measured on."""
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    memory = Path("/proc/meminfo").read_text().split()[1]
    return {
        "processor": cpus[0].split(":")[1].strip() if cpus else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory) / 2**20, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit(ROOT),
    }


def commit(checkout: Path) -> str:
    """Return the commit of a checkout, with `-dirty` where files differ from it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
