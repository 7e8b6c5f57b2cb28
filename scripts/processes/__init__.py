"""Run the programs of the stack as child processes: for tests, load tests and ./scripts/up."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of this checkout
# The allocator of our services, as in the images: threads that each keep what they free cost some
# MiB a service. And what is large is given back when it is freed, however large others were before:
# an answer of a megabyte, a thousand stamps, the files that NGINX has read.
ALLOCATOR = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072"}
