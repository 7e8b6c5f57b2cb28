"""This process: what the service is called, and what memory it has."""

import ctypes
from pathlib import Path

from common.memory import Memory, memory

__all__ = ["Memory", "give_back_memory", "memory", "service_name"]

_trim = ctypes.CDLL(None).malloc_trim


def service_name(spool_file: str) -> str:
    """Name the service after its spool, which no other service of the same host holds."""
    stem = Path(spool_file).stem
    return f"ingest-{stem}" if stem.isdigit() else stem


def give_back_memory() -> None:
    """Give back what was freed, in some milliseconds: glibc keeps what lies below what is used."""
    _trim(0)
